"""Rows of entities: the text that is searched, reading and locking them, and updating many that changed."""

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from memory.errors import Unprocessable, require_found
from memory.identity import entity_identity, name_digest, normalize_name
from memory.models import Entity, EntityName, Kind, Link, Memory
from memory.models.entities import MAX_ENTITY_NAME_CHARACTERS, MAX_ENTITY_TYPE_CHARACTERS
from memory.models.statements import binary_cursor
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.resolve import holds_memory
from memory.services.memories.links import MENTIONS
from memory.services.memories.store import TextUpdate, update_texts

UPDATE_ENTITIES = """
UPDATE memories m SET version = new.version, salience = new.salience, archived = new.archived,
    expires_at = new.expires_at, event_time = new.event_time, identity = new.identity, name = new.name,
    aliases = new.aliases, description = new.description, properties = new.properties,
    merged_into_id = new.merged_into_id, updated_at = %s
FROM unnest(%s::uuid[], %s::int[], %s::float8[], %s::bool[], %s::timestamptz[], %s::timestamptz[],
        %s::text[], %s::text[], %s::jsonb[], %s::text[], %s::jsonb[], %s::uuid[])
    AS new (id, version, salience, archived, expires_at, event_time, identity, name, aliases, description, properties,
        merged_into_id)
WHERE m.account_id = %s AND m.id = new.id
"""

EntityState = tuple[Any, ...]
"""The columns of an entity that may change, for comparison."""


def entity_text(name: str, aliases: Sequence[str], description: str) -> str:
    """Return the text of an entity that is searched and embedded: name, aliases in brackets, description.

    >>> entity_text("Ana Lima", ["Anita"], "A baker.")
    'Ana Lima (Anita). A baker.'
    """
    named = f"{name} ({', '.join(aliases)})" if aliases else name
    return f"{named}. {description}" if description.strip() else named


def text_of_entity(entity: Entity) -> str:
    return entity_text(entity.name, entity.aliases, entity.description)


def distinct_names(names: Iterable[str], *, excluded: Collection[str] = ()) -> list[str]:
    """Return the names as written, without normalized duplicates and without the `excluded` ones."""
    seen = {normalize_name(name) for name in excluded}
    kept = []
    for name in names:
        if normalize_name(name) not in seen:
            seen.add(normalize_name(name))
            kept.append(name)
    return kept


def make_name_row(holder: Owner, entity: Entity, name: str) -> EntityName:
    """Return the row of an entity's name. `holder` is its holder in the entity's channel (`owner_of_row`)."""
    return EntityName(
        account_id=entity.account_id,
        entity_id=entity.id,
        identity=entity_identity(holder, type=entity.type, name=name),
        name_digest=name_digest(holder, name),
        # normalizing width and ligatures may make a name longer than it was written
        name=normalize_name(name)[:MAX_ENTITY_NAME_CHARACTERS],
    )


def lock_entity_rows(account_id: UUID, entity_ids: Collection[UUID]) -> list[Entity]:
    """Lock entities against changes, merges and deletion until the transaction ends. Returns those found, by id.

    References to them may still be added: those take `lock_entities`.
    """
    rows = Entity.objects.filter(account_id=account_id, id__in=entity_ids).order_by("id")
    return list(rows.select_for_update(no_key=True))


def lock_entity_rows_exclusively(account_id: UUID, entity_ids: Collection[UUID]) -> list[Entity]:
    """Lock entities as `lock_entity_rows` does, and against new references to them."""
    rows = Entity.objects.filter(account_id=account_id, id__in=entity_ids).order_by("id")
    return list(rows.select_for_update())


def entity_state(entity: Entity) -> EntityState:
    """Return the entity's changeable columns in the order of UPDATE_ENTITIES.

    Lists and objects are JSON, since 1 equals True in Python.
    """
    return (
        *(entity.salience, entity.archived, entity.expires_at, entity.event_time, entity.identity, entity.name),
        *(json.dumps(entity.aliases), entity.description, json.dumps(entity.properties), entity.merged_into_id),
    )


def update_changed_entities(
    owner: Owner, entities: Iterable[Entity], states: dict[UUID, EntityState], *, embedded: EmbeddedTexts, now: datetime
) -> list[Entity]:
    """Store the locked entities that differ from their former `states`, and return them.

    Each gets its next version; one with another text loses its vectors. One statement, and those of `update_texts`
    where texts changed.
    """
    changed = [entity for entity in entities if entity_state(entity) != states[entity.id]]
    with_new_text = [entity for entity in changed if entity.text != text_of_entity(entity)]
    if with_new_text:
        updates = [TextUpdate(row=entity, text=text_of_entity(entity)) for entity in with_new_text]
        update_texts(owner, updates, embedded=embedded, now=now)
    for entity in changed:
        entity.version += entity not in with_new_text
        entity.updated_at = now
    if changed:
        columns: list[Any] = [[entity.id for entity in changed], [entity.version for entity in changed]]
        columns += map(list, zip(*map(entity_state, changed), strict=True))
        with binary_cursor() as cursor:
            cursor.execute(UPDATE_ENTITIES, [now, *columns, owner.account_id])
    return changed


