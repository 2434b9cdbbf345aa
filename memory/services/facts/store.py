"""Reading facts, locking what they refer to, and storing the versions of what is believed of them.

A version ends where the next one begins, and none is ever changed. Times of belief never go backwards: where a clock
was behind, a belief begins when the one before it began.

Rows are locked in the order in which all code locks memories, so that nothing is deleted while a fact comes to refer to
it. Only rows that are changed themselves are locked for update; others may be referring to the rest at the same time.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, UUIDField, Value
from django.db.models.functions import Coalesce, Greatest, Now
from django.db.models.query import ModelIterable

from memory.errors import NotFound, Unprocessable
from memory.models import Entity, Fact, FactVersion, Kind, Link, Memory, Temporal, Turn
from memory.models.facts import ENDED, true_at
from memory.owner import Owner
from memory.services.custody.naming import ERASED
from memory.services.duplicates.resolve import SURVIVOR_CONDITION, survivor_parameters
from memory.services.memories.links import ABOUT, DERIVED_FROM, PROMOTED_FROM, SUPERSEDES

LOCK_MEMORIES = f"""
SELECT id, kind, agent_id, user_id,
    archived OR quarantined OR (expires_at IS NOT NULL AND expires_at <= %s) FROM memories
WHERE account_id = %s AND (id = ANY(%s::uuid[]) OR (kind = 'fact' AND identity = ANY(%s::text[]))
    OR {SURVIVOR_CONDITION}) AND NOT (kind = 'turn' AND buried AND text = '{ERASED}')
ORDER BY id FOR """  # noqa: S608 - composed of our own constants
LOCK_KEY_SHARE, LOCK_UPDATE = f"{LOCK_MEMORIES} KEY SHARE", f"{LOCK_MEMORIES} UPDATE"

BELIEF_FIELDS = ("number", "claim", "confidence", "temporal", "valid_from", "valid_to", "recorded_at")
"""Columns of a version that have the fact's values of that time."""
VERSION_ANNOTATIONS = {f"known_{column}": column for column in (*BELIEF_FIELDS, "retracted_at")}
"""Annotation of a fact, and the column of the believed version that it holds."""
COLUMN_OF_FIELD = {"claim": "text", "number": "belief_number"}
"""Columns of a fact whose names differ from those of the version's fields."""
SAVED_COLUMNS = (
    *("confidence", "temporal", "valid_from", "valid_from_source", "valid_to", "status", "recorded_at", "retracted_at"),
    *("attribute", "belief_number", "identity", "version", "updated_at"),
)


class FactsAsBelieved(ModelIterable):  # type: ignore[type-arg]
    """Iterable that returns facts with the values of the version that they are annotated with."""

    def __iter__(self) -> Iterator[Any]:
        for fact in super().__iter__():
            for name, column in VERSION_ANNOTATIONS.items():
                setattr(fact, COLUMN_OF_FIELD.get(column, column), getattr(fact, name))
            yield fact


def annotate_believed_version(rows: QuerySet[Fact], versions: Q) -> QuerySet[Fact]:
    """Return the rows with the values of the version that the condition `versions` picks (at most one for each row)."""
    # the account first, as in the index of versions
    picked = rows.filter(versions, versions__account_id=F("account_id"))
    known = picked.annotate(**{name: F(f"versions__{column}") for name, column in VERSION_ANNOTATIONS.items()})
    known._iterable_class = FactsAsBelieved
    return known


def begin_belief(fact: Fact, *, now: datetime) -> None:
    """Mark a new fact as believed from `now` on. The caller saves it and its first version."""
    fact.status, fact.recorded_at, fact.retracted_at = Fact.Status.ACTIVE, now, None


def next_belief_at(fact: Fact, now: datetime) -> datetime:
    """Return `now`, or the start of the fact's latest belief where the clock is behind that."""
    return now if fact.recorded_at is None else max(now, fact.recorded_at)


def store_fact_versions(owner: Owner, facts: Sequence[Fact], *, reason: FactVersion.Reason) -> None:
    """Store what is believed of these facts from their `recorded_at` on. No statement for no facts."""
    versions = [
        FactVersion(
            account_id=fact.account_id,
            fact_id=fact.id,
            reason=reason,
            actor=owner.actor,
            **{name: getattr(fact, COLUMN_OF_FIELD.get(name, name)) for name in BELIEF_FIELDS},
        )
        for fact in facts
    ]
    if versions:
        FactVersion.objects.bulk_create(versions)


