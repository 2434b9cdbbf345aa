"""Parts of entities, and the links and details that move when entities are merged or split.

A part is an entity that was merged into another one, its whole. Parts leave in any order, so each keeps in its metadata
(`given`, not in what it gave, which belongs to its writers) what it brought and nothing of another part. A part of a
whole that is merged itself becomes a part of the new whole, so no part has parts.

A stored link runs between wholes. Which entities it was made between, its origins, is noted on the origins that are
parts, not on the link, whose properties belong to its writers. Therefore

- a link that would exist twice is deleted and noted as `dropped`, complete, on those of its origins that are parts; it
  is stored again as soon as it differs from the other one;
- a link between two parts of one whole, or between a part and its whole, stays between its origins, out of sight.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.db.models import Q

from memory.errors import Unprocessable
from memory.models import Entity, Link, Memory
from memory.models.statements import binary_cursor
from memory.services.entities.store import lock_entity_rows_exclusively, merged_entity_ids

METADATA_KEY = "given"
SIDES = ("source", "target")
LINK_BATCH_SIZE = 500

LinkKey = tuple[UUID, str, UUID]
"""Source, type and target of a link, unique among links."""

# links from the loser to the ends in `inside` (the survivor and the loser's parts) do not move
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
    DELETE FROM memory_links l USING twice WHERE l.account_id = twice.account_id AND l.id = twice.id
), moved AS (
    UPDATE memory_links l SET source_id = to_source, target_id = to_target
    FROM moving WHERE l.account_id = moving.account_id AND l.id = moving.id AND moving.id NOT IN (SELECT id FROM twice)
    RETURNING l.id, moving.side
)
SELECT
    (SELECT coalesce(jsonb_agg(id), '[]') FROM moved WHERE side = 'source') AS source,
    (SELECT coalesce(jsonb_agg(id), '[]') FROM moved WHERE side = 'target') AS target,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('id', id, 'source', source_id, 'target', target_id, 'type', type,
        'weight', weight, 'properties', properties, 'created_at', created_at)), '[]') FROM twice) AS dropped
"""


@dataclass(slots=True, kw_only=True)
class EntityPart:
    """A locked entity that is, was or becomes part of another one, with what it brought.

    `names` are ids of name rows; `links` are ids of links by the side on which it was the end; `dropped` are serialized
    links by id. `properties` and `description` are what the whole did not have.
    """

    entity: Entity
    properties: dict[str, Any] = field(default_factory=dict)
    description: str = ""
    names: set[UUID] = field(default_factory=set)
    links: dict[str, set[UUID]] = field(default_factory=lambda: {side: set() for side in SIDES})
    dropped: dict[UUID, dict[str, Any]] = field(default_factory=dict)

    @property
    def id(self) -> UUID:
        return self.entity.id

    @classmethod
    def from_entity(cls, entity: Entity) -> Self:
        given: dict[str, Any] = entity.metadata.get(METADATA_KEY, {})
        links = given.get("links", {})
        return cls(
            entity=entity,
            properties=given.get("properties", {}),
            description=given.get("description", ""),
            names=to_ids(given.get("names", [])),
            links={side: to_ids(links.get(side, [])) for side in SIDES},
            dropped={UUID(each["id"]): each for each in links.get("dropped", [])},
        )

    def to_metadata(self) -> dict[str, Any]:
        """Return the entity's metadata with what it gave, or without once it is part of nothing."""
        metadata = {name: value for name, value in self.entity.metadata.items() if name != METADATA_KEY}
        if self.entity.merged_into_id is None:
            return metadata
        links: dict[str, Any] = {side: to_texts(self.links[side]) for side in SIDES}
        links["dropped"] = [self.dropped[link_id] for link_id in sorted(self.dropped)]
        details = {"properties": self.properties, "description": self.description}
        return {**metadata, METADATA_KEY: {**details, "names": to_texts(self.names), "links": links}}


