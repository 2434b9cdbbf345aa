"""Outcomes of extracted items: stored one by one where they cannot be stored together, and counted.

Every item that an extractor found has one outcome, so `in` is always the sum of the four:

- learnt: something new is stored. A fact that corrects or replaces another, or waits for a review by staff, is learnt.
- merged: it was known already. Its evidence, aliases or certainty may have grown.
- refused: it is not stored on purpose. The extractor's checks dropped it, staff rejected it or withheld what it is
  about, it is about nobody, MEMORY_CONTRADICTIONS prefers what was known, or a service refuses it.
- failed: an unforeseen error in the item, or in one that it refers to. Its turns are extracted again later, and all
  their items are counted again.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Self, TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction

from memory.errors import MemoryServiceError
from memory.extraction.knowledge import PARTS, Extraction
from memory.identity import normalize_name
from memory.models import Entity, Fact, Turn
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddedTexts

logger = logging.getLogger(__name__)

NOUNS = ("entities", "facts", "relationships", "preferences")
IN = "in"
DATABASE_ERRORS = (OperationalError, InterfaceError)
"""Errors of the database itself, for which no item is to blame."""

T = TypeVar("T")
R = TypeVar("R")


class ItemOutcome(StrEnum):
    LEARNT = "learnt"
    MERGED = "merged"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(slots=True, kw_only=True)
class ItemCounts:
    """Counts of items, and of what else storing them changed.

    Keys of `figures` are `in`, outcomes, nouns with outcomes (`facts_learnt`), reasons (`refused_rejected`), and
    `corrections`, `successions`, the `facts_superseded` by both, and `turns`. `errors` are names of exception classes.
    """

    figures: Counter[str] = field(default_factory=Counter)
    errors: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, extraction: Extraction) -> Self:
        """Count all items that came in; those that the extractor's checks dropped are refused already."""
        dropped = Counter(extraction.dropped)
        parts = sum(dropped.pop(part, 0) for part in PARTS)
        found = sum(len(getattr(extraction, noun)) for noun in NOUNS)
        counts = cls(figures=Counter({IN: found + dropped.total(), "parts_left_out": parts}))
        for reason, count in dropped.items():
            counts.refuse(reason, count)
        return counts

    def count(self, noun: str, outcome: ItemOutcome, *, reason: str = "") -> None:
        """Count one item; `reason` is that of a refusal."""
        if outcome is ItemOutcome.REFUSED:
            self.refuse(reason)
        else:
            self.figures[outcome] += 1
            self.figures[f"{noun}_{outcome}"] += 1

    def refuse(self, reason: str, count: int = 1) -> None:
        self.figures[ItemOutcome.REFUSED] += count
        self.figures[f"refused_{reason}"] += count

    def fail(self, noun: str, error: str) -> None:
        self.count(noun, ItemOutcome.FAILED)
        self.errors.add(error)

    def add(self, other: "ItemCounts") -> None:
        self.figures += other.figures
        self.errors |= other.errors

    @property
    def failed(self) -> int:
        return self.figures[ItemOutcome.FAILED]

    def format_errors(self) -> str:
        """Return the error for the conversation's row."""
        noun = "item" if self.failed == 1 else "items"
        return f"{self.failed} {noun} failed: {', '.join(sorted(self.errors))}"


def count_unstored(extractions: Iterable[Extraction]) -> Counter[str]:
    """Return the figures of extractions of which nothing could be stored: what was not refused has failed."""
    total = ItemCounts()
    for extraction in extractions:
        counts = ItemCounts.of(extraction)
        for noun in NOUNS:
            for _ in getattr(extraction, noun):
                counts.count(noun, ItemOutcome.FAILED)
        total.add(counts)
    return total.figures


