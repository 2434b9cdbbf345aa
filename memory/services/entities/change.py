"""Changing, correcting and deleting entities, for their holder, for the account and for staff.

Under another type, the names of an entity get new identities. The end of the module holds the
hooks for marking and deleting entities like any other memory: those that were merged into them go with them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef

from memory.audit import texts_metadata
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable, require_found
from memory.identity import entity_identity, holder_key, name_digest
from memory.masking import masks_secrets
from memory.models import Entity, EntityName, Kind, Memory
from memory.models.writer import delete_memory_rows
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_version
from memory.services.audit import write_waiting_reads
from memory.services.custody.traces import erase_traces_of_deleted
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.learn import MAX_ALIASES, check_salience, clean_entity_name, record_entities
from memory.services.entities.resolve import (
    entity_ids_by_identity,
    holds_memory,
    identities_of_names,
    lock_holder,
    owner_of_row,
)
from memory.services.entities.store import (
    distinct_names,
    entity_state,
    entity_text,
    find_live_or_merged_entity,
    is_live_entity,
    lock_entity_rows,
    lock_entity_rows_exclusively,
    make_name_row,
    merged_entity_ids,
    normalize_type,
    update_changed_entities,
)
from memory.services.memories.lifecycle import Lifecycle


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChanges:
    """New values of an entity; None keeps a value. `aliases` replaces all; without it, a former name becomes one."""

    name: str | None = None
    aliases: Sequence[str] | None = None
    description: str | None = None
    properties: dict[str, Any] | None = None
    salience: float | None = None
    type: str | None = None

    def names_after(self, entity: Entity) -> list[str]:
        """Return the entity's name and aliases after the change. Raises Unprocessable."""
        name = entity.name if self.name is None else clean_entity_name(self.name)
        aliases = entity.names if self.aliases is None else [clean_entity_name(alias) for alias in self.aliases]
        others = distinct_names(aliases, excluded=[name])
        if self.aliases is not None and len(others) > MAX_ALIASES:
            raise Unprocessable(f"an entity can have at most {MAX_ALIASES} aliases")
        return [name, *others]

    def text_after(self, entity: Entity) -> str:
        """Return the text to embed before the change."""
        name, *aliases = self.names_after(entity)
        return entity_text(name, aliases, entity.description if self.description is None else self.description)


@masks_secrets
def change_entity(
    owner: Owner,
    entity_id: UUID,
    *,
    changes: EntityChanges,
    expected: ExpectedVersions = None,
    embedded: EmbeddedTexts,
    now: datetime,
) -> Entity:
    """Give an entity new values. Names that it no longer has are free for others.

    Embed `changes.text_after` first, outside transactions. Raises NotFound, Forbidden for another holder's entity,
    StaleVersion, Conflict for names of another entity, also under a new type, Unprocessable.
    """
    check_salience(changes.salience)
    with transaction.atomic():
        entity = lock_own_entity(owner, entity_id, now=now)
        check_version(entity.version, expected)
        if changes.type is not None and normalize_type(changes.type) != entity.type:
            retype_entity(owner, entity, normalize_type(changes.type), now=now)
            entity = lock_own_entity(owner, entity_id, now=now)
        states = {entity.id: entity_state(entity)}
        name, *aliases = changes.names_after(entity)
        rename_entity(entity, [name, *aliases])
        entity.name, entity.aliases = name, aliases
        for column in ("description", "properties", "salience"):
            given = getattr(changes, column)
            setattr(entity, column, getattr(entity, column) if given is None else given)
        if update_changed_entities(owner, [entity], states, embedded=embedded, now=now):
            record_entities(owner, "update", [entity], metadata=texts_metadata(owner, [entity.text]))
    return entity


def lock_own_entity(owner: Owner, entity_id: UUID, *, now: datetime) -> Entity:
    """Lock an entity of the owner's own knowledge, and that knowledge. Raises NotFound, Forbidden."""
    found = find_own_entity(owner, entity_id, now=now)
    lock_holder(owner_of_row(found))
    return require_live_entities(lock_entity_rows(owner.account_id, [found.id]), count=1, now=now)[0]


def find_own_entity(owner: Owner, entity_id: UUID, *, now: datetime) -> Entity:
    """Return an entity that the owner may change.

    Raises NotFound, Forbidden for one that it may only read, Conflict for one that was merged into another.
    """
    found = find_live_or_merged_entity(owner, entity_id, now=now)
    if not holds_memory(owner, found):
        raise Forbidden("an entity can be changed only by its holder (its user, or its agent) or by the account")
    if found.merged_into_id is not None:
        raise Conflict(f"the entity was merged into {found.merged_into_id}: use that one, or split it first")
    return found


def require_live_entities(locked: Sequence[Entity], *, count: int, now: datetime) -> Sequence[Entity]:
    """Return the locked entities. Raises NotFound if one was deleted, merged or archived before it was locked."""
    if len(locked) < count or not all(is_live_entity(entity, now=now) for entity in locked):
        raise NotFound("no such entity")
    return locked


