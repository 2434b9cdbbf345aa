"""Invented sets in `docs/sample` besides `recall.json`: updates, with a part that is held out, and ten languages."""

from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings

from lab.evaluation.datasets import EvaluationSample
from lab.evaluation.files import read_file

FOLDER = Path(settings.BASE_DIR) / "docs" / "sample"
REGISTERS = ("assistant", "coding", "friends")
LANGUAGES = ("de", "en", "es", "fr", "ja", "ko", "pt", "ru", "th", "zh")


def questions_by_type(samples: list[EvaluationSample]) -> Counter[str]:
    return Counter(question.type for sample in samples for question in sample.questions)


@pytest.mark.parametrize(("name", "updates", "both"), [("updates", 120, 40), ("updates-held-out", 60, 20)])
def test_the_update_sets_cover_every_register(name: str, updates: int, both: int) -> None:
    types = questions_by_type(read_file(FOLDER / f"{name}.json"))

    assert sum(types[f"update, {register}"] for register in REGISTERS) >= updates
    assert sum(types[f"both, {register}"] for register in REGISTERS) >= both
    assert all(types[f"past, {register}"] for register in REGISTERS)


@pytest.mark.parametrize("name", ["notes", "notes-held-out"])
def test_in_the_notes_one_side_alone_speaks(name: str) -> None:
    samples = read_file(FOLDER / f"{name}.json")

    assert {turn.message.role for sample in samples for talk in sample.talks for turn in talk.turns} == {"user"}
    assert questions_by_type(samples).keys() == {"update", "both", "past"}


def test_the_spoken_updates_replace_forty_statements_and_keep_fifteen_pairs_that_both_hold() -> None:
    types = questions_by_type(read_file(FOLDER / "spoken-updates.json"))

    assert types == {"update": 43, "both": 17}


def test_the_unseen_sets_replace_sixty_statements_each() -> None:
    plain, talk = (questions_by_type(read_file(FOLDER / f"unseen-{name}.json")) for name in ("updates", "talk"))

    assert plain == {"update": 60, "both": 20, "past": 15}
    assert talk == {"update": 60, "both": 13}


def test_the_registers_replace_thirty_six_statements_and_keep_twenty_four_pairs_that_both_hold() -> None:
    types = questions_by_type(read_file(FOLDER / "register-updates.json"))

    assert types == {"update": 36, "look-alike": 24}


def test_the_natural_updates_ask_for_each_of_two_look_alikes() -> None:
    """Their types are subjects: 24 of updates, six kinds of pairs that both hold."""
    for name, updates, pairs in (("natural-updates", 100, 20), ("natural-updates-held-out", 140, 40)):
        questions = [question for sample in read_file(FOLDER / f"{name}.json") for question in sample.questions]
        assert sum(bool(question.replaced) for question in questions) == updates
        assert sum(question.type.startswith("both-") for question in questions) == 2 * pairs == len(questions) - updates


def test_the_look_alikes_are_three_times_as_many_as_the_updates() -> None:
    questions = [question for sample in read_file(FOLDER / "look-alikes.json") for question in sample.questions]

    assert sum(bool(question.replaced) for question in questions) == 60
    assert sum(question.type.startswith("both-") for question in questions) == 2 * 180


def test_as_many_pairs_both_hold_as_replace_each_other() -> None:
    for name, pairs in (("pairs", 600), ("pairs-held-out", 150)):
        types = questions_by_type(read_file(FOLDER / f"{name}.json"))
        assert types == {"update": pairs, "both-earlier": pairs, "both-later": pairs}


@pytest.mark.parametrize(
    "name",
    [
        *("pairs", "pairs-held-out", "updates", "updates-held-out", "notes", "notes-held-out", "spoken-updates"),
        *("unseen-updates", "unseen-talk", "register-updates"),
    ],
)
def test_update_questions_name_replaced_turns_that_are_older_than_the_answers(name: str) -> None:
    for sample in read_file(FOLDER / f"{name}.json"):
        said_at = {turn.client_id: turn.timestamp for talk in sample.talks for turn in talk.turns if turn.timestamp}
        for question in sample.questions:
            assert bool(question.replaced) == question.type.startswith("update")
            assert all(said_at[old] < said_at[new] for old in question.replaced for new in question.answers)


@pytest.mark.parametrize("name", ["updates", "notes", "natural-updates"])
def test_the_held_out_set_shares_no_conversation_and_no_question(name: str) -> None:
    known, held_out = (read_file(FOLDER / file) for file in (f"{name}.json", f"{name}-held-out.json"))

    for parts in (
        [{talk.conversation_id for sample in samples for talk in sample.talks} for samples in (known, held_out)],
        [{question.text for sample in samples for question in sample.questions} for samples in (known, held_out)],
    ):
        assert parts[0].isdisjoint(parts[1])


def test_ten_languages_have_the_same_number_of_questions_and_turns() -> None:
    samples = read_file(FOLDER / "languages.json")

    assert questions_by_type(samples) == dict.fromkeys(LANGUAGES, 20)
    assert len({len(talk.turns) for sample in samples for talk in sample.talks[:1]}) == 1
