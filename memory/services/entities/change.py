"""Changing what is known of an entity on purpose, and deleting it. For whose knowledge it is, and the account."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.audit import texts_kept
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.identity import name_digest
from memory.models import Entity, EntityName
from memory.models.writer import delete_memories
from memory.owner import Owner
from memory.services.embedding.embed import Embedded
from memory.services.entities.learn import (
    MOST_ALIASES,
    check_salience,
    checked_name,
    find_entity,
    is_live,
    record_entities,
)
from memory.services.entities.parts import merged_into
from memory.services.entities.resolve import claims_on, holder_of, identities_of, lock_holder
from memory.services.entities.rows import (
    entity_text,
    lock_rows,
    lock_rows_alone,
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