@dataclass(frozen=True, slots=True, kw_only=True)
class FactResult:
    """The outcome of a fact; `fact_id` is its active row, and `extra_counts` are other changes to count."""

    outcome: ItemOutcome
    fact_id: UUID | None = None
    reason: str = ""
    extra_counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, fact: Fact, *, is_new: bool, **extra_counts: int) -> Self:
        outcome = ItemOutcome.LEARNT if is_new else ItemOutcome.MERGED
        return cls(outcome=outcome, fact_id=fact.id, extra_counts=extra_counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionInput:
    """An extraction with the turns it was made from. `known` are the facts that the extractor was shown, by number."""

    owner: Owner
    turns: Mapping[int, Turn]
    extraction: Extraction
    known: Mapping[int, UUID]
    embedded: EmbeddedTexts
    now: datetime

    def turn_ids(self, evidence: Iterable[int]) -> list[UUID]:
        return [self.turns[index].id for index in evidence]

    def time_of(self, evidence: Sequence[int]) -> datetime:
        return self.turns[evidence[0]].event_time


@dataclass(slots=True, kw_only=True)
class StoredItems:
    """Items stored so far, by the extraction's own names and numbers. `names` are all names of an entity.

    An entity is None if staff has withheld it. `failed` are names of entities and numbers of facts.
    """

    counts: ItemCounts
    entities: dict[str, Entity | None] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[int, UUID] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    failed: set[str | int] = field(default_factory=set)

    def entity_ids(self, names: Iterable[str]) -> list[UUID]:
        found = (self.entities.get(normalize_name(name)) for name in names)
        return list(dict.fromkeys(entity.id for entity in found if entity is not None))

    def is_withheld(self, names: Iterable[str]) -> bool:
        """Return whether staff has withheld one of the entities."""
        return any(self.entities.get(normalize_name(name), True) is None for name in names)

    def all_names(self, names: Iterable[str]) -> list[str]:
        return [each for name in names for each in self.names.get(normalize_name(name), [name])]

    def can_store(self, noun: str, refers_to: Iterable[str | int]) -> bool:
        """Return True if nothing that an item refers to has failed; else count the item as failed.

        It would be stored in part otherwise.
        """
        if self.failed.isdisjoint(refers_to):
            return True
        self.counts.count(noun, ItemOutcome.FAILED)
        return False

    def add_fact(self, number: int, result: FactResult | ItemOutcome) -> None:
        if isinstance(result, FactResult):
            self.counts.count("facts", result.outcome, reason=result.reason)
            self.counts.figures += Counter(result.extra_counts)
            self.facts |= {} if result.fact_id is None else {number: result.fact_id}
        elif result is ItemOutcome.FAILED:
            self.failed.add(number)


@dataclass(slots=True)
class SingleItem:
    """An item that is stored by itself. `result` is what the caller sets, or the outcome if storing it failed."""

    result: Any = None


@contextmanager
def store_alone(stored: StoredItems, noun: str) -> Iterator[SingleItem]:
    """Store one item within the block, which sets its `result`.

    If the block raises, nothing of it is stored, and the result is the outcome of the item, counted.
    """
    item = SingleItem()
    try:
        with transaction.atomic():
            yield item
    except MemoryServiceError as err:
        logger.info("an extracted item is refused: %s", err.code)
        stored.counts.refuse("by_service")
        item.result = ItemOutcome.REFUSED
    except DATABASE_ERRORS:
        raise
    except Exception as err:  # noqa: BLE001 - one item must not cost the others
        logger.error("an extracted item failed: %s", type(err).__name__)
        stored.counts.fail(noun, type(err).__name__)
        item.result = ItemOutcome.FAILED


def store_each(
    stored: StoredItems, noun: str, items: Sequence[T], store: Callable[[Sequence[T]], Sequence[R]]
) -> Sequence[R | ItemOutcome]:
    """Store items together or, if that fails, each by itself with `store_alone`. `store` is all or nothing."""
    try:
        return store(items)
    except DATABASE_ERRORS:
        raise
    except Exception as err:  # noqa: BLE001 - tried again item by item
        logger.info("%d extracted %s are stored one by one: %s", len(items), noun, type(err).__name__)

    results: list[R | ItemOutcome] = []
    for item in items:
        with store_alone(stored, noun) as single:
            [single.result] = store([item])
        results.append(single.result)
    return results
