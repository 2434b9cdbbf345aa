"""What is believed of facts, in versions: each ends where the next one begins, and none is ever changed.

Times of belief never go backwards: where a clock was behind, a belief begins when the one before it began.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Greatest
from django.db.models.query import ModelIterable

from memory.models import Fact, FactVersion
from memory.owner import Owner

KNOWN = {
    "known_claim": "claim",
    "known_confidence": "confidence",
    "known_temporal": "temporal",
    "known_valid_from": "valid_from",
    "known_valid_to": "valid_to",
    "known_recorded_at": "recorded_at",
    "known_retracted_at": "retracted_at",
    "known_number": "number",
}
"""What a fact is annotated with of the version that was believed."""
FACT_COLUMNS = {"claim": "text", "number": "belief_number"}
"""Where a fact calls it otherwise than its version does."""
BELIEVED = ("confidence", "temporal", "valid_from", "valid_to", "status", "recorded_at", "retracted_at")
WRITTEN = (*BELIEVED, "belief_number", "identity", "version", "updated_at")


class KnownFact(ModelIterable):  # type: ignore[type-arg]
    """Facts as they were believed at another time."""

    def __iter__(self) -> Iterator[Any]:
        for fact in super().__iter__():
            for name, column in KNOWN.items():
                setattr(fact, FACT_COLUMNS.get(column, column), getattr(fact, name))
            yield fact


def believed_versions(rows: QuerySet[Fact], versions: Q) -> QuerySet[Fact]:
    """The rows, each as the version that this condition (of at most one) picks; annotated with it (`KNOWN`)."""
    # with the account first, as their index has them
    picked = rows.filter(versions, versions__account_id=F("account_id"))
    known = picked.annotate(**{name: F(f"versions__{column}") for name, column in KNOWN.items()})
    known._iterable_class = KnownFact
    return known


def begin_belief(fact: Fact, *, now: datetime) -> None:
    """Believe a fact that was not believed before. To be saved, with a version, by the caller."""
    fact.status, fact.recorded_at, fact.retracted_at = Fact.Status.ACTIVE, now, None


def moment_after(fact: Fact, now: datetime) -> datetime:
    """Now, or when the fact's latest belief began, where a clock was behind."""
    return now if fact.recorded_at is None else max(now, fact.recorded_at)


def add_versions(owner: Owner, facts: Sequence[Fact], *, reason: FactVersion.Reason) -> None:
    """Write down what is believed of these facts from their `recorded_at` on. No statement for none."""
    versions = [
        FactVersion(
            account_id=fact.account_id,
            fact_id=fact.id,
            number=fact.belief_number,
            claim=fact.text,
            confidence=fact.confidence,
            temporal=fact.temporal,
            valid_from=fact.valid_from,
            valid_to=fact.valid_to,
            recorded_at=fact.recorded_at,  # type: ignore[misc]  # what is believed has one
            reason=reason,
            actor=owner.actor,
        )
        for fact in facts
    ]
    if versions:
        FactVersion.objects.bulk_create(versions)


def renew_beliefs(owner: Owner, facts: Sequence[Fact], *, reason: FactVersion.Reason, now: datetime) -> None:
    """Believe of locked facts what their columns say by now: the next version of each. Five statements.

    A confidence that faded is not what is believed, and is its base again: they were written just now.
    """
    end_versions(facts, now=now)
    for fact in facts:
        fact.confidence = fact.unfaded_confidence
        fact.recorded_at = moment_after(fact, now)
        fact.belief_number += 1
    add_versions(owner, facts, reason=reason)
    save_facts(facts, now=now)


def end_beliefs(facts: Sequence[Fact], *, status: Fact.Status, now: datetime) -> None:
    """Believe locked facts no longer, and pending ones never; the same may be learnt again."""
    end_versions(facts, now=now)
    for fact in facts:
        fact.retracted_at = None if fact.recorded_at is None else moment_after(fact, now)
        fact.status, fact.identity = status, str(fact.id)
    save_facts(facts, now=now)


def end_versions(facts: Sequence[Fact], *, now: datetime) -> None:
    open_ones = FactVersion.objects.filter(
        account_id__in={fact.account_id for fact in facts},
        fact_id__in=[fact.id for fact in facts],
        retracted_at=None,
    )
    open_ones.update(retracted_at=Greatest(F("recorded_at"), Value(now)))


def save_facts(facts: Sequence[Fact], *, now: datetime) -> None:
    """Store what locked facts say by now (not their texts), at the next version of their rows."""
    for fact in facts:
        fact.version, fact.updated_at = fact.version + 1, now
    rows: Any = Fact.objects
    rows.bulk_update(facts, WRITTEN)