def rename_entity(entity: Entity, names: Sequence[str]) -> None:
    """Give a locked entity exactly these names. Raises Conflict for a name of another entity."""
    holder = owner_of_row(entity)
    claims = entity_ids_by_identity(entity.account_id, identities_of_names(holder, type=entity.type, names=names))
    if set(claims.values()) - {entity.id}:
        raise Conflict("another entity of this type has one of these names")
    wanted = {name_digest(holder, name): name for name in names}
    # a name may occur several times, in the channels of entities that were merged into this one
    rows = read_entity_names(entity)
    freed = [row for row in rows if row.name_digest not in wanted]
    release_identity(entity, freed)
    if freed:
        EntityName.objects.filter(account_id=entity.account_id, id__in=[row.id for row in freed]).delete()
    kept = {row.name_digest for row in rows}
    new = [make_name_row(holder, entity, name) for digest, name in wanted.items() if digest not in kept]
    EntityName.objects.bulk_create(new)


def read_entity_names(entity: Entity) -> list[EntityName]:
    return list(EntityName.objects.filter(account_id=entity.account_id, entity_id=entity.id))


def release_identity(entity: Entity, rows: Sequence[EntityName]) -> None:
    """Give an entity its id as identity if its first name is among `rows`, which go to another entity or to none."""
    if entity.identity in {row.identity for row in rows}:
        entity.identity = str(entity.id)


def remove_entity(owner: Owner, entity_id: UUID, *, expected: ExpectedVersions = None, now: datetime) -> None:
    """Delete an entity for good, with its names and links, and the entities that were merged into it.

    Facts about it stay. Raises NotFound, Forbidden for another holder's entity, StaleVersion.
    """
    write_waiting_reads(owner.account_id)
    with transaction.atomic():
        found = find_own_entity(owner, entity_id, now=now)
        lock_holder(owner_of_row(found))
        rows = lock_entity_rows_exclusively(
            owner.account_id, [found.id, *merged_entity_ids(owner.account_id, [found.id])]
        )
        locked = {row.id: row for row in rows}
        check_version(require_found(locked.get(found.id), "entity").version, expected)
        erase_traces_of_deleted(owner, [row.id for row in rows])
        delete_memory_rows(owner.account_id, [row.id for row in rows])
        record_entities(owner, "delete", rows)


def retype_entity(owner: Owner, entity: Entity, type: str, *, now: datetime) -> None:  # noqa: A002
    """Give a locked entity, and those that were merged into it, another type. Raises Conflict."""
    absorbed = merged_entity_ids(entity.account_id, [entity.id])
    entities = [entity, *lock_entity_rows_exclusively(entity.account_id, absorbed)]
    names = read_entity_names(entity)
    renewed = identities_under_type(entities, names, type)
    if set(entity_ids_by_identity(entity.account_id, renewed.values()).values()):
        raise Conflict("another entity of that type has one of these names: merge the two under one type first")
    for name in names:
        name.identity = renewed.get(name.identity, name.identity)
    EntityName.objects.filter(account_id=entity.account_id).bulk_update(names, ["identity"])
    for each in entities:
        row = Entity.objects.filter(account_id=entity.account_id, id=each.id)
        identity = renewed.get(each.identity, each.identity)
        row.update(type=type, identity=identity, version=F("version") + 1, updated_at=now)
    record_entities(owner, "update", entities)


def identities_under_type(entities: Collection[Entity], names: Collection[EntityName], type: str) -> dict[str, str]:  # noqa: A002
    """Return the names' identities under another type, by their current ones, each in the channel of its entity."""
    entity, *_ = entities
    held_by = owner_of_row(entity)
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


class EntityLifecycle(Lifecycle):
    """Entities, whose names are unique and may have been taken over by a merge."""

    def find_along(self) -> Collection[UUID]:
        """Return the entities that were merged into erased ones, and lock their holders against merges."""
        if not self.operation.is_erasure:
            return ()
        rows = Entity.objects.visible_to(self.owner, Kind.ENTITY).filter(pk__in=self.memory_ids)
        found = {row.id: owner_of_row(row) for row in rows}
        holders = {holder_key(each): each for each in found.values()}
        for name in sorted(holders):
            lock_holder(holders[name])
        return merged_entity_ids(self.owner.account_id, found) if found else ()

    def leave_out(self, rows: Sequence[Memory]) -> Collection[UUID]:
        """Keep archived what was merged into another entity and has no name of its own: a split brings it back.

        Raises Unprocessable for an entity without a name that was not merged: upserts would create it again.
        """
        if not rows or self.operation.name != "unarchive":
            return ()
        restored = Entity.objects.filter(account_id=self.owner.account_id, pk__in=[row.id for row in rows])
        merged = set(restored.filter(merged_into__isnull=False).values_list("pk", flat=True))
        names = EntityName.objects.filter(account_id=self.owner.account_id, entity_id=OuterRef("pk"))
        if restored.filter(~Exists(names)).exclude(pk__in=merged).exists():
            raise Unprocessable("one of these entities has no name left to be found by: create it again instead")
        return merged
