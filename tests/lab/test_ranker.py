"""Weights of turns and of other memories, learned from recorded questions and judged on others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from lab.evaluation.datasets import SampleQuestion
from lab.evaluation.ranker import (
    ALL,
    NOTHING,
    OF_EXTRACTED,
    OF_OTHERS,
    count_untaught,
    cross_validation_parts,
    found_by,
    found_when_held_out,
    learn_weights,
    untaught_when_held_out,
    with_weights,
)
from lab.evaluation.recording import RecordedQuestion
from memory.retrieval.ranking import Weights, learned_weights
from memory.retrieval.ranking.registers import LONG_CHAT, NOTES
from memory.retrieval.techniques import choose_plan

CANDIDATES = 30


def recorded(
    number: int,
    *,
    by: str,
    sample: str = "s",
    turns: int = CANDIDATES,
    extracted: int = 0,
    answers: int = 1,
    found: int = 1,
) -> RecordedQuestion:
    """A question whose answers are the candidates that have most of one signal; the first ones are turns."""
    random = np.random.default_rng(number)
    signals = random.normal(size=(CANDIDATES, len(ALL)))
    signals[:, ALL.index("no_turn")] = np.arange(CANDIDATES) >= turns
    best = np.argsort(-signals[:, ALL.index(by)])[:found]
    return RecordedQuestion(
        sample=sample,
        question=SampleQuestion(text="?", answers=["a"] * answers, type="t"),
        answers=answers,
        signals=signals,
        offset=np.zeros(CANDIDATES),
        is_turn=np.arange(CANDIDATES) < turns,
        is_extracted=np.arange(CANDIDATES) >= CANDIDATES - extracted,
        is_answer=np.isin(np.arange(CANDIDATES), best),
    )


def many(
    count: int, *, by: str, sample: str = "s", turns: int = CANDIDATES, extracted: int = 0
) -> list[RecordedQuestion]:
    return [recorded(number, by=by, sample=sample, turns=turns, extracted=extracted) for number in range(count)]


def greatest(weights: Weights) -> tuple[str, str]:
    by_size = [max(some, key=lambda name: some[name]) for some in (weights.of_turns(NOTES), weights.others)]
    return by_size[0], by_size[1]


def weighing(weights: Mapping[str, float]) -> dict[str, float]:
    return {name: weight for name, weight in weights.items() if weight}


def test_turns_and_other_memories_learn_weights_from_their_own_questions() -> None:
    learned = learn_weights([*many(40, by="covers"), *many(40, by="meaning", turns=0)])

    assert greatest(learned.weights) == ("covers", "meaning")
    assert (learned.turns[NOTES].questions, learned.others.questions) == (40, 40)


def test_memories_that_no_question_asks_about_keep_their_weights() -> None:
    kept = Weights(turns={NOTES: {"covers": 0.1}}, others={"meaning": 2.0})

    learned = learn_weights(many(20, by="covers"), kept=kept)

    assert weighing(learned.others.weights) == {"meaning": 2.0}
    assert (learned.others.questions, learned.others.nll) == (0, None)
    assert weighing(learn_weights([]).weights.turns[NOTES]) == weighing(learned_weights().turns[NOTES])


def test_extracted_knowledge_learns_weights_of_its_own_and_changes_no_others() -> None:
    questions = [*many(40, by="covers"), *many(40, by="meaning", turns=0)]

    alone = learn_weights(questions)
    learned = learn_weights([*questions, *many(40, by="length", turns=15, extracted=15)])

    by_size = sorted(learned.extracted.weights, key=lambda name: learned.extracted.weights[name])
    assert by_size[-1] == "length"
    assert set(by_size) == set(OF_EXTRACTED)
    assert (learned.extracted.questions, alone.extracted.questions) == (40, 0)
    assert (learned.turns, learned.others) == (alone.turns, alone.others)


def test_files_of_extracted_knowledge_count_alike() -> None:
    few = [replace(each, file="few") for each in many(10, by="length", turns=15, extracted=15)]
    much = [replace(each, file="much") for each in many(90, by="words", turns=15, extracted=15)]

    learned = learn_weights([*few, *much]).extracted.weights

    assert learned["length"] == pytest.approx(learned["words"], rel=0.5)


@pytest.mark.slow
def test_a_rare_register_learns_its_own_signals_from_its_few_questions() -> None:
    rare = [replace(each, register=LONG_CHAT) for each in many(8, by="asks")]

    learned = learn_weights([*many(400, by="covers"), *rare]).turns[LONG_CHAT]

    assert max(learned.weights, key=lambda name: learned.weights[name]) == "asks"
    assert "asks" not in learned.kept


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_a_signal_with_one_value_for_all_candidates_keeps_its_weight(value: float) -> None:
    questions = [*many(20, by="covers"), *many(20, by="meaning", turns=0)]
    for each in questions:
        each.signals[:, ALL.index("parent")] = value
    kept = Weights(turns={NOTES: {"parent": 3.0, "covers": 0.1}}, others={"parent": -2.0})

    learned = learn_weights(questions, kept=kept)

    assert (learned.turns[NOTES].weights["parent"], learned.others.weights["parent"]) == (3.0, -2.0)
    assert (learned.turns[NOTES].kept, learned.others.kept) == (["parent", "no_turn"], ["parent", "no_turn"])
    assert learned.turns[NOTES].weights["covers"] > 0.5


def test_kept_weights_do_not_influence_learned_weights() -> None:
    questions = [*many(20, by="covers"), *many(20, by="meaning", turns=15)]

    learned, again = (learn_weights(questions, kept=kept).others for kept in (NOTHING, learned_weights()))

    assert weighing(learned.weights) == weighing(again.weights)


def test_other_memories_learn_weights_only_for_the_signals_allowed_to_them() -> None:
    questions = [*many(20, by="covers"), *many(20, by="length", turns=15)]

    learned = learn_weights(questions)

    assert set(learned.others.weights) == set(OF_OTHERS)
    assert set(learned.turns[NOTES].weights) == set(ALL)


def test_turn_weights_do_not_depend_on_questions_about_other_memories() -> None:
    turns = many(20, by="covers")

    alone, mixed = (learn_weights([*turns, *others]).turns for others in ([], many(20, by="words", turns=15)))

    assert alone == mixed


def test_signals_that_are_not_named_get_no_weight() -> None:
    learned = learn_weights([*many(20, by="covers"), *many(20, by="words", turns=15)], names=["words", "asks"])

    assert (set(learned.turns[NOTES].weights), set(learned.others.weights)) == ({"words", "asks"}, {"words"})


def test_questions_without_found_answers_teach_nothing_and_score_zero() -> None:
    missed = recorded(1, by="words", found=0)

    assert learn_weights([*many(5, by="words"), missed]).turns[NOTES].questions == 5
    assert found_by(Weights(turns={NOTES: {"words": 1.0}}, others={}), missed) == 0.0


@pytest.mark.parametrize(("answers", "found", "share"), [(1, 1, 1.0), (2, 1, 0.5), (20, 20, 0.5)])
def test_the_score_is_the_share_of_all_answers_found_in_the_first_ten(answers: int, found: int, share: float) -> None:
    question = recorded(1, by="words", answers=answers, found=found)

    assert found_by(Weights(turns={NOTES: {"words": 1.0}}, others={}), question) == share


def test_ties_are_ranked_in_row_order() -> None:
    question = recorded(1, by="words")

    assert found_by(Weights(turns={}, others={}), question) == float(question.is_answer[:10].any())


def of_files(samples: dict[str, str], turns: int = CANDIDATES) -> list[RecordedQuestion]:
    """Return a question for each letter, which is its sample, in these files."""
    return [
        replace(each, file=file)
        for file, letters in samples.items()
        for letter in letters
        for each in many(1, by="words", sample=letter, turns=turns)
    ]


@pytest.mark.parametrize(
    ("questions", "parts"),
    [
        ([*many(3, by="words", sample="a"), *many(2, by="words", sample="b")], ["aaa", "bb"]),
        (many(7, by="words", sample="a"), ["aa", "aa", "a", "a", "a"]),
        (
            [*many(2, by="words", sample="a"), *many(2, by="words", sample="b"), *many(2, by="words", turns=3)],
            ["aa", "bb", "s", "s"],
        ),
        (of_files({"one": "ab", "two": "cc"}), ["ab", "cc"]),
        ([*of_files({"one": "ab"}), *of_files({"two": "ss"}, turns=3)], ["a", "b", "s", "s"]),
    ],
    ids=["samples", "one sample", "both", "files", "files of other kinds"],
)
def test_each_question_is_in_exactly_one_cross_validation_part(
    questions: Sequence[RecordedQuestion], parts: list[str]
) -> None:
    split = list(cross_validation_parts(questions))

    assert ["".join(each.sample for each in part) for part in split] == parts
    assert sorted(id(each) for part in split for each in part) == sorted(map(id, questions))


def test_held_out_questions_do_not_influence_the_weights_that_judge_them() -> None:
    # in one sample answers have most of one signal, in the other of another one
    questions = [*many(40, by="covers", sample="a"), *many(40, by="asks", sample="b")]

    held_out = sum(share for _, share in found_when_held_out(questions))

    fitted = learn_weights(questions).weights
    assert held_out < sum(found_by(fitted, each) for each in questions) - 10


def alone(*, turns: int) -> RecordedQuestion:
    """Return a question whose answer comes last and has the highest signals."""
    signals = np.zeros((CANDIDATES, len(ALL)))
    signals[-1] = [float(name in ("words", "content", "meaning", "covers")) for name in ALL]
    one = recorded(1, by="words", turns=turns)
    return replace(one, signals=signals, is_answer=np.arange(CANDIDATES) == CANDIDATES - 1)


@pytest.mark.parametrize("turns", [0, CANDIDATES])
def test_a_held_out_question_is_not_judged_by_the_shipped_weights(turns: int) -> None:
    question = alone(turns=turns)

    [(_, share)] = found_when_held_out([question])

    assert found_by(learned_weights(), question) == 1.0
    assert share == 0.0
    assert untaught_when_held_out([question]) == 1


@pytest.mark.parametrize(
    ("own", "others", "untaught"),
    [
        ([recorded(1, by="words")], [recorded(2, by="words")], 0),
        ([recorded(1, by="words")], [recorded(2, by="words", turns=0)], 1),
        ([recorded(1, by="words")], [recorded(2, by="words", found=0)], 1),
        ([recorded(1, by="words", turns=5)], [recorded(2, by="words", turns=5)], 1),
        ([recorded(1, by="words", turns=0)], [recorded(2, by="words", turns=5)], 0),
        ([recorded(1, by="words", turns=5)], [recorded(2, by="words", turns=5), recorded(3, by="words")], 0),
        (many(3, by="words"), [], 3),
    ],
    ids=["turns", "other memories", "nothing found", "turns among others", "others", "both", "nothing"],
)
def test_questions_are_untaught_if_no_other_question_covers_their_kinds_of_memories(
    own: list[RecordedQuestion], others: list[RecordedQuestion], untaught: int
) -> None:
    assert count_untaught(own, others) == untaught


def test_a_plan_with_weights_ranks_by_them() -> None:
    weights = Weights(turns={NOTES: {"words": 1.0}}, others={})

    plan = with_weights(choose_plan(["rrf"]), weights)

    assert plan.fusion == "learned"
    assert plan.retrievers == choose_plan(["rrf"]).retrievers