def revise_beliefs(owner: Owner, facts: Sequence[Fact], *, reason: FactVersion.Reason, now: datetime) -> None:
    """Store the current columns of locked facts as the next version of each. Three statements.

    The confidence that is stored is the one before fading, as the belief was written just now.
    """
    end_open_versions(facts, now=now)
    for fact in facts:
        fact.confidence = fact.unfaded_confidence
        fact.recorded_at = next_belief_at(fact, now)
        fact.belief_number += 1
    store_fact_versions(owner, facts, reason=reason)
    save_facts(facts, now=now)


def end_beliefs(facts: Sequence[Fact], *, status: Fact.Status, now: datetime) -> None:
    """End the belief in locked facts; pending ones are never believed. The same claims may be learned again."""
    end_open_versions(facts, now=now)
    for fact in facts:
        fact.retracted_at = None if fact.recorded_at is None else next_belief_at(fact, now)
        fact.status, fact.identity = status, str(fact.id)
    save_facts(facts, now=now)


def end_open_versions(facts: Sequence[Fact], *, now: datetime) -> None:
    current = FactVersion.objects.filter(
        account_id__in={fact.account_id for fact in facts},
        fact_id__in=[fact.id for fact in facts],
        retracted_at=None,
    )
    current.update(retracted_at=Greatest(F("recorded_at"), Value(now)))


def save_facts(facts: Sequence[Fact], *, now: datetime) -> None:
    """Save the columns of locked facts, except their texts, and increment their row versions."""
    for fact in facts:
        fact.version, fact.updated_at = fact.version + 1, now
    if len(facts) == 1:
        # others may wait for its lock, and a bulk update takes three times as long to put together
        row = Fact.objects.filter(account_id=facts[0].account_id, id=facts[0].id)
        row.update(**{name: getattr(facts[0], name) for name in SAVED_COLUMNS})
        return
    Fact.objects.filter(account_id__in={fact.account_id for fact in facts}).bulk_update(facts, SAVED_COLUMNS)


def visible_facts(
    owner: Owner,
    *,
    now: datetime,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    min_confidence: float | None = None,
) -> QuerySet[Fact]:
    """Return the facts of the owner's channels that are true now, or were true at `as_of`.

    With `known_at`, claim, confidence, temporal and both validity times are those of the version believed at that time;
    status and all other columns are the current ones.
    """
    rows: QuerySet[Fact] = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).live(now)
    if known_at is None:
        rows = rows.filter(true_at(as_of or now))
    else:
        rows = annotate_believed_version(rows, true_at(as_of or now, known_at, prefix="versions__"))
    if min_confidence is not None:
        rows = rows.filter(**{f"{'' if known_at is None else 'known_'}confidence__gte": min_confidence})
    return rows


def find_fact(owner: Owner, fact_id: UUID) -> Fact:
    """Return a fact of any status, time or channel, with its current or last believed values. Raises NotFound."""
    return find_facts_by_id(owner, [fact_id])[0]


def find_facts_by_id(owner: Owner, fact_ids: Sequence[UUID]) -> list[Fact]:
    """Return facts as `find_fact` does, in the order of `fact_ids`. Raises NotFound unless all exist."""
    rows = Fact.objects.visible_to(owner, Kind.FACT).filter(archived=False, quarantined=False, id__in=fact_ids)
    facts = {fact.id: fact for fact in rows.filter(Q(expires_at=None) | Q(expires_at__gt=Now()))}
    if not facts.keys() >= set(fact_ids):
        raise NotFound("no such fact")
    return [facts[fact_id] for fact_id in fact_ids]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHistory:
    """All versions of a fact in order, and the ids that it is linked to. Staff may have deleted some of those rows."""

    versions: Sequence[FactVersion]
    turns: Sequence[UUID]
    entities: Sequence[UUID]
    supersedes: Sequence[UUID]
    superseded_by: Sequence[UUID]
    promoted_from: Sequence[UUID]
    promoted_to: Sequence[UUID]


