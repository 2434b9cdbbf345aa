"""The links of entities that are merged or split: where they are, and where they were made.

A link is between the two that its ends are part of. Which parts it was made between, its origins, those parts have
written down (`entity_parts`), not the link, whose properties are its writers'. So

- a link that would be there twice is dropped, and written down, whole, on those of its origins that are parts; it comes
  back as soon as it is another link again;
- a link whose two ends are part of the same one, or one of them is, is between its origins, out of sight.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.errors import Unprocessable
from memory.models import Entity, Link, Memory
from memory.models.binary import binary_cursor
from memory.services.entities.rows import SIDES, Part, lock_parts, lock_rows_alone

LINKS_AT_ONCE = 500

Place = tuple[UUID, str, UUID]
"""Source, type and target of a link: there is one link of each."""

# `inside` are the ends that the loser's links do not go out of sight by: the survivor, and the loser's own parts
MOVE_LINKS = """
WITH moving AS MATERIALIZED (
    SELECT l.*, CASE WHEN source_id = %(loser)s THEN 'source' ELSE 'target' END AS side,
        CASE WHEN source_id = %(loser)s THEN %(survivor)s ELSE source_id END AS to_source,
        CASE WHEN target_id = %(loser)s THEN %(survivor)s ELSE target_id END AS to_target
    FROM memory_links l WHERE account_id = %(account_id)s AND %(loser)s IN (source_id, target_id)
        AND NOT (source_id = ANY(%(inside)s::uuid[]) OR target_id = ANY(%(inside)s::uuid[]))
), twice AS MATERIALIZED (
    SELECT moving.* FROM moving JOIN memory_links kept ON kept.account_id = moving.account_id
        AND kept.source_id = to_source AND kept.type = moving.type AND kept.target_id = to_target
), dropped AS (
    DELETE FROM memory_links l USING twice WHERE l.id = twice.id
), moved AS (
    UPDATE memory_links l SET source_id = to_source, target_id = to_target
    FROM moving WHERE l.id = moving.id AND moving.id NOT IN (SELECT id FROM twice)
    RETURNING l.id, moving.side
)
SELECT
    (SELECT coalesce(jsonb_agg(id), '[]') FROM moved WHERE side = 'source') AS source,
    (SELECT coalesce(jsonb_agg(id), '[]') FROM moved WHERE side = 'target') AS target,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('id', id, 'source', source_id, 'target', target_id, 'type', type,
        'weight', weight, 'properties', properties, 'created_at', created_at)), '[]') FROM twice) AS dropped
"""


def move_links(loser: Part, survivor: Entity, *, parts: Sequence[Part], others: Sequence[Part]) -> list[Part]:
    """The links of one locked entity to third ones are the survivor's; what is between the two is out of sight.

    `parts` are the loser's, `others` the survivor's. Answers those of third ones that have a link written down.
    """
    inside = [survivor.id, *(part.id for part in parts)]
    ends = {"account_id": survivor.account_id, "survivor": survivor.id, "loser": loser.id}
    with binary_cursor() as cursor:
        cursor.execute(MOVE_LINKS, {**ends, "inside": inside})
        *moved, dropped = cursor.fetchone()
    for side, ids in zip(SIDES, moved, strict=True):
        loser.links[side] = {UUID(link_id) for link_id in ids}.difference(*(part.links[side] for part in parts))
    put_out_of_sight(loser.entity, survivor, parts=[*parts, *others])
    return write_down([link_of(survivor.account_id, told) for told in dropped], parts=[loser, *parts])


def put_out_of_sight(one: Entity, other: Entity, *, parts: Sequence[Part]) -> None:
    """Links between the two go back to where they were made."""
    if not parts:
        return
    between = Q(source_id=one.id, target_id=other.id) | Q(source_id=other.id, target_id=one.id)
    links = list(Link.objects.filter(between, account_id=one.account_id))
    take_to_origins(links, parts)
    Link.objects.bulk_update(links, ["source", "target"], batch_size=LINKS_AT_ONCE)


def write_down(dropped: Sequence[Link], *, parts: Sequence[Part]) -> list[Part]:
    """Links that are deleted, on those of their origins that are parts; answers the parts of third ones among these."""
    if not dropped:
        return []
    ends = {end for link in dropped for end in (link.source_id, link.target_id)} - {part.id for part in parts}
    thirds = lock_parts(dropped[0].account_id, ends)
    take_to_origins(dropped, [*parts, *thirds])
    by_id = {part.id: part for part in (*parts, *thirds)}
    for link in dropped:
        note_dropped(link, by_id)
    return thirds


def take_to_origins(links: Iterable[Link], parts: Iterable[Part]) -> None:
    """Set the links' ends to those that they were made between; it is no longer written down that they moved."""
    noted = {(side, link_id): part for part in parts for side in SIDES for link_id in part.links[side]}
    for link in links:
        for side in SIDES:
            part = noted.get((side, link.id))
            if part is not None:
                part.links[side].discard(link.id)
                setattr(link, f"{side}_id", part.id)


