"""Merging two entities that are one, and splitting one that is two.

The one that is merged into the other is archived and says into which; its names and its links (`entity_links`) go
over. What the other had not (a description, properties) it gets. The archived one's metadata tell what it gave
(`given`), for a split to take it back.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import Unprocessable
from memory.identity import holder, name_digest, normalize_name
from memory.models import Entity, EntityName, Kind, Memory
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.embedding import Embedded
from memory.services.entities import record_entities
from memory.services.entity_changes import find_own, give_up_identity, hold_entity, merged_into, names_of, only_live
from memory.services.entity_links import move_links, share_links
from memory.services.entity_resolution import holder_of, lock_holder
from memory.services.entity_rows import lock_rows_alone, state_of, text_of, without_doubles, write_changed
from memory.services.memories import store_memories
from memory_project.ids import uuid7

LATER = Embedded(model="", width=0, vectors={})
"""No vectors: what is merged or split is embedded by the job."""

GIVEN = "given"


def merge_entities(owner: Owner, into_id: UUID, from_id: UUID, *, now: datetime) -> Entity:
    """Make two entities one: `from_id` is archived, and what it was called and linked to is the other's.

    Its new text is embedded by the job. Raises NotFound, Forbidden for another's knowledge, Unprocessable for two of
    different types, holders or channels (but into one of `_global`), and for one alone.
    """
    if into_id == from_id:
        raise Unprocessable("an entity is not merged into itself")
    with transaction.atomic():
        survivor, loser = (find_own(owner, entity_id, now=now) for entity_id in (into_id, from_id))
        check_mergeable(survivor, loser)
        survivor, loser = lock_both(survivor, loser, now=now)
        states = {entity.id: state_of(entity) for entity in (survivor, loser)}
        moved = move_links(loser, survivor)
        move_names(loser, survivor, names_of(loser))
        survivor.aliases = without_doubles([*survivor.aliases, *loser.names], besides=[survivor.name])
        give_details(loser, survivor, links=moved)
        loser.archived, loser.merged_into = True, survivor
        write_changed(owner, [survivor, loser], states, embedded=LATER, now=now)
        record_entities(owner, "merge", [survivor, loser])
    return survivor


def check_mergeable(survivor: Entity, loser: Entity) -> None:
    """Raises Unprocessable."""
    if survivor.type != loser.type:
        raise Unprocessable("entities of different types are not merged")
    if holder(holder_of(survivor)) != holder(holder_of(loser)):
        raise Unprocessable("entities are merged within one user's knowledge, or one agent's")
    if survivor.channel not in (loser.channel, GLOBAL_CHANNEL):
        raise Unprocessable("an entity is merged into one of its own channel, or of `_global`")


def lock_both(survivor: Entity, loser: Entity, *, now: datetime) -> tuple[Entity, Entity]:
    """The two as they are now, under their holder's lock, so that nobody comes to refer to them."""
    lock_holder(holder_of(survivor))
    rows = only_live(lock_rows_alone(survivor.account_id, [survivor.id, loser.id]), count=2, now=now)
    by_id = {row.id: row for row in rows}
    return by_id[survivor.id], by_id[loser.id]


def move_names(giver: Entity, taker: Entity, rows: Sequence[EntityName]) -> None:
    """The names stay in their channel: who looks for them there finds the other."""
    give_up_identity(giver, rows)
    EntityName.objects.filter(account_id=giver.account_id, id__in=[row.id for row in rows]).update(entity_id=taker.id)


def give_details(loser: Entity, survivor: Entity, *, links: dict[str, Any]) -> None:
    """Give the survivor what it had not, and note on the other what that is, and what became of its links."""
    properties = {name: value for name, value in loser.properties.items() if name not in survivor.properties}
    description = "" if survivor.description else loser.description
    survivor.properties = {**survivor.properties, **properties}
    survivor.description = survivor.description or description
    survivor.salience = max(survivor.salience, loser.salience)
    survivor.event_time = min(survivor.event_time, loser.event_time)
    note(loser, loser.metadata | {GIVEN: {"properties": properties, "description": description, "links": links}})


def take_back(survivor: Entity, revived: Entity) -> dict[str, Any]:
    """What was given and is unchanged since is the survivor's no longer; what became of the revived one's links."""
    given = revived.metadata.get(GIVEN, {})
    properties: dict[str, Any] = given.get("properties", {})
    survivor.properties = {
        name: value
        for name, value in survivor.properties.items()
        if name not in properties or properties[name] != value
    }
    if given.get("description") and survivor.description == given["description"]:
        survivor.description = ""
    note(revived, {name: value for name, value in revived.metadata.items() if name != GIVEN})
    links: dict[str, Any] = given.get("links", {})
    return links


