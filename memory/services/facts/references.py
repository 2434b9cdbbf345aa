"""Locks and look-ups of what facts refer to: entities, turns and other facts.

Rows are locked in the order in which all code locks memories, so that nothing is deleted while a fact comes to refer to
it. Only rows that are changed themselves are locked for update; others may be referring to the rest at the same time.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q

from memory.errors import Unprocessable
from memory.identity import normalize_claim, normalize_name
from memory.models import Entity, Fact, Kind, Link, Memory, Turn
from memory.owner import Owner
from memory.services.duplicates.resolve import SURVIVOR_CONDITION, survivor_parameters
from memory.services.entities.resolve import filter_by_holder
from memory.services.memories.links import ABOUT, PROMOTED_FROM

LOCK_MEMORIES = f"""
SELECT id, kind, agent_id, user_id,
    archived OR quarantined OR (expires_at IS NOT NULL AND expires_at <= %s) FROM memories
WHERE account_id = %s AND (id = ANY(%s::uuid[]) OR (kind = 'fact' AND identity = ANY(%s::text[]))
    OR {SURVIVOR_CONDITION})
ORDER BY id FOR """  # noqa: S608 - composed of our own constants
LOCK_KEY_SHARE, LOCK_UPDATE = f"{LOCK_MEMORIES} KEY SHARE", f"{LOCK_MEMORIES} UPDATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedMemory:
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

    So are facts that those were merged into. Finds rows of the whole account: visibility is checked elsewhere.
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
        names = ("id", "kind", "agent_id", "user_id", "is_gone")
        return {row[0]: LockedMemory(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()}


def check_fact_entities(owner: Owner, entity_ids: Collection[UUID], locked: dict[UUID, LockedMemory]) -> None:
    """Raise Unprocessable unless all are live entities of the owner's own knowledge (`identity.holder_key`).

    An owner without agent and user acts for the account and may use any of its entities.
    """
    for entity_id in entity_ids:
        found = locked.get(entity_id)
        if found is None or found.kind != Kind.ENTITY or found.is_gone or not holds_memory(owner, found):
            raise Unprocessable(f"there is no entity {entity_id}")


def holds_memory(owner: Owner, row: LockedMemory | Memory) -> bool:
    """Return True if the memory is the owner's knowledge (`identity.holder_key`), or the owner acts for the account."""
    if owner.user_id:
        return row.user_id == owner.user_id
    return not owner.agent_id or (row.user_id, row.agent_id) == ("", owner.agent_id)


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
    rows: Any = Entity.objects.filter(account_id=owner.account_id, id__in=entity_ids)
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


BELIEVED_OR_PENDING = Q(recorded_at__isnull=False, retracted_at=None) | Q(status=Fact.Status.PENDING)
"""Facts that are believed, or wait for staff to decide whether they are."""


def find_equal_claims(holder: Owner, fact: Fact) -> list[UUID]:
    """Return the ids of the holder's other believed or pending facts with an equal claim (`normalize_claim`), ordered.

    They may be in any channel, and must be about an entity of the same name; where either is about nothing, the claim
    alone decides. Copies made by globalizing count whatever they are about. Reads all facts of the holder, as no index
    holds normalized claims.
    """
    claim = normalize_claim(fact.text)
    rows = Fact.objects.filter(
        filter_by_holder(holder), BELIEVED_OR_PENDING, account_id=holder.account_id, kind=Kind.FACT
    )
    texts = rows.exclude(pk=fact.pk).order_by("id").values_list("id", "text").iterator()
    same = [fact_id for fact_id, text in texts if normalize_claim(text) == claim]
    if not same:
        return []
    names, copies = entity_names_by_fact(holder.account_id, [fact.id, *same]), find_globalized_copies(fact)
    return [each for each in same if each in copies or shares_a_name(names.get(fact.id, ()), names.get(each, ()))]


def shares_a_name(ours: Collection[str], theirs: Collection[str]) -> bool:
    """Return True if the two lists have a normalized name in common, or one of them is empty."""
    if not ours or not theirs:
        return True
    return not {normalize_name(name) for name in ours}.isdisjoint(normalize_name(name) for name in theirs)


def find_globalized_copies(fact: Fact) -> set[UUID]:
    """Return the ids of the facts that this one was globalized to or from."""
    links = Link.objects.filter(Q(source_id=fact.id) | Q(target_id=fact.id), account_id=fact.account_id)
    ends = links.filter(type=PROMOTED_FROM).values_list("source_id", "target_id")
    return {end for pair in ends for end in pair if end != fact.id}


def filter_equal_claims(fact: Fact, fact_ids: Collection[UUID]) -> list[Fact]:
    """Return those of the locked facts that are still believed or pending, and still have an equal claim."""
    if not fact_ids:
        return []
    rows: Any = Fact.objects.filter(BELIEVED_OR_PENDING, account_id=fact.account_id, kind=Kind.FACT, id__in=fact_ids)
    claim = normalize_claim(fact.text)
    return [each for each in rows.order_by("id") if normalize_claim(each.text) == claim]