def merged_entity_ids(account_id: UUID, entity_ids: Collection[UUID]) -> list[UUID]:
    """Return the ids of the entities that were merged into these."""
    rows = Entity.objects.filter(account_id=account_id, merged_into_id__in=entity_ids)
    return list(rows.values_list("id", flat=True))


def follow_merges(account_id: UUID, ids: Collection[UUID]) -> list[UUID]:
    """Return the distinct ids in order, with that of the entity that one was merged into instead of its own.

    At most one statement.
    """
    if not ids:
        return []
    rows = Entity.objects.filter(account_id=account_id, pk__in=ids, merged_into__isnull=False)
    survivors: dict[UUID, UUID] = dict(rows.values_list("pk", "merged_into_id"))
    return list(dict.fromkeys(survivors.get(each, each) for each in ids))


def visible_entities(owner: Owner, *, now: datetime) -> QuerySet[Entity]:
    """Return the entities that the owner knows in the active channel and `_global`, except those merged into others."""
    return Entity.objects.visible_to(owner, Kind.ENTITY).in_channels(owner).live(now)


def find_entity(owner: Owner, entity_id: UUID, *, now: datetime) -> Entity:
    """Return an entity of any channel. Raises NotFound."""
    rows = Entity.objects.visible_to(owner, Kind.ENTITY).live(now)
    return require_found(rows.filter(id=entity_id).first(), "entity")


def lock_entities(owner: Owner, entity_ids: Collection[UUID]) -> list[Entity]:
    """Lock entities of the owner's knowledge against deletion and merging until the transaction ends.

    Returns those that are live, in the order of their ids; others may take the same lock. An owner that acts for the
    account locks any of its entities.
    """
    if not entity_ids:
        return []
    rows = Entity.objects.filter(account_id=owner.account_id, id__in=set(entity_ids))
    statement, parameters = rows.filter(archived=False, quarantined=False).order_by("id").query.sql_with_params()
    # Django does not offer FOR KEY SHARE
    locked = Entity.objects.raw(f"{statement} FOR KEY SHARE OF memories", parameters)
    return [entity for entity in locked if holds_memory(owner, entity)]


def is_live_entity(entity: Entity, *, now: datetime) -> bool:
    return not (entity.archived or entity.quarantined or (entity.expires_at is not None and entity.expires_at <= now))


def list_entities(
    owner: Owner,
    *,
    of_type: str = "",
    name: str = "",
    conversation_id: str = "",
    now: datetime,
) -> QuerySet[Entity]:
    """Return the visible entities, filtered by type, by name or alias, and by a conversation that mentions them."""
    rows = visible_entities(owner, now=now)
    if of_type:
        rows = rows.filter(type=normalize_type(of_type))
    if name:
        known = EntityName.objects.filter(
            account_id=owner.account_id, name=normalize_name(name)[:MAX_ENTITY_NAME_CHARACTERS]
        )
        rows = rows.filter(id__in=known.values("entity_id"))
    if conversation_id:
        turns = Memory.objects.visible_to(owner, Kind.TURN).in_conversation(conversation_id)
        mentions = Link.objects.filter(account_id=owner.account_id, type=MENTIONS, source_id__in=turns.values("id"))
        rows = rows.filter(id__in=mentions.values("target_id"))
    return rows


def find_live_or_merged_entity(owner: Owner, entity_id: UUID, *, now: datetime) -> Entity:
    """Return an entity of any channel, or one that was merged into another. Raises NotFound."""
    merged = Q(merged_into__isnull=False, quarantined=False)
    rows = Entity.objects.visible_to(owner, Kind.ENTITY).filter(id=entity_id)
    return require_found((rows.live(now) | rows.filter(merged)).first(), "entity")


def normalize_type(given: str) -> str:
    """Return a type in lower case with single spaces. Raises Unprocessable for an empty or too long one.

    >>> normalize_type(" Public  Place")
    'public place'
    """
    bare = " ".join(given.casefold().split())
    if not 1 <= len(bare) <= MAX_ENTITY_TYPE_CHARACTERS:
        raise Unprocessable(f"a type must have 1 to {MAX_ENTITY_TYPE_CHARACTERS} characters")
    return bare