def note(entity: Entity, metadata: dict[str, Any]) -> None:
    entity.metadata = metadata
    Memory.objects.filter(id=entity.id).update(metadata=metadata)


def split_entity(
    owner: Owner, entity_id: UUID, *, names: Sequence[str], link_ids: Sequence[UUID] = (), now: datetime
) -> Entity:
    """Make one entity two: the other one goes by these names, and comes back.

    Where they hold the name of one that was merged into it, that one is revived, and the links that came with it go
    back; otherwise it is new. `link_ids` are further links of the entity that are the other's. Texts are embedded by
    the job. Raises NotFound, Forbidden for another's knowledge, Unprocessable for names that it does not go by, for
    all of them, and for links that are not its own.
    """
    with transaction.atomic():
        entity = hold_entity(owner, entity_id, now=now)
        leaving = names_leaving(entity, names)
        other = lock_absorbed(entity, leaving) or make_other(entity, leaving, owner=owner, now=now)
        states = {each.id: state_of(each) for each in (entity, other)}
        share_names(entity, other, leaving)
        came: dict[str, Any] = {}
        if other.merged_into_id is not None:
            adopt_absorbed(entity, other, leaving)
            came = take_back(entity, other)
            other.archived, other.merged_into = False, None
        share_links(entity, other, came=came, link_ids=link_ids)
        write_changed(owner, [entity, other], states, embedded=LATER, now=now)
        record_entities(owner, "split", [entity, other])
    return other


def names_leaving(entity: Entity, names: Sequence[str]) -> list[str]:
    """As the entity has them written."""
    wanted = {normalize_name(name) for name in names}
    leaving = [name for name in entity.names if normalize_name(name) in wanted]
    if not wanted or wanted != {normalize_name(name) for name in leaving}:
        raise Unprocessable("an entity is split by names that it goes by")
    if len(leaving) == len(entity.names):
        raise Unprocessable("one name at least stays")
    return leaving


def absorbed_by(entity: Entity) -> dict[UUID, Entity]:
    rows: Any = Entity.objects.filter(account_id=entity.account_id, id__in=merged_into(entity))
    return {row.id: row for row in rows}


def lock_absorbed(entity: Entity, leaving: Sequence[str]) -> Entity | None:
    """The one that was merged into the entity and whose own name leaves; of several the one named first."""
    absorbed = absorbed_by(entity)
    by_name = {normalize_name(row.name): row.id for row in absorbed.values() if not row.quarantined}
    found = next((by_name[normalize_name(name)] for name in leaving if normalize_name(name) in by_name), None)
    locked = lock_rows_alone(entity.account_id, [] if found is None else [found])
    return locked[0] if locked else None


def make_other(entity: Entity, leaving: Sequence[str], *, owner: Owner, now: datetime) -> Entity:
    """One that is new, whose the entity is; so far it goes by no name."""
    name, *aliases = leaving
    other = Entity(
        id=uuid7(),
        kind=Kind.ENTITY,
        name=name,
        type=entity.type,
        aliases=aliases,
        salience=entity.salience,
        event_time=entity.event_time,
        source=entity.source,
    )
    other.text = text_of(other)
    store_memories(holder_of(entity, actor=owner.actor), [other], embedded=LATER, own={}, now=now)
    return other


def share_names(entity: Entity, other: Entity, leaving: Sequence[str]) -> None:
    """Those that leave are the other's from now on, its own first; the entity is called by what is left."""
    held_by = holder_of(entity)
    digests = {name_digest(held_by, name) for name in leaving}
    rows = [row for row in names_of(entity) if row.name_digest in digests]
    move_names(entity, other, rows)
    entity.name, *entity.aliases = [name for name in entity.names if name not in leaving]
    other.aliases = without_doubles(leaving, besides=[other.name])


def adopt_absorbed(entity: Entity, other: Entity, leaving: Sequence[str]) -> None:
    """Who was merged into the entity and whose own name leaves as well is merged into the other."""
    wanted = {normalize_name(name) for name in leaving}
    direct: Any = Entity.objects.filter(account_id=entity.account_id, merged_into_id=entity.id).exclude(id=other.id)
    moved = [entity_id for entity_id, name in direct.values_list("id", "name") if normalize_name(name) in wanted]
    rows: Any = Entity.objects.filter(account_id=entity.account_id, id__in=moved)
    rows.update(merged_into=other.id)
