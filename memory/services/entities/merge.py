"""Merging two entities that are one, and splitting one that is two.

The loser of a merge is archived as a part (`EntityPart`) of the survivor; its names and links move to the survivor,
which also gets the description and properties that it lacks. When a part leaves, what it gave goes with it, whatever
was merged or split in between.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.errors import Unprocessable
from memory.identity import holder_key, name_digest, normalize_name
from memory.models import Entity, EntityName, Kind
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.change import (
    find_own_entity,
    lock_own_entity,
    read_entity_names,
    release_identity,
    require_live_entities,
)
from memory.services.entities.learn import record_entities
from memory.services.entities.relink import (
    EntityPart,
    assign_parts,
    give_details,
    lock_parts_of,
    move_links_to_survivor,
    split_links,
    store_parts,
    take_back_details,
)
from memory.services.entities.resolve import lock_holder, owner_of_row
from memory.services.entities.store import (
    distinct_names,
    entity_state,
    lock_entity_rows_exclusively,
    merged_entity_ids,
    text_of_entity,
    update_changed_entities,
)
from memory.services.memories.store import store_memories
from memory_project.ids import uuid7

EMBED_LATER = EmbeddedTexts(model="", width=0, vectors={})
"""No vectors: the job embeds entities that were merged or split."""


def merge_entities(owner: Owner, into_id: UUID, from_id: UUID, *, now: datetime) -> Entity:
    """Merge the entity `from_id` into `into_id`: it is archived, and its names and links move. Returns the survivor.

    The survivor's new text is embedded by the job. Raises NotFound, Forbidden for another holder's entity,
    Unprocessable for two entities of different types, holders or channels (except into one of `_global`), and for one
    with itself.
    """
    if into_id == from_id:
        raise Unprocessable("an entity cannot be merged into itself")
    with transaction.atomic():
        survivor, loser = (find_own_entity(owner, entity_id, now=now) for entity_id in (into_id, from_id))
        if survivor.type != loser.type:
            raise Unprocessable("entities of different types cannot be merged: change the type of one of them first")
        if holder_key(owner_of_row(survivor)) != holder_key(owner_of_row(loser)):
            raise Unprocessable("entities can be merged only if they belong to one user, or to one agent")
        if survivor.channel not in (loser.channel, GLOBAL_CHANNEL):
            raise Unprocessable("an entity can be merged only into one of its own channel or of `_global`")
        survivor, part, parts, others = lock_for_merge(survivor, loser, now=now)
        loser = part.entity
        states = {entity.id: entity_state(entity) for entity in (survivor, loser)}
        # names stay in their channel, where look-ups then find the survivor
        rows = read_entity_names(loser)
        part.names = {row.id for row in rows}.difference(*(each.names for each in parts))
        survivor.aliases = distinct_names([*survivor.aliases, *loser.names], excluded=[survivor.name])
        move_names(loser, survivor, rows)
        thirds = move_links_to_survivor(part, survivor, parts=parts, others=others)
        merge_details(survivor, part, parts)
        assign_parts(parts, survivor)
        loser.archived, loser.merged_into = True, survivor
        store_parts([part, *parts, *others, *thirds])
        update_changed_entities(owner, [survivor, loser], states, embedded=EMBED_LATER, now=now)
        record_entities(owner, "merge", [survivor, loser])
    return survivor


def lock_for_merge(
    survivor: Entity, loser: Entity, *, now: datetime
) -> tuple[Entity, EntityPart, list[EntityPart], list[EntityPart]]:
    """Lock two entities and their parts, alone and under their holder's lock.

    Returns the survivor, the loser as a part, the loser's parts and the survivor's.
    """
    lock_holder(owner_of_row(survivor))
    both = (survivor.id, loser.id)
    rows = {
        row.id: row
        for row in lock_entity_rows_exclusively(
            survivor.account_id, [*both, *merged_entity_ids(survivor.account_id, both)]
        )
    }
    require_live_entities([rows[entity_id] for entity_id in both if entity_id in rows], count=2, now=now)
    parts = [EntityPart.from_entity(row) for row in rows.values() if row.id not in both]
    of_loser = [part for part in parts if part.entity.merged_into_id == loser.id]
    others = [part for part in parts if part.entity.merged_into_id == survivor.id]
    return rows[survivor.id], EntityPart(entity=rows[loser.id]), of_loser, others


def move_names(giver: Entity, taker: Entity, rows: Sequence[EntityName]) -> None:
    release_identity(giver, rows)
    EntityName.objects.filter(account_id=giver.account_id, id__in=[row.id for row in rows]).update(entity_id=taker.id)


def merge_details(survivor: Entity, part: EntityPart, parts: Sequence[EntityPart]) -> None:
    """Give the survivor the loser's own details, then what the loser's parts had given to it."""
    loser = part.entity
    taken = [take_back_details(each, loser) for each in parts]
    give_details(part, survivor, properties=loser.properties, description=loser.description)
    for each, (properties, description) in zip(parts, taken, strict=True):
        give_details(each, survivor, properties=properties, description=description)
    survivor.salience = max(survivor.unfaded_salience, loser.unfaded_salience)
    survivor.event_time = min(survivor.event_time, loser.event_time)


def split_entity(
    owner: Owner, entity_id: UUID, *, names: Sequence[str], link_ids: Sequence[UUID] = (), now: datetime
) -> Entity:
    """Split one entity into two: the second one gets these names. Returns the second one.

    Where the names include that of a merged part, the part is revived and gets its links back; otherwise the second one
    is new. `link_ids` are further links of the entity that move. Texts are embedded by the job. Raises NotFound,
    Forbidden for another holder's entity, Unprocessable for names that it does not have, for all of its names, and for
    links of others.
    """
    with transaction.atomic():
        entity = lock_own_entity(owner, entity_id, now=now)
        split = plan_split(entity, lock_parts_of(entity.account_id, [entity.id]), names)
        revived, going = split.revived, split.going
        other = create_split_entity(entity, split.names, owner=owner, now=now) if revived is None else revived.entity
        states = {each.id: entity_state(each) for each in (entity, other)}
        split_names(entity, other, split)
        split_details(entity, other, split)
        other.archived, other.merged_into = False, None
        assign_parts(going, other)
        thirds = split_links(entity, other, revived=revived, leaving=going, staying=split.staying, link_ids=link_ids)
        store_parts([*going, *split.staying, *thirds, *([] if revived is None else [revived])])
        update_changed_entities(owner, [entity, other], states, embedded=EMBED_LATER, now=now)
        record_entities(owner, "split", [entity, other])
    return other


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySplit:
    """The names that leave an entity, as it writes them, and their `rows`; `kept` are the name digests that stay.

    `revived` is the part that becomes the second entity again; `going` are the parts whose own names leave as well,
    `staying` the others.
    """

    names: Sequence[str]
    rows: Sequence[EntityName]
    kept: Collection[str]
    revived: EntityPart | None
    going: Sequence[EntityPart]
    staying: Sequence[EntityPart]


def plan_split(entity: Entity, parts: Sequence[EntityPart], given: Sequence[str]) -> EntitySplit:
    """Decide what leaves the entity by these names. Raises Unprocessable.

    Where several parts have a leaving name, each in its channel, those that leave take only their own rows of it.
    """
    written = {normalize_name(name): name for name in entity.names}
    wanted = list(dict.fromkeys(normalize_name(name) for name in given))
    if not wanted or not all(name in written for name in wanted):
        raise Unprocessable("an entity can be split only by names that it has")
    # as the entity writes them, in the given order
    names = [written[name] for name in wanted]
    rows, held_by = read_entity_names(entity), owner_of_row(entity)
    leaving = {name_digest(held_by, name) for name in names}
    revived = find_part_to_revive(parts, names, rows, leaving)
    came = name_digests_of_part(revived, rows)
    others = [part for part in parts if part is not revived]
    going = [
        part
        for part in others
        if name_digest(held_by, part.entity.name) in (leaving - came) & name_digests_of_part(part, rows)
    ]
    taken = set[UUID]().union(*(part.names for part in (*going, *([] if revived is None else [revived]))))
    came = {row.name_digest for row in rows if row.id in taken}
    gone = [row for row in rows if row.name_digest in leaving and (row.id in taken or row.name_digest not in came)]
    if len(gone) == len(rows):
        raise Unprocessable("an entity cannot be split by all of its names: at least one must stay")
    return EntitySplit(
        names=names,
        rows=gone,
        kept={row.name_digest for row in rows if row not in gone},
        revived=revived,
        going=going,
        staying=[part for part in others if part not in going],
    )


def find_part_to_revive(
    parts: Sequence[EntityPart], names: Sequence[str], rows: Sequence[EntityName], leaving: Collection[str]
) -> EntityPart | None:
    """Return the part whose own name comes first in `names`, or None; of several, the one with most names leaving."""
    for name in names:
        named = [part for part in parts if normalize_name(part.entity.name) == normalize_name(name)]
        among = [part for part in named if not part.entity.quarantined]
        if among:
            return max(among, key=lambda part: len(name_digests_of_part(part, rows).intersection(leaving)))
    return None


def name_digests_of_part(part: EntityPart | None, rows: Sequence[EntityName]) -> set[str]:
    """Return the digests of the part's names that are still among the rows."""
    return set() if part is None else {row.name_digest for row in rows if row.id in part.names}