def move_links_to_survivor(
    loser: EntityPart, survivor: Entity, *, parts: Sequence[EntityPart], others: Sequence[EntityPart]
) -> list[EntityPart]:
    """Move the loser's links with third entities to the survivor; links between the two go out of sight.

    `parts` are the loser's, `others` the survivor's. Returns the parts of third entities on which links were noted.
    """
    inside = [survivor.id, *(part.id for part in parts)]
    ends = {"account_id": survivor.account_id, "survivor": survivor.id, "loser": loser.id}
    with binary_cursor() as cursor:
        cursor.execute(MOVE_LINKS, {**ends, "inside": inside})
        *moved, dropped = cursor.fetchone()
    for side, ids in zip(SIDES, moved, strict=True):
        loser.links[side] = {UUID(link_id) for link_id in ids}.difference(*(part.links[side] for part in parts))
    if hidden := [*parts, *others]:
        # the links between the two go back to their origins
        between = Q(source_id=loser.id, target_id=survivor.id) | Q(source_id=survivor.id, target_id=loser.id)
        rows = Link.objects.filter(account_id=survivor.account_id)
        links = list(rows.filter(between))
        restore_origins(links, hidden)
        rows.bulk_update(links, ["source", "target"], batch_size=LINK_BATCH_SIZE)
    return note_dropped_links([deserialize_link(survivor.account_id, link) for link in dropped], parts=[loser, *parts])


def note_dropped_links(dropped: Sequence[Link], *, parts: Sequence[EntityPart]) -> list[EntityPart]:
    """Note deleted links on those of their origins that are parts. Returns the parts of third entities among these."""
    if not dropped:
        return []
    ends = {end for link in dropped for end in (link.source_id, link.target_id)} - {part.id for part in parts}
    thirds = lock_parts_of(dropped[0].account_id, ends)
    restore_origins(dropped, [*parts, *thirds])
    by_id = {part.id: part for part in (*parts, *thirds)}
    for link in dropped:
        note_dropped_link(link, by_id)
    return thirds


def restore_origins(links: Iterable[Link], parts: Iterable[EntityPart]) -> None:
    """Set the links' ends to their origins, and remove the notes about their moves."""
    noted = {(side, link_id): part for part in parts for side in SIDES for link_id in part.links[side]}
    for link in links:
        for side in SIDES:
            part = noted.get((side, link.id))
            if part is not None:
                part.links[side].discard(link.id)
                setattr(link, f"{side}_id", part.id)


def note_dropped_link(link: Link, parts: dict[UUID, EntityPart]) -> None:
    for end in (link.source_id, link.target_id):
        if end in parts:
            parts[end].dropped[link.id] = serialize_link(link)


def split_links(
    entity: Entity,
    other: Entity,
    *,
    revived: EntityPart | None,
    leaving: Sequence[EntityPart],
    staying: Sequence[EntityPart],
    link_ids: Collection[UUID],
) -> list[EntityPart]:
    """Move links to the other entity: those that came with `revived` and the `leaving` parts, and those in `link_ids`.

    The parts belong to their new wholes already. Returns the parts of third entities that have some of these links.
    Raises Unprocessable for ids that are not links of the entity with a third one.
    """
    coming = [*leaving, *([] if revived is None else [revived])]
    inside = {entity.id, other.id, *(part.id for part in (*coming, *staying))}
    moved = find_leaving_links(entity, coming=coming, staying=staying, link_ids=link_ids)
    others = inside - {entity.id}
    movable = {link.id for link in moved if link.source_id not in others and link.target_id not in others}
    if set(link_ids) - movable:
        raise Unprocessable("only links between the entity and other entities can be moved")
    dropped = {link_id: noted for part in (*coming, *staying) for link_id, noted in part.dropped.items()}
    thirds = lock_third_parts(entity.account_id, moved, dropped.values(), inside=inside)
    for third in thirds:
        dropped |= {link_id: noted for link_id, noted in third.dropped.items() if serialized_ends(noted) & inside}
    for link in moved:
        setattr(link, f"{side_of(link, entity.id)}_id", other.id)
    restore_origins(moved, [*leaving, *thirds])
    ours, theirs = ({whole.id, *(part.id for part in parts)} for whole, parts in ((entity, staying), (other, leaving)))
    between = Q(source__in=ours, target__in=theirs) | Q(source__in=theirs, target__in=ours)
    stored = [*moved, *Link.objects.filter(between, account_id=entity.account_id)]
    restorable = load_restorable_links(entity.account_id, dropped.values())
    store_links_of_wholes(entity.account_id, stored, restorable, [*leaving, *staying, *thirds])
    return thirds