def note_dropped(link: Link, parts: dict[UUID, Part]) -> None:
    for end in (link.source_id, link.target_id):
        if end in parts:
            parts[end].dropped[link.id] = told_of(link)


def share_links(
    entity: Entity,
    other: Entity,
    *,
    revived: Part | None,
    leaving: Sequence[Part],
    staying: Sequence[Part],
    link_ids: Collection[UUID],
) -> list[Part]:
    """Give the other one what came with it (`revived`) and with the parts that go with it, and the links named.

    Parts belong already to whom they go to. Answers those of third ones among whose links are some of these. Raises
    Unprocessable for what is not a link of the entity to a third.
    """
    coming = [*leaving, *([] if revived is None else [revived])]
    inside = {entity.id, other.id, *(part.id for part in (*coming, *staying))}
    moved = links_that_leave(entity, coming=coming, staying=staying, link_ids=link_ids)
    refuse_others(moved, link_ids, inside=inside - {entity.id})
    dropped = {link_id: told for part in (*coming, *staying) for link_id, told in part.dropped.items()}
    thirds = lock_thirds(entity.account_id, moved, dropped.values(), inside=inside)
    for third in thirds:
        dropped |= {link_id: told for link_id, told in third.dropped.items() if ends_told(told) & inside}
    for link in moved:
        setattr(link, f"{side_of(link, entity.id)}_id", other.id)
    take_to_origins(moved, [*leaving, *thirds])
    there = [*moved, *links_between(entity.account_id, {other.id, *ids_of(leaving)}, {entity.id, *ids_of(staying)})]
    lost_not = without_lost(entity.account_id, dropped.values())
    place(entity.account_id, there, lost_not, [*leaving, *staying, *thirds])
    return thirds


def ids_of(parts: Iterable[Part]) -> set[UUID]:
    return {part.id for part in parts}


def side_of(link: Link, entity_id: UUID) -> str:
    return "source" if link.source_id == entity_id else "target"


def links_that_leave(
    entity: Entity, *, coming: Sequence[Part], staying: Sequence[Part], link_ids: Collection[UUID]
) -> list[Link]:
    """Links of the entity that came with these parts, or are named, whosever they were."""
    came = {side: set(link_ids).union(*(part.links[side] for part in coming)) for side in SIDES}
    at_entity = Q(source_id=entity.id) | Q(target_id=entity.id)
    links = Link.objects.filter(at_entity, account_id=entity.account_id, id__in=came["source"] | came["target"])
    found = [link for link in links if link.id in came[side_of(link, entity.id)]]
    for part in staying:
        for link in found:
            part.links[side_of(link, entity.id)].discard(link.id)
    return found


def refuse_others(links: Iterable[Link], link_ids: Collection[UUID], *, inside: Collection[UUID]) -> None:
    thirds = {link.id for link in links if link.source_id not in inside and link.target_id not in inside}
    if set(link_ids) - thirds:
        raise Unprocessable("only links of the entity to others can be moved")


def lock_thirds(
    account_id: UUID, moved: Iterable[Link], dropped: Iterable[dict[str, Any]], *, inside: Collection[UUID]
) -> list[Part]:
    """The parts, of whatever else, that have to do with these links."""
    whole = {end for link in moved for end in (link.source_id, link.target_id)}.difference(inside)
    part = {end for told in dropped for end in ends_told(told)}.difference(inside)
    if not whole and not part:
        return []
    rows: Any = Entity.objects.filter(Q(merged_into__in=whole) | Q(pk__in=part, merged_into__isnull=False))
    found = rows.filter(account_id=account_id).values_list("id", flat=True)
    return [Part.read(row) for row in lock_rows_alone(account_id, list(found))]


