"""What facts refer to: the entities that they are about, the turns that they come from, the facts that they follow.

All of it is locked in the order of everybody who locks memories, so that nothing is deleted while a fact comes to
refer to it. Only what is changed itself is locked alone: others may be referring to the rest at the same time.
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
from memory.services.duplicates.standing import STANDING, bind_standing
from memory.services.entities.resolve import of_holder
from memory.services.memories.links import ABOUT, PROMOTED_FROM

LOCK = f"""
SELECT id, kind, agent_id, user_id,
    archived OR quarantined OR (expires_at IS NOT NULL AND expires_at <= %s) FROM memories
WHERE account_id = %s AND (id = ANY(%s::uuid[]) OR (kind = 'fact' AND identity = ANY(%s::text[])) OR {STANDING})
ORDER BY id FOR """  # noqa: S608 - composed of our own constants
SHARED, ALONE = f"{LOCK} KEY SHARE", f"{LOCK} UPDATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A locked memory, as far as who refers to it has to know. `is_gone`: archived, quarantined or expired."""

    id: UUID
    kind: str
    agent_id: str
    user_id: str
    is_gone: bool


def lock_shared(
    owner: Owner, *, ids: Collection[UUID], identities: Collection[str] = (), now: datetime
) -> dict[UUID, Reference]:
    """Keep these memories, and the facts of these identities, from being deleted until the transaction ends.

    And those that stand for such facts. Of the whole account: who may see them is asked elsewhere.
    """
    return lock(SHARED, owner, ids=ids, identities=identities, now=now)


def lock_alone(owner: Owner, ids: Collection[UUID], *, shared: Collection[UUID] = (), now: datetime) -> None:
    """Keep others from changing these memories, or referring to them, and `shared` ones from being deleted.

    One statement a run of either sort, so that all are locked in one order.
    """
    alone = set(ids)
    for is_alone, run in groupby(sorted({*ids, *shared}), key=alone.__contains__):
        lock(ALONE if is_alone else SHARED, owner, ids=list(run), identities=(), now=now)


def lock(
    statement: str, owner: Owner, *, ids: Collection[UUID], identities: Collection[str], now: datetime
) -> dict[UUID, Reference]:
    standing = bind_standing(owner.account_id, Kind.FACT, list(identities))
    with connection.cursor() as cursor:
        cursor.execute(statement, [now, owner.account_id, list(ids), list(identities), *standing])
        names = ("id", "kind", "agent_id", "user_id", "is_gone")
        return {row[0]: Reference(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()}


def check_entities(owner: Owner, entity_ids: Collection[UUID], locked: dict[UUID, Reference]) -> None:
    """Raises Unprocessable unless all are live entities of the owner's own knowledge (`identity.holder`).

    An owner without agent and user acts for the account: any of the account's will do.
    """
    for entity_id in entity_ids:
        found = locked.get(entity_id)
        if found is None or found.kind != Kind.ENTITY or found.is_gone or not holds(owner, found):
            raise Unprocessable(f"there is no entity {entity_id}")


def holds(owner: Owner, row: Reference | Memory) -> bool:
    """Whether a memory is of the owner's own knowledge (`identity.holder`), or of the account that it acts for."""
    if owner.user_id:
        return row.user_id == owner.user_id
    return not owner.agent_id or (row.user_id, row.agent_id) == ("", owner.agent_id)


def find_turns(owner: Owner, turn_ids: Collection[UUID]) -> dict[UUID, str]:
    """The conversations of turns that the owner may see. Raises Unprocessable for any other. No query for none."""
    if not turn_ids:
        return {}
    rows = Turn.objects.visible_to(owner, Kind.TURN).filter(id__in=turn_ids)
    found = dict(rows.values_list("id", "conversation_id"))
    for turn_id in turn_ids:
        if turn_id not in found:
            raise Unprocessable(f"there is no turn {turn_id}")
    return found


def names_of(owner: Owner, entity_ids: Collection[UUID]) -> dict[UUID, list[str]]:
    """The names that entities go by. No query for none."""
    if not entity_ids:
        return {}
    rows: Any = Entity.objects.filter(account_id=owner.account_id, id__in=entity_ids)
    found = rows.values_list("id", "name", "aliases")
    return {entity_id: [name, *aliases] for entity_id, name, aliases in found}


def names_about(account_id: UUID, fact_ids: Collection[UUID]) -> dict[UUID, list[str]]:
    """For each of the facts, all names of all entities that it is about. Two statements."""
    links = Link.objects.filter(account_id=account_id, source_id__in=fact_ids, type=ABOUT).order_by("id")
    about = list(links.values_list("source_id", "target_id"))
    names = names_of(Owner(account_id=account_id), {entity_id for _fact_id, entity_id in about})
    found: dict[UUID, list[str]] = {}
    for fact_id, entity_id in about:
        found.setdefault(fact_id, []).extend(names.get(entity_id, ()))
    return found


def links_from(facts: Sequence[Fact], *types: str) -> list[Link]:
    """Of these types, first made first."""
    rows = Link.objects.filter(
        account_id=facts[0].account_id, source_id__in=[fact.id for fact in facts], type__in=types
    )
    return list(rows.order_by("id"))


HELD = Q(recorded_at__isnull=False, retracted_at=None) | Q(status=Fact.Status.PENDING)
"""What is believed, or waits for staff to decide whether it is."""


def same_claims(holder: Owner, fact: Fact) -> list[UUID]:
    """The holder's other facts that are believed, or pending, and claim the same (`normalize_claim`), by id.

    In whatever channel; about something of the same name, or about nothing where either is. Copies by promotion
    whatever they are about. Reads through all that the holder knows: no index knows what claims the same.
    """
    claim = normalize_claim(fact.text)
    rows = Fact.objects.filter(of_holder(holder), HELD, account_id=holder.account_id, kind=Kind.FACT)
    texts = rows.exclude(pk=fact.pk).order_by("id").values_list("id", "text").iterator()
    same = [fact_id for fact_id, text in texts if normalize_claim(text) == claim]
    if not same:
        return []
    names, copies = names_about(holder.account_id, [fact.id, *same]), promoted_with(fact)
    return [each for each in same if each in copies or share_a_name(names.get(fact.id, ()), names.get(each, ()))]


def share_a_name(ours: Collection[str], theirs: Collection[str]) -> bool:
    """Whether two are about something of the same name, or one of them about nothing."""
    if not ours or not theirs:
        return True
    return not {normalize_name(name) for name in ours}.isdisjoint(normalize_name(name) for name in theirs)


def promoted_with(fact: Fact) -> set[UUID]:
    """The facts that it was promoted to, and from."""
    links = Link.objects.filter(Q(source_id=fact.id) | Q(target_id=fact.id), account_id=fact.account_id)
    ends = links.filter(type=PROMOTED_FROM).values_list("source_id", "target_id")
    return {end for pair in ends for end in pair if end != fact.id}


def still_same(fact: Fact, fact_ids: Collection[UUID]) -> list[Fact]:
    """Those of the facts, locked by now, that are believed or pending still, and claim the same still."""
    if not fact_ids:
        return []
    rows: Any = Fact.objects.filter(HELD, account_id=fact.account_id, kind=Kind.FACT, id__in=fact_ids)
    claim = normalize_claim(fact.text)
    return [each for each in rows.order_by("id") if normalize_claim(each.text) == claim]