def side_of(link: Link, entity_id: UUID) -> str:
    return "source" if link.source_id == entity_id else "target"


def find_leaving_links(
    entity: Entity, *, coming: Sequence[EntityPart], staying: Sequence[EntityPart], link_ids: Collection[UUID]
) -> list[Link]:
    """Return the entity's links that came with the `coming` parts or are named; they are no longer noted on others."""
    came = {side: set(link_ids).union(*(part.links[side] for part in coming)) for side in SIDES}
    at_entity = Q(source_id=entity.id) | Q(target_id=entity.id)
    links = Link.objects.filter(at_entity, account_id=entity.account_id, id__in=came["source"] | came["target"])
    found = [link for link in links if link.id in came[side_of(link, entity.id)]]
    for part in staying:
        for link in found:
            part.links[side_of(link, entity.id)].discard(link.id)
    return found


def lock_third_parts(
    account_id: UUID, moved: Iterable[Link], dropped: Iterable[dict[str, Any]], *, inside: Collection[UUID]
) -> list[EntityPart]:
    """Lock the parts of third entities that these links concern."""
    whole = {end for link in moved for end in (link.source_id, link.target_id)}.difference(inside)
    part = {end for noted in dropped for end in serialized_ends(noted)}.difference(inside)
    if not whole and not part:
        return []
    is_third = Q(merged_into__in=whole) | Q(pk__in=part, merged_into__isnull=False)
    found = Entity.objects.filter(is_third, account_id=account_id).values_list("id", flat=True)
    return [EntityPart.from_entity(row) for row in lock_entity_rows_exclusively(account_id, list(found))]


def store_links_of_wholes(
    account_id: UUID, present: Sequence[Link], dropped: Sequence[Link], parts: Iterable[EntityPart]
) -> None:
    """Store each link between the wholes of its origins, once; links that would exist twice are noted as dropped.

    The ends of the `present` links, stored already, and of the `dropped` ones are their origins, some of them `parts`.
    """
    if not present and not dropped:
        return
    by_id = {part.id: part for part in parts}
    stored = {link.id for link in present}
    keys = {link.id: key_between_wholes(link, by_id) for link in (*present, *dropped)}
    sources, targets = {source for source, _, _ in keys.values()}, {target for _, _, target in keys.values()}
    rows = Link.objects.filter(account_id=account_id)
    others = rows.filter(source__in=sources, target__in=targets)
    taken = set(others.exclude(id__in=stored).values_list("source_id", "type", "target_id"))
    kept: list[Link] = []
    gone: list[Link] = []
    # first links without a part to note them on, then those that are stored
    for link in sorted(
        (*present, *dropped),
        key=lambda link: (link.source_id in by_id or link.target_id in by_id, link.id not in stored, link.id),
    ):
        source, _type, target = keys[link.id]
        (gone if source == target or keys[link.id] in taken else kept).append(link)
        taken.add(keys[link.id])
    for link in gone:
        note_dropped_link(link, by_id)
    for link in kept:
        move_link(link, keys[link.id], by_id)
    gone_ids = stored.intersection(link.id for link in gone)
    rows.filter(id__in=gone_ids).delete()
    moved = [link for link in kept if link.id in stored]
    rows.bulk_update(moved, ["source", "target"], batch_size=LINK_BATCH_SIZE)
    Link.objects.bulk_create([link for link in kept if link.id not in stored], ignore_conflicts=True)


def key_between_wholes(link: Link, parts: Mapping[UUID, EntityPart]) -> LinkKey:
    source, target = (
        (parts[end].entity.merged_into_id or end) if end in parts else end for end in (link.source_id, link.target_id)
    )
    return source, link.type, target


