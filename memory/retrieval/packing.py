"""Packing (B2): which of the evidence, and what stood around it, goes into so many tokens.

In order of score whatever fits goes in, and what does not is skipped for what comes after it: a text is worth its
score whole, and not cut. Not by score per token, since a line of three words would then come before the best
evidence. When all results had their turn, those turns that stand next to a chosen one go in, those of the best first.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.neighbours import REACH

JOINED = 2 * REACH
"""Turns of a conversation whose numbers differ by no more belong to one passage: their neighbours touch."""

Price = Callable[[Sequence[Candidate]], int]
"""What a passage takes in tokens, laid out with all that stands around it; nothing for one without members."""

Spot = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Turns of one conversation in the order of time, or one memory of another kind."""

    notes: Sequence[Candidate]


@dataclass(slots=True, kw_only=True)
class Packing:
    """What has been taken so far, and how many tokens are left."""

    left: int
    price: Price
    turns: dict[str, dict[int, Candidate]] = field(default_factory=dict)
    """By conversation and index."""
    others: list[Candidate] = field(default_factory=list)

    def take(self, note: Candidate) -> bool:
        """Take it in if it fits."""
        if note.kind != Kind.TURN or note.index is None:
            return self._take_alone(note)
        if note.index in self.turns.get(note.conversation_id, {}):
            return True
        before, after = self._around(note.conversation_id, note.index)
        extra = self.price([*before, note, *after]) - self._price_apart(before, after)
        if extra > self.left:
            return False
        self.left -= extra
        self.turns.setdefault(note.conversation_id, {})[note.index] = note
        return True

    def passages(self) -> list[list[Candidate]]:
        """In no order; turns in that of time."""
        runs = [[other] for other in self.others]
        for turns in self.turns.values():
            runs += split_runs([turns[index] for index in sorted(turns)])
        return runs

    def _take_alone(self, note: Candidate) -> bool:
        extra = self.price([note])
        if extra > self.left:
            return False
        self.left -= extra
        self.others.append(note)
        return True

    def _around(self, conversation_id: str, index: int) -> tuple[list[Candidate], list[Candidate]]:
        """What is taken already of the passage that a turn would stand in: before it, and after it."""
        turns = self.turns.get(conversation_id, {})
        return walk(turns, index, step=-1)[::-1], walk(turns, index, step=1)

    def _price_apart(self, before: Sequence[Candidate], after: Sequence[Candidate]) -> int:
        """What both take without what is to stand between them."""
        return sum(self.price(run) for run in split_runs([*before, *after]))


def pack(
    evidence: Sequence[Candidate],
    neighbours: Collection[Candidate],
    *,
    budget: int,
    price: Price,
    kept: Collection[str] = (),
) -> list[Passage]:
    """Passages out of evidence (best first) and turns next to it that together take `budget` tokens at most.

    Those whose item keys are in `kept` go in before all others. Passages come best first, by the best that is in them.
    """
    packing = Packing(left=budget, price=price)
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
    return [Passage(notes=notes) for notes in ranked]


def next_to(note: Candidate, beside: Mapping[Spot, Candidate]) -> list[Candidate]:
    """The neighbours of a turn that there are, the nearest and earliest first."""
    if note.kind != Kind.TURN or note.index is None:
        return []
    steps = [step for reach in range(1, REACH + 1) for step in (-reach, reach)]
    spots = [(note.conversation_id, note.index + step) for step in steps]
    return [beside[spot] for spot in spots if spot in beside]


def walk(turns: Mapping[int, Candidate], index: int, *, step: int) -> list[Candidate]:
    """From one turn to the next of the same passage, as far as it goes, without the one at `index`."""
    found: list[Candidate] = []
    while near := [index + step * reach for reach in range(1, JOINED + 1) if index + step * reach in turns]:
        index = near[0]
        found.append(turns[index])
    return found


def split_runs(turns: Sequence[Candidate]) -> list[list[Candidate]]:
    """Turns of one conversation, in the order of time, cut where more was said between two than neighbours can join."""
    runs: list[list[Candidate]] = []
    for turn in turns:
        if runs and (turn.index or 0) - (runs[-1][-1].index or 0) <= JOINED:
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return runs