def links_between(account_id: UUID, some: Collection[UUID], others: Collection[UUID]) -> list[Link]:
    there, back = Q(source__in=some, target__in=others), Q(source__in=others, target__in=some)
    return list(Link.objects.filter(there | back, account_id=account_id))


def place(account_id: UUID, there: Sequence[Link], dropped: Sequence[Link], parts: Iterable[Part]) -> None:
    """Put links between those that their origins are part of now, each once; what is there already is dropped.

    `there` are stored, wherever that is, the `dropped` are not; both say their origins, of which `parts` are parts.
    """
    if not there and not dropped:
        return
    by_id = {part.id: part for part in parts}
    stored = {link.id for link in there}
    places = {link.id: place_of(link, by_id) for link in (*there, *dropped)}
    taken = places_taken(account_id, places.values(), besides=stored)
    kept: list[Link] = []
    gone: list[Link] = []
    # first those that have no origin to be written down on, then those that can be seen
    for link in sorted((*there, *dropped), key=lambda link: (is_of_part(link, by_id), link.id not in stored, link.id)):
        source, _type, target = places[link.id]
        (gone if source == target or places[link.id] in taken else kept).append(link)
        taken.add(places[link.id])
    for link in gone:
        note_dropped(link, by_id)
    for link in kept:
        take_to_place(link, places[link.id], by_id)
    Link.objects.filter(id__in=stored.intersection(link.id for link in gone)).delete()
    moved = [link for link in kept if link.id in stored]
    Link.objects.bulk_update(moved, ["source", "target"], batch_size=LINKS_AT_ONCE)
    Link.objects.bulk_create([link for link in kept if link.id not in stored], ignore_conflicts=True)


def place_of(link: Link, parts: Mapping[UUID, Part]) -> Place:
    source, target = (whole_of(end, parts) for end in (link.source_id, link.target_id))
    return source, link.type, target


def whole_of(entity_id: UUID, parts: Mapping[UUID, Part]) -> UUID:
    return (parts[entity_id].entity.merged_into_id or entity_id) if entity_id in parts else entity_id


def is_of_part(link: Link, parts: Mapping[UUID, Part]) -> bool:
    return link.source_id in parts or link.target_id in parts


def places_taken(account_id: UUID, places: Collection[Place], *, besides: Collection[UUID]) -> set[Place]:
    """Those of the places that other links have."""
    sources, targets = {source for source, _, _ in places}, {target for _, _, target in places}
    links = Link.objects.filter(account_id=account_id, source__in=sources, target__in=targets).exclude(id__in=besides)
    return set(links.values_list("source_id", "type", "target_id"))


def take_to_place(link: Link, place: Place, parts: Mapping[UUID, Part]) -> None:
    """Set the link's ends, and write down where they were."""
    source, _type, target = place
    for side, end in zip(SIDES, (source, target), strict=True):
        origin = parts.get(getattr(link, f"{side}_id"))
        if origin is not None:
            origin.links[side].add(link.id)
            origin.dropped.pop(link.id, None)
        setattr(link, f"{side}_id", end)


def without_lost(account_id: UUID, dropped: Iterable[dict[str, Any]]) -> list[Link]:
    """The links that were dropped, but those whose ends are deleted."""
    links = [link_of(account_id, told) for told in dropped]
    ends = {end for link in links for end in (link.source_id, link.target_id)}
    if not ends:
        return []
    rows = Memory.objects.filter(account_id=account_id, id__in=ends).order_by("id")
    there = set(rows.select_for_update(no_key=True, of=("self",)).values_list("id", flat=True))
    return [link for link in links if {link.source_id, link.target_id} <= there]


def told_of(link: Link) -> dict[str, Any]:
    """A link as it is written down."""
    return {
        "id": str(link.id),
        "source": str(link.source_id),
        "target": str(link.target_id),
        "type": link.type,
        "weight": link.weight,
        "properties": link.properties,
        "created_at": link.created_at.isoformat(),
    }


def ends_told(told: dict[str, Any]) -> set[UUID]:
    return {UUID(told[side]) for side in SIDES}


def link_of(account_id: UUID, told: dict[str, Any]) -> Link:
    """A link that was written down, as it was."""
    return Link(
        id=UUID(told["id"]),
        account_id=account_id,
        source_id=UUID(told["source"]),
        target_id=UUID(told["target"]),
        type=told["type"],
        weight=told["weight"],
        properties=told["properties"],
        created_at=datetime.fromisoformat(told["created_at"]),
    )
