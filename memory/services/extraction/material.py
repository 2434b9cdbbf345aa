"""What storing an extraction goes by: what was extracted from which turns, and what was taken of it so far.

What cannot be stored costs itself alone (`attempt`): what a service refuses is passed over, an error that nobody
foresaw costs its item and those that refer to it. `extraction_tallies` says how each is counted.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Self, TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction

from memory.errors import MemoryServiceError
from memory.extraction.knowledge import PARTS, Extraction
from memory.identity import normalize_name
from memory.models import Entity, Fact, Turn
from memory.owner import Owner
from memory.services.embedding.embed import Embedded

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


logger = logging.getLogger(__name__)

SOURCE = "extraction"
TROUBLE = (OperationalError, InterfaceError)
"""The database's own: no item is to blame."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of a fact. `fact_id` is its row where it is believed; `beside` counts what else happened."""

    fate: Fate
    fact_id: UUID | None = None
    reason: str = ""
    beside: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, fact: Fact, *, is_new: bool, **beside: int) -> Self:
        return cls(fate=Fate.LEARNT if is_new else Fate.MERGED, fact_id=fact.id, beside=beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What was extracted from which turns. `known` are the facts that the extractor was shown, by number."""

    owner: Owner
    turns: Mapping[int, Turn]
    extraction: Extraction
    known: Mapping[int, UUID]
    embedded: Embedded
    now: datetime

    def turn_ids(self, evidence: Iterable[int]) -> list[UUID]:
        return [self.turns[index].id for index in evidence]

    def said_at(self, evidence: Sequence[int]) -> datetime:
        return self.turns[evidence[0]].event_time


@dataclass(slots=True, kw_only=True)
class Taken:
    """What was stored so far, by the extraction's own names and numbers. `names` are all that an entity goes by.

    `failed` are names of entities and numbers of facts.
    """

    tally: Tally
    entities: dict[str, Entity | None] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[int, UUID] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    failed: set[str | int] = field(default_factory=set)

    def entity_ids(self, names: Iterable[str]) -> list[UUID]:
        found = (self.entities.get(normalize_name(name)) for name in names)
        return list(dict.fromkeys(entity.id for entity in found if entity is not None))

    def is_withheld(self, names: Iterable[str]) -> bool:
        """Whether staff has put one of them away."""
        return any(self.entities.get(normalize_name(name), True) is None for name in names)

    def all_names(self, names: Iterable[str]) -> list[str]:
        return [each for name in names for each in self.names.get(normalize_name(name), [name])]

    def stands(self, noun: str, refers_to: Iterable[str | int]) -> bool:
        """Whether an item refers to nothing that failed. Else it fails with it, or it would be stored in part."""
        if self.failed.isdisjoint(refers_to):
            return True
        self.tally.count(noun, Fate.FAILED)
        return False

    def take_fact(self, number: int, stored: Stored | Fate) -> None:
        if isinstance(stored, Stored):
            self.tally.count("facts", stored.fate, reason=stored.reason)
            self.tally.counts += Counter(stored.beside)
            self.facts |= {} if stored.fact_id is None else {number: stored.fact_id}
        elif stored is Fate.FAILED:
            self.failed.add(number)


def attempt(taken: Taken, noun: str, act: Callable[[], R]) -> R | Fate:
    """What it answers, or the item's fate, counted, where it cannot be stored; nothing of it is stored then."""
    try:
        with transaction.atomic():
            return act()
    except MemoryServiceError as err:
        logger.info("passed over in extraction: %s", err.code)
        taken.tally.refuse("by_service")
        return Fate.REFUSED
    except TROUBLE:
        raise
    except Exception as err:  # noqa: BLE001 - one item must not cost the others
        logger.error("an item of extraction failed: %s", type(err).__name__)
        taken.tally.fail(noun, type(err).__name__)
        return Fate.FAILED


def attempt_all(
    taken: Taken, noun: str, items: Sequence[T], act: Callable[[Sequence[T]], Sequence[R]]
) -> Sequence[R | Fate]:
    """All at once; where that cannot be, each for itself, as `attempt` does. `act` is all or nothing."""
    try:
        return act(items)
    except TROUBLE:
        raise
    except Exception as err:  # noqa: BLE001 - asked again item by item
        logger.info("%d %s of extraction are stored one by one: %s", len(items), noun, type(err).__name__)

    def act_on(item: T) -> R:
        [found] = act([item])
        return found

    return [attempt(taken, noun, partial(act_on, item)) for item in items]
