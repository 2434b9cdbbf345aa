"""What became of the items that extractors found: each is learnt, merged, refused or failed, and counted once.

- learnt: something new is stored. A fact that corrects another, that takes another's place, or that waits for staff to
  review it, is one.
- merged: it was known already. Evidence, aliases and certainty may have grown by it.
- refused: it is not stored on purpose. `checked` dropped it, staff rejected it or put away what it is about, it is of
  nobody, MEMORY_CONTRADICTIONS prefers what was known, or a service says no.
- failed: an error that nobody foresaw, in the item or in one that it refers to. Its turns are looked through again.

So `in` is always the sum of the four. A stretch that is looked through again has its items counted again.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from memory.extraction.knowledge import PARTS, Extraction

NOUNS = ("entities", "facts", "relationships", "preferences")
IN = "in"


class Fate(StrEnum):
    """What became of an item."""

    LEARNT = "learnt"
    MERGED = "merged"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of items: `in`, by fate, by noun and fate (`facts_learnt`), by reason (`refused_rejected`); and of what
    else happened (`corrections`, `successions` and the `facts_superseded` by both, `turns`). `errors` are the names of
    what failed."""

    counts: Counter[str] = field(default_factory=Counter)
    errors: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, extraction: Extraction) -> Self:
        """Of all that came in: what was dropped before is refused already."""
        dropped = Counter(extraction.dropped)
        parts = sum(dropped.pop(part, 0) for part in PARTS)
        found = sum(len(getattr(extraction, noun)) for noun in NOUNS)
        tally = cls(counts=Counter({IN: found + dropped.total(), "parts_left_out": parts}))
        for reason, count in dropped.items():
            tally.refuse(reason, count)
        return tally

    def count(self, noun: str, fate: Fate, *, reason: str = "") -> None:
        """`reason` is that of a refusal."""
        if fate is Fate.REFUSED:
            self.refuse(reason)
        else:
            self.counts[fate] += 1
            self.counts[f"{noun}_{fate}"] += 1

    def refuse(self, reason: str, count: int = 1) -> None:
        self.counts[Fate.REFUSED] += count
        self.counts[f"refused_{reason}"] += count

    def fail(self, noun: str, error: str) -> None:
        self.count(noun, Fate.FAILED)
        self.errors.add(error)

    def add(self, other: "Tally") -> None:
        self.counts += other.counts
        self.errors |= other.errors

    @property
    def failed(self) -> int:
        return self.counts[Fate.FAILED]

    def told_error(self) -> str:
        """For the conversation's row."""
        noun = "item" if self.failed == 1 else "items"
        return f"{self.failed} {noun} failed: {', '.join(sorted(self.errors))}"


def unstored(extractions: Iterable[Extraction]) -> Counter[str]:
    """Where nothing of a stretch could be stored: all that was not refused before has failed."""
    total = Tally()
    for extraction in extractions:
        tally = Tally.of(extraction)
        for noun in NOUNS:
            for _ in getattr(extraction, noun):
                tally.count(noun, Fate.FAILED)
        total.add(tally)
    return total.counts