def list_facts(
    owner: Owner,
    *,
    now: datetime,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    min_confidence: float | None = None,
    status: str = "",
    temporal: str = "",
) -> QuerySet[Fact]:
    """Return `visible_facts` of one status (ENDED is one) and one temporal, or of all.

    Without `as_of` and `known_at`, a status ignores when facts were true, as hardly any that is not active is true now.
    Facts of temporal `future` are active ones then, as most begin later. `Fact.status_at` says what a status means.
    """
    if as_of is not None or known_at is not None or (not status and temporal != Temporal.FUTURE):
        rows = visible_facts(owner, now=now, as_of=as_of, known_at=known_at, min_confidence=min_confidence)
        rows = rows.filter(has_status(status, now=now)) if status else rows
    else:
        rows = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).live(now)
        status = status or Fact.Status.ACTIVE
        rows = rows.filter(has_status(status, now=now), confidence__gte=min_confidence or 0)
        # one that was wrong all along is replaced today, whenever it was said to end
        rows = rows.filter(retracted_at=None) if status == Fact.Status.ACTIVE else rows
    if not temporal:
        return rows
    return rows.filter(**{"temporal" if known_at is None else "known_temporal": temporal})


def has_status(status: str, *, now: datetime) -> Q:
    """Return the condition on facts whose `status_at` is this one."""
    if status == Fact.Status.ACTIVE:
        is_open = Q(valid_to=None) | Q(valid_to__gt=now)
        return Q(status=status) & is_open | Q(status=Fact.Status.SUPERSEDED, valid_to__gt=now)
    if status == ENDED:
        return Q(status=Fact.Status.ACTIVE, valid_to__lte=now)
    if status == Fact.Status.SUPERSEDED:
        return Q(status=status) & (Q(valid_to=None) | Q(valid_to__lte=now))
    return Q(status=status)


def filter_about_entity(rows: QuerySet[Fact], account_id: UUID, entity_id: UUID) -> QuerySet[Fact]:
    """Return the facts that are ABOUT the entity, or about the one that it was merged into."""
    merged = Entity.objects.filter(account_id=account_id, pk=entity_id).values("merged_into_id")
    target = Coalesce(Subquery(merged), Value(entity_id, output_field=UUIDField()))
    return rows.filter(Exists(links_from_outer_fact(ABOUT).filter(target_id=target)))


def filter_by_conversation(rows: QuerySet[Fact], conversation_id: str) -> QuerySet[Fact]:
    """Return the facts that were learned in the conversation or are derived from one of its turns."""
    turns = Memory.objects.filter(account_id=OuterRef("account_id"), conversation_id=conversation_id, kind=Kind.TURN)
    derived = links_from_outer_fact(DERIVED_FROM).filter(Exists(turns.filter(id=OuterRef("target_id"))))
    return rows.filter(Q(conversation_id=conversation_id) | Exists(derived))


def links_from_outer_fact(link_type: str) -> QuerySet[Link]:
    """Return the links that leave the fact of the outer query."""
    return Link.objects.filter(account_id=OuterRef("account_id"), source_id=OuterRef("pk"), type=link_type)


def read_fact_history(fact: Fact) -> FactHistory:
    """Return the versions and links of a fact. Three statements."""
    versions = FactVersion.objects.filter(account_id=fact.account_id, fact_id=fact.id).order_by("number")
    links = Link.objects.filter(account_id=fact.account_id).order_by("id")
    out = list(links.filter(source_id=fact.id).values_list("type", "target_id"))
    into = list(links.filter(target_id=fact.id, type__in=(SUPERSEDES, PROMOTED_FROM)).values_list("type", "source_id"))
    return FactHistory(
        versions=list(versions),
        turns=[end for link_type, end in out if link_type == DERIVED_FROM],
        entities=[end for link_type, end in out if link_type == ABOUT],
        supersedes=[end for link_type, end in out if link_type == SUPERSEDES],
        superseded_by=[end for link_type, end in into if link_type == SUPERSEDES],
        promoted_from=[end for link_type, end in out if link_type == PROMOTED_FROM],
        promoted_to=[end for link_type, end in into if link_type == PROMOTED_FROM],
    )


LINKED_IDS = tuple(each.name for each in fields(FactHistory) if each.name != "versions")
"""Fields of a FactHistory that hold ids of memories."""


