"""Packing (B2): which of the evidence, and what stood around it, goes into so many tokens.

In order of score whatever fits goes in, and what does not is skipped for what comes after it: a text is worth its
score whole, and not cut. Not by score per token, since a line of three words would then come before the best
evidence. When all results had their turn, those turns that stand next to a chosen one go in, those of the best first.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memory.models import Kind
from memory.providers.deadlines import Deadline
from memory.retrieval.candidates import Candidate
from memory.retrieval.neighbours import REACH

NEVER = Deadline(None)
JOINED = 2 * REACH
"""Turns of a conversation whose numbers differ by no more belong to one passage: their neighbours touch."""

Spot = tuple[str, int]


class Prices(Protocol):
    """What stands in a passage, in tokens. A passage takes its head and the lines of its notes, with what is between
    them; each of these is counted once, however often it is asked for.
    """

    def head(self, first: Candidate) -> int:
        """What stands above a passage that begins with this note."""

    def line(self, note: Candidate) -> int: ...

    def between(self, before: Candidate, note: Candidate) -> int:
        """What stands between two notes of a passage, besides their lines."""

    def least(self, note: Candidate) -> int:
        """No more than its line takes; told at once, however long that is."""

    def knows(self, note: Candidate) -> bool:
        """Whether its line has been counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Turns of one conversation in the order of time, or one memory of another kind."""

    notes: Sequence[Candidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Passages, best first. `is_late` where the deadline passed before all had their turn."""

    passages: Sequence[Passage]
    is_late: bool


@dataclass(slots=True, kw_only=True)
class Packing:
    """What has been taken so far, and how many tokens are left."""

    left: int
    prices: Prices
    deadline: Deadline
    is_late: bool = False
    turns: dict[str, dict[int, Candidate]] = field(default_factory=dict)
    """By conversation and index."""
    others: list[Candidate] = field(default_factory=list)

    def take(self, note: Candidate) -> bool:
        """Take it in if it fits. Past the deadline no more lines are counted: it is for those that are known."""
        if self.has(note):
            return True
        if not self.prices.knows(note) and self.deadline.left_seconds() <= 0:
            self.is_late = True
            return False
        around = self._price_around(note)
        if around + self.prices.least(note) > self.left or around + self.prices.line(note) > self.left:
            return False
        self.left -= around + self.prices.line(note)
        if is_in_conversation(note):
            self.turns.setdefault(note.conversation_id, {})[note.index or 0] = note
        else:
            self.others.append(note)
        return True

    def has(self, note: Candidate) -> bool:
        return is_in_conversation(note) and note.index in self.turns.get(note.conversation_id, {})

    def passages(self) -> list[list[Candidate]]:
        """In no order; turns in that of time."""
        runs = [[other] for other in self.others]
        for turns in self.turns.values():
            runs += split_runs([turns[index] for index in sorted(turns)])
        return runs

    def _price_around(self, note: Candidate) -> int:
        """What it adds besides its line: below zero where it joins two passages, whose second head goes."""
        before, after = (self._nearest(note, step) for step in (-1, 1))
        added = self._price_joint(before, note)
        if after is None:
            return added
        is_joined = before is not None and (after.index or 0) - (before.index or 0) <= JOINED
        return added + self._price_joint(note, after) - self._price_joint(before if is_joined else None, after)

    def _price_joint(self, before: Candidate | None, note: Candidate) -> int:
        """What stands above the line of a note: the head of its passage where it is the first."""
        return self.prices.head(note) if before is None else self.prices.between(before, note)

    def _nearest(self, note: Candidate, step: int) -> Candidate | None:
        """The next note of the passage that a turn would stand in, on that side."""
        if not is_in_conversation(note):
            return None
        turns = self.turns.get(note.conversation_id, {})
        near = ((note.index or 0) + step * reach for reach in range(1, JOINED + 1))
        return next((turns[index] for index in near if index in turns), None)


def pack(
    evidence: Sequence[Candidate],
    neighbours: Collection[Candidate],
    *,
    budget: int,
    prices: Prices,
    deadline: Deadline = NEVER,
    kept: Collection[str] = (),
) -> Packed:
    """Passages out of evidence (best first) and turns next to it that together take `budget` tokens at most.

    Those whose item keys are in `kept` go in before all others. Passages come best first, by the best that is in them.
    """
    packing = Packing(left=budget, prices=prices, deadline=deadline)
    beside = {(each.conversation_id, each.index or 0): each for each in neighbours}
    for note in (*evidence, *neighbours):
        if note.item_key in kept:
            packing.take(note)
    taken = [note for note in evidence if note.item_key in kept or packing.take(note)]
    for note in taken:
        for neighbour in next_to(note, beside):
            if neighbour.item_key not in kept:
                packing.take(neighbour)
    place = {note.id: number for number, note in enumerate(evidence)}
    last = len(evidence)
    ranked = sorted(packing.passages(), key=lambda notes: min(place.get(note.id, last) for note in notes))
    return Packed(passages=[Passage(notes=notes) for notes in ranked], is_late=packing.is_late)


def is_in_conversation(note: Candidate) -> bool:
    return note.kind == Kind.TURN and note.index is not None


def next_to(note: Candidate, beside: Mapping[Spot, Candidate]) -> list[Candidate]:
    """The neighbours of a turn that there are, the nearest and earliest first."""
    if not is_in_conversation(note):
        return []
    steps = [step for reach in range(1, REACH + 1) for step in (-reach, reach)]
    spots = [(note.conversation_id, (note.index or 0) + step) for step in steps]
    return [beside[spot] for spot in spots if spot in beside]


def split_runs(turns: Sequence[Candidate]) -> list[list[Candidate]]:
    """Turns of one conversation, in the order of time, cut where more was said between two than neighbours can join."""
    runs: list[list[Candidate]] = []
    for turn in turns:
        if runs and (turn.index or 0) - (runs[-1][-1].index or 0) <= JOINED:
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return runs
