"""Packing (B2): what fits into a number of tokens, in which order, and never more."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Kind
from memory.providers.connections import Deadline
from memory.retrieval.candidates import Candidate
from memory.retrieval.packing import MAX_JOINED_GAP, ContextPassage, pack_passages
from tests.memory.candidates import found
from tests.properties import examples

HEAD, GAP = 10, 2
"""What a passage costs besides its texts, a token a character."""


@dataclass
class Costs:
    """Costs that record the lines that were counted."""

    counted: list[Candidate] = field(default_factory=list)

    def head_tokens(self, _first: Candidate) -> int:
        return HEAD

    def line_tokens(self, note: Candidate) -> int:
        if note not in self.counted:
            self.counted.append(note)
        return len(note.text)

    def gap_tokens(self, before: Candidate, note: Candidate) -> int:
        return GAP if (note.index or 0) - (before.index or 0) > 1 else 0

    def min_line_tokens(self, note: Candidate) -> int:
        return len(note.text) // 2

    def is_counted(self, note: Candidate) -> bool:
        return note in self.counted


def price(notes: Sequence[Candidate]) -> int:
    costs = Costs()
    return HEAD + sum(map(costs.line_tokens, notes)) + sum(costs.gap_tokens(*pair) for pair in pairwise(notes))


def said(index: int, length: int = 5, *, conversation_id: str = "c1") -> Candidate:
    """Return a turn whose id is made of its conversation and index."""
    number = index + 1 + 1_000 * int(conversation_id[1:])
    return found(number, "x" * length, index=index, conversation_id=conversation_id)


def fact(number: int, length: int = 5) -> Candidate:
    return found(number, "x" * length, kind=Kind.FACT, conversation_id="")


def indexes(passages: Sequence[ContextPassage]) -> list[list[int | None]]:
    return [[note.index for note in passage.notes] for passage in passages]


def packed(evidence: Sequence[Candidate], *neighbours: Candidate, budget: int = 1_000, **kept: Any) -> Any:
    return indexes(pack_passages(evidence, neighbours, budget=budget, costs=Costs(), **kept).passages)


def test_a_turn_that_does_not_fit_is_skipped_for_the_next_one() -> None:
    assert packed([said(0, 20), said(100, 50), said(200, 5)], budget=50) == [[0], [200]]


def test_a_short_line_does_not_displace_the_best_evidence() -> None:
    assert packed([said(0, 40), said(100, 1)], budget=50) == [[0]]


def test_neighbours_join_a_turn_in_the_order_of_time() -> None:
    assert packed([said(5)], said(6), said(4)) == [[4, 5, 6]]


def test_all_results_go_in_before_any_neighbour() -> None:
    assert packed([said(5), said(200)], said(4), said(6), budget=30) == [[5], [200]]


def test_the_neighbours_of_the_best_go_in_first() -> None:
    neighbours = (said(3), said(5), said(200), said(202))

    assert packed([said(201), said(4)], *neighbours, budget=40) == [[200, 201, 202], [4]]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (6, [[5, 6]]),
        (5 + MAX_JOINED_GAP, [[5, 5 + MAX_JOINED_GAP]]),
        (6 + MAX_JOINED_GAP, [[5], [6 + MAX_JOINED_GAP]]),
    ],
    ids=["next to it", "as far as may be", "farther apart"],
)
def test_turns_that_are_not_far_apart_form_one_passage(second: int, expected: list[list[int]]) -> None:
    assert packed([said(5), said(second)]) == expected


def test_a_shared_neighbour_of_two_turns_is_packed_once_between_them() -> None:
    assert packed([said(5), said(7)], said(6), said(4), said(8)) == [[4, 5, 6, 7, 8]]


def test_a_turn_that_joins_two_passages_saves_one_heading() -> None:
    assert packed([said(0), said(60), said(30)], budget=2 * (HEAD + 5)) == [[0, 30, 60]]


def test_turns_of_other_conversations_are_other_passages() -> None:
    assert packed([said(1), said(2, conversation_id="c2")], said(3, conversation_id="c2")) == [[1], [2, 3]]


def test_passages_are_ordered_by_their_best_turn() -> None:
    evidence = [fact(1), said(9), said(300), said(8)]

    assert packed(evidence) == [[None], [8, 9], [300]]


def test_a_kept_turn_is_packed_before_better_ones() -> None:
    last = said(200)

    assert packed([said(0), said(100), last], budget=30, kept={last.item_key}) == [[0], [200]]


def test_a_kept_neighbour_is_packed_without_its_turn() -> None:
    neighbour = said(6)

    assert packed([], neighbour, kept={neighbour.item_key}) == [[6]]


def test_tokens_of_a_turn_too_long_to_fit_are_not_counted() -> None:
    costs, long = Costs(), said(0, 1_000)

    pack_passages([long, said(100)], (), budget=50, costs=costs)

    assert costs.counted == [said(100)]


def test_each_line_is_counted_once_however_many_join_it() -> None:
    costs = Costs()
    turns = [said(index) for index in range(30)]

    packed = pack_passages(turns, (), budget=1_000, costs=costs)

    assert indexes(packed.passages) == [list(range(30))]
    assert costs.counted == turns


def test_past_the_deadline_only_turns_with_known_token_counts_are_packed() -> None:
    costs, known = Costs(counted=[said(0), said(200)]), [said(0), said(200)]
    late = Deadline(0.0)

    packed = pack_passages([known[0], said(100), known[1]], (), budget=1_000, costs=costs, deadline=late)

    assert (indexes(packed.passages), packed.is_late) == ([[0], [200]], True)
    assert not pack_passages(known, (), budget=1_000, costs=costs, deadline=late).is_late


PLACES = st.integers(0, 20).map(lambda number: 7 * number)
NOTES = st.lists(
    st.builds(
        said,
        PLACES,
        st.integers(1, 60),
        conversation_id=st.sampled_from(["c1", "c2"]),
    ),
    unique_by=lambda note: note.id,
    max_size=20,
)


@given(notes=NOTES, split=st.integers(0, 20), budget=st.integers(-5, 300))
@examples(150)
def test_packed_notes_fit_the_budget_and_are_unique_and_in_order(
    notes: list[Candidate], split: int, budget: int
) -> None:
    passages = pack_passages(notes[:split], notes[split:], budget=budget, costs=Costs()).passages

    ids = [note.id for passage in passages for note in passage.notes]
    assert sum(price(passage.notes) for passage in passages) <= max(budget, 0)
    assert len(ids) == len(set(ids))
    for run in indexes(passages):
        steps = [after - before for before, after in pairwise(run)]  # type: ignore[operator]
        assert all(1 <= step <= MAX_JOINED_GAP for step in steps)


@given(notes=NOTES, budget=st.integers(0, 300))
@examples(100)
def test_the_best_note_that_fits_alone_is_always_packed(notes: list[Candidate], budget: int) -> None:
    fitting = [note for note in notes if price([note]) <= budget]

    passages = pack_passages(notes, (), budget=budget, costs=Costs()).passages

    assert {note.id for note in fitting[:1]} <= {note.id for passage in passages for note in passage.notes}
