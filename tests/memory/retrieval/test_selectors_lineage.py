"""Correction lineage: no successor comes after what it superseded, and a promoted fact comes once."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import LinkBetween
from memory.retrieval.selectors import order_by_lineage
from tests.memory.candidates import asking, found, link, numbers
from tests.memory.episodes import NOW
from tests.properties import examples


def facts(count: int, **fields: Any) -> list[Candidate]:
    """Return superseded facts, best first."""
    return [
        found(number, kind=Kind.FACT, status="superseded", score=1 / number, **fields) for number in range(1, count + 1)
    ]


def supersedes(new: int, old: int) -> LinkBetween:
    return link(new, "SUPERSEDES", old)


@pytest.mark.parametrize(
    ("links", "order"),
    [
        pytest.param([], [1, 2, 3, 4], id="nothing superseded"),
        pytest.param([supersedes(3, 1)], [3, 1, 2, 4], id="the successor takes its place"),
        pytest.param([supersedes(1, 3)], [1, 2, 3, 4], id="in order already"),
        pytest.param([supersedes(4, 3), supersedes(3, 1)], [4, 3, 1, 2], id="a chain"),
        pytest.param([supersedes(4, 1), supersedes(3, 1)], [4, 3, 1, 2], id="two successors"),
        pytest.param([supersedes(3, 1), supersedes(3, 2)], [3, 1, 2, 4], id="the successor of two"),
        pytest.param([supersedes(9, 1)], [1, 2, 3, 4], id="a successor that is not there"),
        pytest.param([link(3, "ABOUT", 1)], [1, 2, 3, 4], id="another link"),
    ],
)
def test_a_successor_comes_before_the_fact_it_supersedes(links: list[LinkBetween], order: list[int]) -> None:
    assert numbers(order_by_lineage(facts(4), asking(*links))) == order


def test_a_successor_takes_the_score_of_the_superseded_fact_and_gives_a_reason() -> None:
    old, _between, new = facts(3)

    order_by_lineage([old, _between, new], asking(supersedes(3, 1)))

    assert new.score == old.score
    assert new.signals["lineage"] == pytest.approx(3.0)
    assert new.reasons == ["takes the place of what it supersedes"]


def test_a_superseded_fact_says_what_superseded_it_and_until_when_it_was_true() -> None:
    old, new = facts(2)
    old.valid_to = NOW

    order_by_lineage([old, new], asking(supersedes(2, 1)))

    assert (old.superseded_by, old.superseded_at, new.superseded_by) == (new.id, NOW, None)


@pytest.mark.parametrize(
    ("as_of", "order", "superseded_by"),
    [
        pytest.param(NOW - timedelta(days=1), [1, 2], None, id="it still held"),
        pytest.param(NOW, [2, 1], UUID(int=2), id="it had ended"),
        pytest.param(None, [2, 1], UUID(int=2), id="no time"),
    ],
)
def test_a_fact_that_was_superseded_after_the_time_asked_for_keeps_its_place(
    as_of: datetime | None, order: list[int], superseded_by: UUID | None
) -> None:
    fact = found(1, kind=Kind.FACT, status="superseded", score=1.0, valid_to=NOW)
    turn = found(2, score=0.5)

    assert numbers(order_by_lineage([fact, turn], asking(supersedes(2, 1), as_of=as_of))) == order
    assert fact.superseded_by == superseded_by


def test_a_reactivated_fact_keeps_its_place() -> None:
    active, superseded = facts(2)
    active.status = "active"

    assert numbers(order_by_lineage([active, superseded], asking(supersedes(2, 1), supersedes(1, 2)))) == [1, 2]


@pytest.mark.parametrize("size", [2, 3, 300])
def test_a_cycle_of_successions_terminates_and_loses_no_candidate(size: int) -> None:
    cycle = [supersedes(number, number % size + 1) for number in range(1, size + 1)]

    assert sorted(numbers(order_by_lineage(facts(size), asking(*cycle)))) == list(range(1, size + 1))


def test_a_chain_of_hundreds_is_put_in_order() -> None:
    chain = [supersedes(number + 1, number) for number in range(1, 600)]

    assert numbers(order_by_lineage(facts(600), asking(*chain))) == list(range(600, 0, -1))


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)).filter(lambda pair: pair[0] > pair[1]), max_size=12))
@examples(60)
def test_no_superseded_fact_outranks_its_successor_in_any_lineage(pairs: list[tuple[int, int]]) -> None:
    ordered = order_by_lineage(facts(8), asking(*(supersedes(new, old) for new, old in pairs)))

    places = {number: place for place, number in enumerate(numbers(ordered))}
    assert sorted(places) == list(range(1, 9))
    assert all(places[new] < places[old] for new, old in pairs)
    assert [each.score for each in ordered] == sorted((each.score for each in ordered), reverse=True)


@pytest.mark.parametrize("promoted", [link(1, "PROMOTED_FROM", 2), link(2, "PROMOTED_FROM", 1)], ids=["copy", "origin"])
def test_a_fact_and_its_promoted_copy_are_merged_into_the_better_one(promoted: LinkBetween) -> None:
    one, other = facts(2, text="Ana lives in Berlin.")
    other.pinned = True

    assert order_by_lineage([one, other], asking(promoted)) == [one]
    assert one.also == [other.id]
    assert one.pinned


def test_a_promoted_copy_with_a_different_claim_is_not_merged() -> None:
    one, other = facts(2, text="Ana lives in Berlin.")
    other.text = "Ana lives in Bern."

    assert order_by_lineage([one, other], asking(link(1, "PROMOTED_FROM", 2))) == [one, other]


def test_successors_of_a_pinned_fact_count_as_pinned() -> None:
    old, _between, new, newest = facts(4)
    old.pinned = True

    order_by_lineage([newest, new, _between, old], asking(supersedes(3, 1), supersedes(4, 3), supersedes(1, 4)))

    assert [each.pinned for each in (old, _between, new, newest)] == [True, False, True, True]


def test_a_candidate_merged_with_a_successor_takes_its_place() -> None:
    old, _between, first = facts(3)
    first.also = [UUID(int=9)]

    assert numbers(order_by_lineage([old, _between, first], asking(supersedes(9, 1)))) == [3, 1, 2]
