"""Merging two entities that are one, and splitting one that is two.

The one that is merged into the other is archived, a part of it (`entity_parts`); its names and its links
(`entity_links`) go over. What the other had not (a description, properties) it gets. What a part gave goes with it
when it leaves, whatever was merged or split in between.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.errors import Unprocessable
from memory.identity import holder, name_digest, normalize_name
from memory.models import Entity, EntityName, Kind
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.embedding.embed import Embedded
from memory.services.entities.change import find_own, give_up_identity, hold_entity, names_of, only_live
from memory.services.entities.learn import record_entities
from memory.services.entities.relink import move_links, share_links
from memory.services.entities.resolve import holder_of, lock_holder
from memory.services.entities.rows import (
    Part,
    give_details,
    hand_over,
    lock_parts,
    lock_rows_alone,
    merged_into,
    state_of,
    take_details_back,
    text_of,
    without_doubles,
    write_changed,
    write_parts,
)
from memory.services.memories.store import store_memories
from memory_project.ids import uuid7

LATER = Embedded(model="", width=0, vectors={})
"""No vectors: what is merged or split is embedded by the job."""


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
        survivor, part, parts, others = lock_both(survivor, loser, now=now)
        loser = part.entity
        states = {entity.id: state_of(entity) for entity in (survivor, loser)}
        merge_names(survivor, part, parts)
        thirds = move_links(part, survivor, parts=parts, others=others)
        merge_details(survivor, part, parts)
        hand_over(parts, survivor)
        loser.archived, loser.merged_into = True, survivor
        write_parts([part, *parts, *others, *thirds])
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


def lock_both(survivor: Entity, loser: Entity, *, now: datetime) -> tuple[Entity, Part, list[Part], list[Part]]:
    """The two as they are now, and the parts of the loser, then of the survivor; nobody comes to refer to them.

    Under their holder's lock.
    """
    lock_holder(holder_of(survivor))
    both = (survivor.id, loser.id)
    rows = {
        row.id: row for row in lock_rows_alone(survivor.account_id, [*both, *merged_into(survivor.account_id, both)])
    }
    only_live([rows[entity_id] for entity_id in both if entity_id in rows], count=2, now=now)
    parts = [Part.read(row) for row in rows.values() if row.id not in both]
    of_loser = [part for part in parts if part.entity.merged_into_id == loser.id]
    others = [part for part in parts if part.entity.merged_into_id == survivor.id]
    return rows[survivor.id], Part(entity=rows[loser.id]), of_loser, others


def merge_names(survivor: Entity, part: Part, parts: Sequence[Part]) -> None:
    """The names stay in their channel: who looks for them there finds the survivor."""
    loser, rows = part.entity, names_of(part.entity)
    part.names = {row.id for row in rows}.difference(*(each.names for each in parts))
    survivor.aliases = without_doubles([*survivor.aliases, *loser.names], besides=[survivor.name])
    move_names(loser, survivor, rows)


def move_names(giver: Entity, taker: Entity, rows: Sequence[EntityName]) -> None:
    give_up_identity(giver, rows)
    EntityName.objects.filter(account_id=giver.account_id, id__in=[row.id for row in rows]).update(entity_id=taker.id)


def merge_details(survivor: Entity, part: Part, parts: Sequence[Part]) -> None:
    """The loser gives what is its own, then its parts what they had given to it."""
    loser = part.entity
    taken = [take_details_back(each, loser) for each in parts]
    give_details(part, survivor, properties=loser.properties, description=loser.description)
    for each, (properties, description) in zip(parts, taken, strict=True):
        give_details(each, survivor, properties=properties, description=description)
    survivor.salience = max(survivor.unfaded_salience, loser.unfaded_salience)
    survivor.event_time = min(survivor.event_time, loser.event_time)


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
        parting = part_names(entity, lock_parts(entity.account_id, [entity.id]), names)
        revived, going = parting.revived, parting.going
        other = make_other(entity, parting.names, owner=owner, now=now) if revived is None else revived.entity
        states = {each.id: state_of(each) for each in (entity, other)}
        share_names(entity, other, parting)
        part_details(entity, other, parting)
        other.archived, other.merged_into = False, None
        hand_over(going, other)
        thirds = share_links(entity, other, revived=revived, leaving=going, staying=parting.staying, link_ids=link_ids)
        write_parts([*going, *parting.staying, *thirds, *([] if revived is None else [revived])])
        write_changed(owner, [entity, other], states, embedded=LATER, now=now)
        record_entities(owner, "split", [entity, other])
    return other


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Which `names` of an entity leave, as it has them written, by which `rows`; `kept` are the digests of the others.

    `revived` is the part that the other one was, `going` are those parts whose own name leaves as well.
    """

    names: Sequence[str]
    rows: Sequence[EntityName]
    kept: Collection[str]
    revived: Part | None
    going: Sequence[Part]
    staying: Sequence[Part]