def create_split_entity(entity: Entity, leaving: Sequence[str], *, owner: Owner, now: datetime) -> Entity:
    """Store a new entity for the same holder, as yet without name rows."""
    name, *aliases = leaving
    other = Entity(
        id=uuid7(),
        kind=Kind.ENTITY,
        name=name,
        type=entity.type,
        aliases=aliases,
        salience=entity.unfaded_salience,
        event_time=entity.event_time,
        source=entity.source,
    )
    other.text = text_of_entity(other)
    store_memories(owner_of_row(entity, actor=owner.actor), [other], embedded=EMBED_LATER, own={}, now=now)
    return other


def split_names(entity: Entity, other: Entity, split: EntitySplit) -> None:
    """Move the leaving names to the other entity, its own first; the entity keeps the rest."""
    held_by, leaving = owner_of_row(entity), {normalize_name(name) for name in split.names}
    move_names(entity, other, split.rows)
    entity.name, *entity.aliases = [name for name in entity.names if name_digest(held_by, name) in split.kept]
    own = [name for name in other.aliases if normalize_name(name) in leaving]
    other.aliases = distinct_names([*own, *split.names], excluded=[other.name])


def split_details(entity: Entity, other: Entity, split: EntitySplit) -> None:
    """Give each entity the details that it or its parts brought."""
    if split.revived is not None:
        take_back_details(split.revived, entity)
    for part in split.going:
        properties, description = take_back_details(part, entity)
        if not part.entity.quarantined:
            properties, description = part.entity.properties, part.entity.description
        give_details(part, other, properties=properties, description=description)