def move_link(link: Link, key: LinkKey, parts: Mapping[UUID, EntityPart]) -> None:
    """Set the link's ends, and note on parts where they were."""
    source, _type, target = key
    for side, end in zip(SIDES, (source, target), strict=True):
        origin = parts.get(getattr(link, f"{side}_id"))
        if origin is not None:
            origin.links[side].add(link.id)
            origin.dropped.pop(link.id, None)
        setattr(link, f"{side}_id", end)


def load_restorable_links(account_id: UUID, dropped: Iterable[dict[str, Any]]) -> list[Link]:
    """Return the dropped links whose ends both exist, and lock those ends."""
    links = [deserialize_link(account_id, noted) for noted in dropped]
    ends = {end for link in links for end in (link.source_id, link.target_id)}
    if not ends:
        return []
    rows = Memory.objects.filter(account_id=account_id, id__in=ends).order_by("id")
    found = set(rows.select_for_update(no_key=True, of=("self",)).values_list("id", flat=True))
    return [link for link in links if {link.source_id, link.target_id} <= found]


def serialize_link(link: Link) -> dict[str, Any]:
    return {
        "id": str(link.id),
        "source": str(link.source_id),
        "target": str(link.target_id),
        "type": link.type,
        "weight": link.weight,
        "properties": link.properties,
        "created_at": link.created_at.isoformat(),
    }


def serialized_ends(link: dict[str, Any]) -> set[UUID]:
    return {UUID(link[side]) for side in SIDES}


def deserialize_link(account_id: UUID, link: dict[str, Any]) -> Link:
    return Link(
        id=UUID(link["id"]),
        account_id=account_id,
        source_id=UUID(link["source"]),
        target_id=UUID(link["target"]),
        type=link["type"],
        weight=link["weight"],
        properties=link["properties"],
        created_at=datetime.fromisoformat(link["created_at"]),
    )


def to_ids(texts: Iterable[str]) -> set[UUID]:
    return {UUID(text) for text in texts}


def to_texts(ids: Iterable[UUID]) -> list[str]:
    return [str(each) for each in sorted(ids)]


def lock_parts_of(account_id: UUID, entity_ids: Collection[UUID]) -> list[EntityPart]:
    """Lock the parts of these entities, in the order of their ids. Under their holder's lock, no others are added."""
    return [
        EntityPart.from_entity(row)
        for row in lock_entity_rows_exclusively(account_id, merged_entity_ids(account_id, entity_ids))
    ]


def store_parts(parts: Iterable[EntityPart]) -> None:
    """Store what the parts brought, where that changed. One statement."""
    notes = {part.entity: part.to_metadata() for part in parts}
    changed = sorted((entity for entity, note in notes.items() if note != entity.metadata), key=lambda row: row.id)
    for entity in changed:
        entity.metadata = notes[entity]
    if changed:
        Entity.objects.filter(account_id=changed[0].account_id).bulk_update(changed, ["metadata"])


def assign_parts(parts: Sequence[EntityPart], whole: Entity) -> None:
    """Make the parts belong to another whole. One statement, none for no parts."""
    for part in parts:
        part.entity.merged_into = whole
    if parts:
        rows = Entity.objects.filter(account_id=whole.account_id, pk__in=[part.id for part in parts])
        rows.update(merged_into=whole)


def give_details(part: EntityPart, whole: Entity, *, properties: dict[str, Any], description: str) -> None:
    """Give the whole those of these details that it does not have, and note them on the part."""
    part.properties = {name: value for name, value in properties.items() if name not in whole.properties}
    part.description = "" if whole.description else description
    whole.properties = {**whole.properties, **part.properties}
    whole.description = whole.description or part.description


def take_back_details(part: EntityPart, whole: Entity) -> tuple[dict[str, Any], str]:
    """Remove the details that the part gave, if unchanged, from the whole. Returns properties and description."""
    taken = {
        name: value
        for name, value in part.properties.items()
        if name in whole.properties and whole.properties[name] == value
    }
    whole.properties = {name: value for name, value in whole.properties.items() if name not in taken}
    description = part.description if part.description == whole.description else ""
    if description:
        whole.description = ""
    part.properties, part.description = {}, ""
    return taken, description