def part_names(entity: Entity, parts: Sequence[Part], given: Sequence[str]) -> Parting:
    """Where several go by a name that leaves, in channels of their own, the parts that leave take theirs alone.

    Raises Unprocessable.
    """
    names, rows, held_by = names_leaving(entity, given), names_of(entity), holder_of(entity)
    leaving = {name_digest(held_by, name) for name in names}
    revived = part_to_revive(parts, names, rows, leaving)
    came = digests_of(revived, rows)
    others = [part for part in parts if part is not revived]
    going = [
        part for part in others if name_digest(held_by, part.entity.name) in (leaving - came) & digests_of(part, rows)
    ]
    taken = set[UUID]().union(*(part.names for part in (*going, *([] if revived is None else [revived]))))
    came = {row.name_digest for row in rows if row.id in taken}
    gone = [row for row in rows if row.name_digest in leaving and (row.id in taken or row.name_digest not in came)]
    if len(gone) == len(rows):
        raise Unprocessable("one name at least stays")
    return Parting(
        names=names,
        rows=gone,
        kept={row.name_digest for row in rows if row not in gone},
        revived=revived,
        going=going,
        staying=[part for part in others if part not in going],
    )


def part_to_revive(
    parts: Sequence[Part], names: Sequence[str], rows: Sequence[EntityName], leaving: Collection[str]
) -> Part | None:
    """The one whose own name leaves: of several the one named first; of one name, the one most of whose names leave."""
    for name in names:
        named = [part for part in parts if normalize_name(part.entity.name) == normalize_name(name)]
        among = [part for part in named if not part.entity.quarantined]
        if among:
            return max(among, key=lambda part: len(digests_of(part, rows).intersection(leaving)))
    return None


def names_leaving(entity: Entity, names: Sequence[str]) -> list[str]:
    """As the entity has them written, in the order in which they are given. Raises Unprocessable."""
    written = {normalize_name(name): name for name in entity.names}
    wanted = list(dict.fromkeys(normalize_name(name) for name in names))
    if not wanted or not all(name in written for name in wanted):
        raise Unprocessable("an entity is split by names that it goes by")
    return [written[name] for name in wanted]


def digests_of(part: Part | None, rows: Sequence[EntityName]) -> set[str]:
    """Those names of the part that the rows still keep."""
    return set() if part is None else {row.name_digest for row in rows if row.id in part.names}


def make_other(entity: Entity, leaving: Sequence[str], *, owner: Owner, now: datetime) -> Entity:
    """One that is new, whose the entity is; so far it goes by no name."""
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
    other.text = text_of(other)
    store_memories(holder_of(entity, actor=owner.actor), [other], embedded=LATER, own={}, now=now)
    return other


def share_names(entity: Entity, other: Entity, parting: Parting) -> None:
    """Those that leave are the other's from now on, its own first; the entity is called by what is left."""
    held_by, leaving = holder_of(entity), {normalize_name(name) for name in parting.names}
    move_names(entity, other, parting.rows)
    entity.name, *entity.aliases = [name for name in entity.names if name_digest(held_by, name) in parting.kept]
    own = [name for name in other.aliases if normalize_name(name) in leaving]
    other.aliases = without_doubles([*own, *parting.names], besides=[other.name])


def part_details(entity: Entity, other: Entity, parting: Parting) -> None:
    """What was given is with whom it was given for: what the other one's parts say is the other's again."""
    if parting.revived is not None:
        take_details_back(parting.revived, entity)
    for part in parting.going:
        properties, description = take_details_back(part, entity)
        if not part.entity.quarantined:
            properties, description = part.entity.properties, part.entity.description
        give_details(part, other, properties=properties, description=description)
