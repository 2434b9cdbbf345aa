"""Staff's hand in entities: other values over those that were seen, another type, under which names stand anew, and
what marking and deleting them as any memory means for what was merged into them."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memory.errors import Conflict, Unprocessable
from memory.identity import entity_identity, holder, name_digest
from memory.models import Entity, EntityName, Kind, Memory
from memory.owner import Owner
from memory.services.accounts.access import check_version
from memory.services.embedding.embed import Embedded
from memory.services.entities.change import EntityChanges, change_entity, hold_entity, names_of
from memory.services.entities.learn import normalize_type, record_entities
from memory.services.entities.parts import merged_into
from memory.services.entities.resolve import claims_on, holder_of, lock_holder


def correct_entity(
    owner: Owner,
    entity_id: UUID,
    *,
    changes: EntityChanges,
    type: str | None = None,  # noqa: A002 - the documented name of the field
    version: int,
    embedded: Embedded,
    now: datetime,
) -> Entity:
    """Give an entity new values; `version` is the one that the caller has seen.

    Raises StaleVersion, and as `change_entity`: Conflict also for a type under which others go by its names.
    """
    with transaction.atomic():
        entity = hold_entity(owner, entity_id, now=now)
        check_version(entity.version, frozenset({version}))
        if type is not None and normalize_type(type) != entity.type:
            retype_entity(owner, entity, normalize_type(type), now=now)
        return change_entity(owner, entity_id, changes=changes, embedded=embedded, now=now)


def retype_entity(owner: Owner, entity: Entity, type: str, *, now: datetime) -> None:  # noqa: A002
    """Give a locked entity another type, and those that were merged into it. Raises Conflict."""
    absorbed: Any = Entity.objects.filter(
        account_id=entity.account_id, id__in=merged_into(entity.account_id, [entity.id])
    )
    all_of_them: list[Entity] = [entity, *absorbed.order_by("id").select_for_update(of=("memory_ptr", "self"))]
    names = names_of(entity)
    renewed = renew_identities(all_of_them, names, type)
    if set(claims_on(entity.account_id, renewed.values()).values()):
        raise Conflict("another entity of that type goes by one of these names: merge the two under one type")
    for name in names:
        name.identity = renewed.get(name.identity, name.identity)
    EntityName.objects.bulk_update(names, ["identity"])
    for each in all_of_them:
        identity = renewed.get(each.identity, each.identity)
        Memory.objects.filter(id=each.id).update(identity=identity, version=F("version") + 1, updated_at=now)
    rows: Any = Entity.objects.filter(pk__in=[each.id for each in all_of_them])
    rows.update(type=type)
    record_entities(owner, "update", all_of_them)


def renew_identities(entities: Collection[Entity], names: Collection[EntityName], type: str) -> dict[str, str]:  # noqa: A002
    """What the names stand under with another type, by what they stand under now, each in the channel that it is of."""
    entity, *_ = entities
    held_by = holder_of(entity)
    written = {name_digest(held_by, name): name for each in entities for name in each.names}
    held = {row.identity for row in names}
    renewed = {}
    for row in names:
        name = written.get(row.name_digest, row.name)
        for channel in {each.channel for each in entities}:
            there = replace(held_by, channel=channel)
            before = entity_identity(there, type=entity.type, name=name)
            if before in held:
                renewed[before] = entity_identity(there, type=type, name=name)
    return renewed


def merged_among(entity_ids: Collection[UUID]) -> set[UUID]:
    """Those that were merged into another, and come back by a split only.

    Raises Unprocessable for those that have no names, and no other that has them: whoever met them would make them
    anew, beside them.
    """
    rows: Any = Entity.objects.filter(pk__in=entity_ids)
    merged = set(rows.filter(merged_into__isnull=False).values_list("pk", flat=True))
    if rows.filter(known_names__isnull=True).exclude(pk__in=merged).exists():
        raise Unprocessable("one of these entities has no name left that it would be found by: make it anew")
    return merged


def hold_parts(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """What was merged into the entities among these memories; until the transaction ends, nobody merges another."""
    rows: Any = Entity.objects.visible_to(owner, Kind.ENTITY).filter(pk__in=memory_ids)
    found = {row.id: holder_of(row) for row in rows}
    holders = {holder(each): each for each in found.values()}
    for name in sorted(holders):
        lock_holder(holders[name])
    return merged_into(owner.account_id, found) if found else []
