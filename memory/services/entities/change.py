"""Changing what is known of an entity on purpose, and deleting it. For whose knowledge it is, and the account."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memory.audit import texts_kept
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.identity import entity_identity, holder, name_digest
from memory.models import Entity, EntityName, Kind, Memory
from memory.models.writer import delete_memories
from memory.owner import Owner
from memory.services.accounts.access import check_version
from memory.services.embedding.embed import Embedded
from memory.services.entities.learn import (
    MOST_ALIASES,
    check_salience,
    checked_name,
    find_entity,
    is_live,
    normalize_type,
    record_entities,
)
from memory.services.entities.resolve import claims_on, holder_of, identities_of, lock_holder
from memory.services.entities.rows import (
    entity_text,
    lock_rows,
    lock_rows_alone,
    merged_into,
    name_row,
    state_of,
    without_doubles,
    write_changed,
)
from memory.services.facts.references import holds


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChanges:
    """New values of an entity; what is None stays. `aliases` are all of them; without, a former name becomes one."""

    name: str | None = None
    aliases: Sequence[str] | None = None
    description: str | None = None
    properties: dict[str, Any] | None = None
    salience: float | None = None

    def names_of(self, entity: Entity) -> list[str]:
        """The entity's name and aliases after the change. Raises Unprocessable."""
        name = entity.name if self.name is None else checked_name(self.name)
        aliases = entity.names if self.aliases is None else [checked_name(alias) for alias in self.aliases]
        others = without_doubles(aliases, besides=[name])
        if self.aliases is not None and len(others) > MOST_ALIASES:
            raise Unprocessable(f"an entity has at most {MOST_ALIASES} aliases")
        return [name, *others]

    def text_of(self, entity: Entity) -> str:
        """What is to be embedded before the change."""
        name, *aliases = self.names_of(entity)
        return entity_text(name, aliases, entity.description if self.description is None else self.description)


def change_entity(
    owner: Owner, entity_id: UUID, *, changes: EntityChanges, embedded: Embedded, now: datetime
) -> Entity:
    """Give an entity new values; names that it goes by no longer are free for others.

    Embed `changes.text_of` first, outside transactions. Raises NotFound, Forbidden for another's knowledge, Conflict
    for names that another entity goes by, Unprocessable.
    """
    check_salience(changes.salience)
    with transaction.atomic():
        entity = hold_entity(owner, entity_id, now=now)
        states = {entity.id: state_of(entity)}
        name, *aliases = changes.names_of(entity)
        rename(entity, [name, *aliases])
        entity.name, entity.aliases = name, aliases
        for column in ("description", "properties", "salience"):
            given = getattr(changes, column)
            setattr(entity, column, getattr(entity, column) if given is None else given)
        if write_changed(owner, [entity], states, embedded=embedded, now=now):
            record_entities(owner, "update", [entity], metadata=texts_kept(owner, [entity.text]))
    return entity


def hold_entity(owner: Owner, entity_id: UUID, *, now: datetime) -> Entity:
    """An entity of the owner's own knowledge, locked together with it. Raises NotFound, Forbidden."""
    found = find_own(owner, entity_id, now=now)
    lock_holder(holder_of(found))
    return only_live(lock_rows(owner.account_id, [found.id]), count=1, now=now)[0]


def find_own(owner: Owner, entity_id: UUID, *, now: datetime) -> Entity:
    """Raises NotFound, Forbidden where the owner may know of it, and no more."""
    found = find_entity(owner, entity_id, now=now)
    if not holds(owner, found):
        raise Forbidden("an entity is changed by whose knowledge it is: its user, or its agent")
    return found


def only_live(locked: Sequence[Entity], *, count: int, now: datetime) -> Sequence[Entity]:
    """All of them. Raises NotFound where one was deleted, merged or archived before it was locked."""
    if len(locked) < count or not all(is_live(entity, now=now) for entity in locked):
        raise NotFound("no such entity")
    return locked


def rename(entity: Entity, names: Sequence[str]) -> None:
    """Let a locked entity go by these names and no others. Raises Conflict for one that is another's."""
    holder = holder_of(entity)
    claims = claims_on(entity.account_id, identities_of(holder, type=entity.type, names=names))
    if set(claims.values()) - {entity.id}:
        raise Conflict("another entity of this type goes by one of these names")
    wanted = {name_digest(holder, name): name for name in names}
    # in channels of what was merged into it, a name may be kept more than once
    rows = names_of(entity)
    leave_names(entity, [row for row in rows if row.name_digest not in wanted])
    kept = {row.name_digest for row in rows}
    new = [name_row(holder, entity, name) for digest, name in wanted.items() if digest not in kept]
    EntityName.objects.bulk_create(new)


def names_of(entity: Entity) -> list[EntityName]:
    return list(EntityName.objects.filter(account_id=entity.account_id, entity_id=entity.id))


def leave_names(entity: Entity, rows: Sequence[EntityName]) -> None:
    """Free names that an entity goes by no longer."""
    give_up_identity(entity, rows)
    if rows:
        EntityName.objects.filter(account_id=entity.account_id, id__in=[row.id for row in rows]).delete()


def give_up_identity(entity: Entity, rows: Sequence[EntityName]) -> None:
    """An entity whose first name goes to another, or to nobody, is from then on itself alone."""
    if entity.identity in {row.identity for row in rows}:
        entity.identity = str(entity.id)


def remove_entity(owner: Owner, entity_id: UUID, *, now: datetime) -> None:
    """Delete an entity for good, with its names and links, and those that were merged into it.

    Facts about it stay, about whatever else they are about. Raises NotFound, Forbidden for another's knowledge.
    """
    with transaction.atomic():
        found = find_own(owner, entity_id, now=now)
        lock_holder(holder_of(found))
        rows = lock_rows_alone(owner.account_id, [found.id, *merged_into(owner.account_id, [found.id])])
        if found.id not in {row.id for row in rows}:
            raise NotFound("no such entity")
        delete_memories([row.id for row in rows])
        record_entities(owner, "delete", rows)


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
