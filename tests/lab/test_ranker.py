"""Weights of turns and of all else, learnt from recorded questions, and judged on others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from lab.evaluation.datasets import SampleQuestion
from lab.evaluation.ranker import (
    ALL,
    NOTHING,
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
from memory.retrieval.ranking import Weights, learnt_weights
from memory.retrieval.techniques import choose_plan

CANDIDATES = 30


def recorded(
    number: int, *, by: str, sample: str = "s", turns: int = CANDIDATES, answers: int = 1, found: int = 1
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
        is_answer=np.isin(np.arange(CANDIDATES), best),
    )


def many(count: int, *, by: str, sample: str = "s", turns: int = CANDIDATES) -> list[RecordedQuestion]:
    return [recorded(number, by=by, sample=sample, turns=turns) for number in range(count)]


def greatest(weights: Weights) -> tuple[str, str]:
    by_size = [max(some, key=lambda name: some[name]) for some in (weights.turns, weights.others)]
    return by_size[0], by_size[1]


def weighing(weights: Mapping[str, float]) -> dict[str, float]:
    return {name: weight for name, weight in weights.items() if weight}


def test_turns_and_all_else_are_learnt_from_their_own_questions() -> None:
    learnt = learn_weights([*many(40, by="covers"), *many(40, by="meaning", turns=0)])

    assert greatest(learnt.weights) == ("covers", "meaning")
    assert (learnt.turns.questions, learnt.others.questions) == (40, 40)


def test_what_nobody_asked_about_keeps_its_weights() -> None:
    kept = Weights(turns={"covers": 0.1}, others={"meaning": 2.0})

    learnt = learn_weights(many(20, by="covers"), kept=kept)

    assert weighing(learnt.others.weights) == {"meaning": 2.0}
    assert (learnt.others.questions, learnt.others.nll) == (0, None)
    assert weighing(learn_weights([]).weights.turns) == weighing(learnt_weights().turns)


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_a_signal_that_tells_no_candidates_from_each_other_keeps_its_weight(value: float) -> None:
    questions = [*many(20, by="covers"), *many(20, by="meaning", turns=0)]
    for each in questions:
        each.signals[:, ALL.index("parent")] = value
    kept = Weights(turns={"parent": 3.0, "covers": 0.1}, others={"parent": -2.0})

    learnt = learn_weights(questions, kept=kept)

    assert (learnt.turns.weights["parent"], learnt.others.weights["parent"]) == (3.0, -2.0)
    assert (learnt.turns.kept, learnt.others.kept) == (["parent", "no_turn"], ["parent", "no_turn"])
    assert learnt.turns.weights["covers"] > 0.5


def test_what_is_kept_changes_nothing_of_what_is_learnt() -> None:
    questions = [*many(20, by="covers"), *many(20, by="meaning", turns=15)]

    learnt, again = (learn_weights(questions, kept=kept).others for kept in (NOTHING, learnt_weights()))

    assert weighing(learnt.weights) == weighing(again.weights)


def test_of_what_stands_alone_nothing_is_learnt_of_how_it_is_written() -> None:
    questions = [*many(20, by="covers"), *many(20, by="length", turns=15)]

    learnt = learn_weights(questions)

    assert set(learnt.others.weights) == set(OF_OTHERS)
    assert set(learnt.turns.weights) == set(ALL)


def test_turns_weigh_the_same_whatever_they_stand_beside() -> None:
    turns = many(20, by="covers")

    alone, beside = (learn_weights([*turns, *others]).turns for others in ([], many(20, by="words", turns=15)))

    assert alone == beside


def test_signals_that_are_not_named_get_no_weight() -> None:
    learnt = learn_weights([*many(20, by="covers"), *many(20, by="words", turns=15)], names=["words", "asks"])

    assert (set(learnt.turns.weights), set(learnt.others.weights)) == ({"words", "asks"}, {"words"})


def test_questions_whose_answers_were_not_found_teach_nothing_and_count() -> None:
    missed = recorded(1, by="words", found=0)

    assert learn_weights([*many(5, by="words"), missed]).turns.questions == 5
    assert found_by(Weights(turns={"words": 1.0}, others={}), missed) == 0.0


@pytest.mark.parametrize(("answers", "found", "share"), [(1, 1, 1.0), (2, 1, 0.5), (20, 20, 0.5)])
def test_the_share_is_of_all_answers_among_the_first_ten(answers: int, found: int, share: float) -> None:
    question = recorded(1, by="words", answers=answers, found=found)

    assert found_by(Weights(turns={"words": 1.0}, others={}), question) == share


def test_draws_go_to_the_first_row() -> None:
    question = recorded(1, by="words")

    assert found_by(Weights(turns={}, others={}), question) == float(question.is_answer[:10].any())


@pytest.mark.parametrize(
    ("questions", "parts"),
    [
        ([*many(3, by="words", sample="a"), *many(2, by="words", sample="b")], ["aaa", "bb"]),
        (many(7, by="words", sample="a"), ["aa", "aa", "a", "a", "a"]),
        (
            [*many(2, by="words", sample="a"), *many(2, by="words", sample="b"), *many(2, by="words", turns=3)],
            ["aa", "bb", "s", "s"],
        ),
    ],
    ids=["samples", "one sample", "both"],
)
def test_each_question_is_in_one_part(questions: Sequence[RecordedQuestion], parts: list[str]) -> None:
    split = list(cross_validation_parts(questions))

    assert ["".join(each.sample for each in part) for part in split] == parts
    assert sorted(id(each) for part in split for each in part) == sorted(map(id, questions))


def test_what_is_held_out_teaches_nothing_about_itself() -> None:
    # in one sample answers have most of one signal, in the other of another one
    questions = [*many(40, by="covers", sample="a"), *many(40, by="asks", sample="b")]

    held_out = sum(share for _, share in found_when_held_out(questions))

    fitted = learn_weights(questions).weights
    assert held_out < sum(found_by(fitted, each) for each in questions) - 10


def alone(*, turns: int) -> RecordedQuestion:
    """One question, whose answer comes last and has most of what counts."""
    signals = np.zeros((CANDIDATES, len(ALL)))
    signals[-1] = [float(name in ("words", "content", "meaning", "covers")) for name in ALL]
    one = recorded(1, by="words", turns=turns)
    return replace(one, signals=signals, is_answer=np.arange(CANDIDATES) == CANDIDATES - 1)


@pytest.mark.parametrize("turns", [0, CANDIDATES])
def test_weights_that_may_know_what_is_held_out_do_not_judge_it(turns: int) -> None:
    question = alone(turns=turns)

    [(_, share)] = found_when_held_out([question])

    assert found_by(learnt_weights(), question) == 1.0
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
    ids=["turns", "of all else", "nothing found", "turns among others", "others", "both", "nothing"],
)
def test_questions_are_untaught_where_no_other_is_of_all_they_have(
    own: list[RecordedQuestion], others: list[RecordedQuestion], untaught: int
) -> None:
    assert count_untaught(own, others) == untaught


def test_a_plan_with_weights_ranks_by_them() -> None:
    weights = Weights(turns={"words": 1.0}, others={})

    plan = with_weights(choose_plan(["rrf"]), weights)

    assert plan.fusion == "learned"
    assert plan.retrievers == choose_plan(["rrf"]).retrievers
