"""Packing (B2): choose which evidence, and which turns around it, fit into a number of tokens.

Evidence goes in by descending score. What does not fit is skipped, not cut: a text is worth its score only as a whole.
The order is not by score per token, since a line of three words would then come before the best evidence. After all
results, the turns next to chosen ones go in, those of the best first.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memory.models import Kind
from memory.providers.connections import Deadline
from memory.retrieval.candidates import Candidate
from memory.retrieval.lookups import ADJACENT_TURNS

NO_DEADLINE = Deadline()
MAX_JOINED_GAP = 30
"""Turns of a conversation belong to one passage if their numbers differ by no more: a gap costs less than a head."""

Spot = tuple[str, int]


class TokenCosts(Protocol):
    """Numbers of tokens in a passage, which has a head, the lines of its notes and gaps between them.

    Each is counted once, however often it is asked for.
    """

    def head_tokens(self, first: Candidate) -> int:
        """Return the tokens of the head of a passage that begins with this note."""

    def line_tokens(self, note: Candidate) -> int: ...

    def gap_tokens(self, before: Candidate, note: Candidate) -> int:
        """Return the tokens between the lines of two notes of a passage."""

    def min_line_tokens(self, note: Candidate) -> int:
        """Return a lower bound of the tokens of a line, without counting them."""

    def is_counted(self, note: Candidate) -> bool:
        """Return True if the tokens of the line have been counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPassage:
    """Turns of one conversation in chronological order, or one memory of another kind."""

    notes: Sequence[Candidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPassages:
    """Passages, best first. `is_late` is True if the deadline passed before all evidence was considered."""

    passages: Sequence[ContextPassage]
    is_late: bool


@dataclass(slots=True, kw_only=True)
class Packing:
    """The notes chosen so far, and the number of tokens left."""

    left: int
    costs: TokenCosts
    deadline: Deadline
    is_late: bool = False
    turns: dict[str, dict[int, Candidate]] = field(default_factory=dict)
    """Chosen turns by conversation and index."""
    indexes: dict[str, list[int]] = field(default_factory=dict)
    """The indexes of chosen turns by conversation, in ascending order."""
    others: list[Candidate] = field(default_factory=list)

    def add(self, note: Candidate) -> bool:
        """Add a note if it fits, and return True if it is in. After the deadline only lines already counted fit."""
        if is_turn(note) and note.index in self.turns.get(note.conversation_id, {}):
            return True
        if not self.costs.is_counted(note) and self.deadline.left_seconds() <= 0:
            self.is_late = True
            return False
        around = self._tokens_around(note)
        if around + self.costs.min_line_tokens(note) > self.left or around + self.costs.line_tokens(note) > self.left:
            return False
        self.left -= around + self.costs.line_tokens(note)
        if is_turn(note):
            self.turns.setdefault(note.conversation_id, {})[note.index or 0] = note
            insort(self.indexes.setdefault(note.conversation_id, []), note.index or 0)
        else:
            self.others.append(note)
        return True

    def passages(self) -> list[list[Candidate]]:
        """Return the notes of each passage, in no order of passages. Turns are in chronological order."""
        runs = [[other] for other in self.others]
        for conversation_id, turns in self.turns.items():
            runs += split_runs([turns[index] for index in self.indexes[conversation_id]])
        return runs

    def _tokens_around(self, note: Candidate) -> int:
        """Return the tokens added besides a note's line: negative if it joins two passages, which drops a head."""
        before, after = self._adjoining_turns(note)
        added = self._tokens_above(before, note)
        if after is None:
            return added
        is_joined = before is not None and are_joined(before, after)
        return added + self._tokens_above(note, after) - self._tokens_above(before if is_joined else None, after)

    def _tokens_above(self, before: Candidate | None, note: Candidate) -> int:
        """Return the tokens above the line of a note: the head of the passage if it is the first, else the gap."""
        return self.costs.head_tokens(note) if before is None else self.costs.gap_tokens(before, note)

    def _adjoining_turns(self, note: Candidate) -> tuple[Candidate | None, Candidate | None]:
        """Return the chosen turns right before and after a turn in the same passage, or None."""
        if not is_turn(note):
            return None, None
        turns, indexes = self.turns.get(note.conversation_id, {}), self.indexes.get(note.conversation_id, [])
        place = bisect_left(indexes, note.index or 0)
        before = turns[indexes[place - 1]] if place else None
        after = turns[indexes[place]] if place < len(indexes) else None
        return (
            before if before is not None and are_joined(before, note) else None,
            after if after is not None and are_joined(note, after) else None,
        )


def pack_passages(
    evidence: Sequence[Candidate],
    neighbours: Collection[Candidate],
    *,
    budget: int,
    costs: TokenCosts,
    deadline: Deadline = NO_DEADLINE,
    kept: Collection[str] = (),
) -> PackedPassages:
    """Return passages of evidence (best first) and adjacent turns that take at most `budget` tokens.

    Notes whose item keys are in `kept` go in before all others. Passages are ordered by their best note.
    """
    packing = Packing(left=budget, costs=costs, deadline=deadline)
    adjacent = {(each.conversation_id, each.index or 0): each for each in neighbours}
    first = {note.id: note for note in (*evidence, *neighbours) if note.item_key in kept} if kept else {}
    for note in first.values():
        packing.add(note)
    chosen = [note for note in evidence if note.id in first or packing.add(note)]
    for note in chosen:
        for neighbour in adjacent_notes(note, adjacent):
            if neighbour.id not in first:
                packing.add(neighbour)
    place = {note.id: number for number, note in enumerate(evidence)}
    last = len(evidence)
    ranked = sorted(packing.passages(), key=lambda notes: min(place.get(note.id, last) for note in notes))
    return PackedPassages(passages=[ContextPassage(notes=notes) for notes in ranked], is_late=packing.is_late)


def is_turn(note: Candidate) -> bool:
    return note.kind == Kind.TURN and note.index is not None


def are_joined(before: Candidate, after: Candidate) -> bool:
    """Return True if two turns of a conversation, the earlier one first, belong to one passage."""
    return (after.index or 0) - (before.index or 0) <= MAX_JOINED_GAP


def adjacent_notes(note: Candidate, adjacent: Mapping[Spot, Candidate]) -> list[Candidate]:
    """Return the existing neighbours of a turn, nearest first, then earliest first."""
    if not is_turn(note):
        return []
    steps = [step for reach in range(1, ADJACENT_TURNS + 1) for step in (-reach, reach)]
    spots = [(note.conversation_id, (note.index or 0) + step) for step in steps]
    return [adjacent[spot] for spot in spots if spot in adjacent]


def split_runs(turns: Sequence[Candidate]) -> list[list[Candidate]]:
    """Split turns of one conversation, in chronological order, where the gap between two is too wide to join."""
    runs: list[list[Candidate]] = []
    for turn in turns:
        if runs and are_joined(runs[-1][-1], turn):
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return runs
