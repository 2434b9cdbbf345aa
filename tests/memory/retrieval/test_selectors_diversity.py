"""Diversity: one conversation leaves places to others that are nearly as good, and to no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.retrieval.candidates import Candidate
from memory.retrieval.selectors import diversify_sources
from tests.memory.candidates import asking, found, numbers, ranked
from tests.properties import examples

TEN = (0.98, 0.97, 0.96, 0.95, 0.94, 0.93, 0.92, 0.91, 0.90, 0.89)


def with_others(*scores: float, conversation_id: str = "c2") -> list[Candidate]:
    """Return ten candidates of the conversation c1, and those of another, numbered from 11."""
    others = [found(11 + at, score=score, conversation_id=conversation_id) for at, score in enumerate(scores)]
    return [*ranked(*TEN), *others]


@pytest.mark.parametrize(
    ("others", "order"),
    [
        pytest.param([0.85, 0.40], [*range(1, 9), 11, 9, 10, 12], id="as in the docstring"),
        pytest.param([0.89, 0.88], [*range(1, 9), 11, 12, 9, 10], id="two that are nearly as good"),
        pytest.param([0.80], [*range(1, 12)], id="one that is not"),
        pytest.param([], [*range(1, 11)], id="no other"),
    ],
)
def test_beyond_eight_of_ten_a_conversation_yields_to_nearly_equal_candidates(
    others: list[float], order: list[int]
) -> None:
    assert numbers(diversify_sources(with_others(*others), asking(top_k=10))) == order


def test_a_demoted_candidate_scores_no_higher_than_those_before_it() -> None:
    ordered = diversify_sources(with_others(0.85), asking(top_k=10))

    assert [each.score for each in ordered] == sorted((each.score for each in ordered), reverse=True)
    assert ordered[9].signals["diversity"] == pytest.approx(0.85 / 0.90)
    assert ordered[9].reasons == ["gave way to another source"]


def test_the_active_conversation_may_take_all_places() -> None:
    ordered = diversify_sources(with_others(0.89), asking(top_k=10, conversation_id="c1"))

    assert numbers(ordered) == [*range(1, 12)]


def test_candidates_without_a_conversation_are_neither_demoted_nor_counted() -> None:
    facts = ranked(*TEN, conversation_id="")

    assert diversify_sources([*facts, *with_others(0.5)[10:]], asking(top_k=10))[:10] == facts


def test_a_short_list_of_results_keeps_its_order() -> None:
    candidates = with_others(0.89)

    assert diversify_sources(candidates, asking(top_k=4))[:4] == candidates[:4]


@given(st.lists(st.tuples(st.sampled_from(["", "c1", "c2", "c3"]), st.floats(0, 2)), max_size=30), st.integers(1, 12))
@examples(80)
def test_no_candidate_is_lost_and_each_conversation_keeps_its_order(drawn: list[tuple[str, float]], top_k: int) -> None:
    drawn.sort(key=lambda each: -each[1])
    candidates = [found(at, score=score, conversation_id=name) for at, (name, score) in enumerate(drawn)]
    of = {candidate.id.int: candidate.conversation_id for candidate in candidates}

    ordered = numbers(diversify_sources(candidates, asking(top_k=top_k)))

    assert sorted(ordered) == numbers(candidates)
    for conversation in set(of.values()):
        own = [number for number in ordered if of[number] == conversation]
        assert own == sorted(own)