def read_visible_history(owner: Owner, fact: Fact) -> FactHistory:
    """Return the history of a fact without ids of memories that the owner may not see. Four statements."""
    history = read_fact_history(fact)
    linked = {memory_id for name in LINKED_IDS for memory_id in getattr(history, name)}
    seen = set(Memory.objects.visible_to(owner).filter(id__in=linked).values_list("id", flat=True))
    ids = {name: [each for each in getattr(history, name) if each in seen] for name in LINKED_IDS}
    return replace(history, **ids)


class LockedMemory(NamedTuple):
    """Columns of a locked memory that decide whether it is referred to. `is_gone`: archived, quarantined, expired."""

    id: UUID
    kind: str
    agent_id: str
    user_id: str
    is_gone: bool


def lock_for_reference(
    owner: Owner, *, ids: Collection[UUID], identities: Collection[str] = (), now: datetime
) -> dict[UUID, LockedMemory]:
    """Lock memories, and facts with these identities, against deletion until the transaction ends.

    So are facts that those were merged into. Finds rows of the whole account: visibility is checked elsewhere. Turns
    that were erased are not found: nothing may be derived from them any more.
    """
    return lock_referenced_rows(LOCK_KEY_SHARE, owner, ids=ids, identities=identities, now=now)


def lock_for_change(owner: Owner, ids: Collection[UUID], *, shared: Collection[UUID] = (), now: datetime) -> None:
    """Lock memories against changes and new references, and the `shared` ones against deletion.

    One statement for each run of consecutive ids of one sort, so that all rows are locked in the order of their ids.
    """
    changed = set(ids)
    for is_changed, run in groupby(sorted({*ids, *shared}), key=changed.__contains__):
        statement = LOCK_UPDATE if is_changed else LOCK_KEY_SHARE
        lock_referenced_rows(statement, owner, ids=list(run), identities=(), now=now)


def lock_referenced_rows(
    statement: str, owner: Owner, *, ids: Collection[UUID], identities: Collection[str], now: datetime
) -> dict[UUID, LockedMemory]:
    survivors = survivor_parameters(owner.account_id, Kind.FACT, list(identities))
    with connection.cursor() as cursor:
        cursor.execute(statement, [now, owner.account_id, list(ids), list(identities), *survivors])
        return {row[0]: LockedMemory._make(row) for row in cursor.fetchall()}


def find_turn_conversations(owner: Owner, turn_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the conversations of turns that the owner may see, by turn. Raises Unprocessable for others."""
    if not turn_ids:
        return {}
    rows = Turn.objects.visible_to(owner, Kind.TURN).filter(id__in=turn_ids)
    found = dict(rows.values_list("id", "conversation_id"))
    for turn_id in turn_ids:
        if turn_id not in found:
            raise Unprocessable(f"there is no turn {turn_id}")
    return found


def entity_names_by_id(owner: Owner, entity_ids: Collection[UUID]) -> dict[UUID, list[str]]:
    """Return the name and aliases of each entity. No query for no entities."""
    if not entity_ids:
        return {}
    rows = Entity.objects.filter(account_id=owner.account_id, id__in=entity_ids)
    found = rows.values_list("id", "name", "aliases")
    return {entity_id: [name, *aliases] for entity_id, name, aliases in found}


def entity_names_by_fact(account_id: UUID, fact_ids: Collection[UUID]) -> dict[UUID, list[str]]:
    """Return for each fact all names of all entities that it is about. Two statements."""
    links = Link.objects.filter(account_id=account_id, source_id__in=fact_ids, type=ABOUT).order_by("id")
    about = list(links.values_list("source_id", "target_id"))
    names = entity_names_by_id(Owner(account_id=account_id), {entity_id for _fact_id, entity_id in about})
    found: dict[UUID, list[str]] = {}
    for fact_id, entity_id in about:
        found.setdefault(fact_id, []).extend(names.get(entity_id, ()))
    return found


def links_from_facts(facts: Sequence[Fact], *types: str) -> list[Link]:
    """Return the links of these types that leave the facts of one account, oldest first."""
    rows = Link.objects.filter(
        account_id=facts[0].account_id, source_id__in=[fact.id for fact in facts], type__in=types
    )
    return list(rows.order_by("id"))


def names_about_fact(fact: Fact) -> list[str]:
    """Return all names of all entities that the fact is about."""
    return entity_names_by_fact(fact.account_id, [fact.id]).get(fact.id, [])
