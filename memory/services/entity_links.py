"""The links of entities that are merged or split.

What a split needs stays with the links. `moved_from` among a link's properties names, for each end, the entities that
it was moved from, the latest last. A link that the other one had already is dropped, and remembered whole in that
one's `merged_links`. Links between the two stay as they are, on the archived one.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q

from memory.errors import Unprocessable
from memory.models import Entity, Link, Memory

MOVED_FROM = "moved_from"
MERGED_LINKS = "merged_links"
SIDES = ("source", "target")
LINKS_AT_ONCE = 500

# a link's other end is never the survivor: those between the two stay
MOVE_LINKS = """
WITH moving AS MATERIALIZED (
    SELECT id, account_id, source_id, target_id, type, weight, properties,
        CASE WHEN source_id = %(loser)s THEN 'source' ELSE 'target' END AS side,
        CASE WHEN source_id = %(loser)s THEN %(survivor)s ELSE source_id END AS to_source,
        CASE WHEN target_id = %(loser)s THEN %(survivor)s ELSE target_id END AS to_target
    FROM memory_links WHERE account_id = %(account_id)s AND %(loser)s IN (source_id, target_id)
        AND %(survivor)s NOT IN (source_id, target_id)
), twice AS MATERIALIZED (
    SELECT moving.*, kept.id AS kept_id FROM moving JOIN memory_links kept ON kept.account_id = moving.account_id
        AND kept.source_id = to_source AND kept.type = moving.type AND kept.target_id = to_target
), dropped AS (
    DELETE FROM memory_links l USING twice WHERE l.id = twice.id
), remembering AS (
    UPDATE memory_links l SET properties = l.properties || jsonb_build_object('merged_links',
        coalesce(l.properties -> 'merged_links', '[]') || jsonb_build_array(jsonb_build_object(
            'id', twice.id, 'source', twice.source_id, 'target', twice.target_id, 'type', twice.type,
            'weight', twice.weight, 'properties', twice.properties)))
    FROM twice WHERE l.id = twice.kept_id
)
UPDATE memory_links l SET source_id = to_source, target_id = to_target,
    properties = l.properties || jsonb_build_object('moved_from', coalesce(l.properties -> 'moved_from', '{}')
        || jsonb_build_object(side, coalesce(l.properties -> 'moved_from' -> side, '[]')
        || jsonb_build_array(%(loser)s::uuid)))
FROM moving WHERE l.id = moving.id AND moving.id NOT IN (SELECT id FROM twice)
"""


def move_links(loser: Entity, survivor: Entity) -> None:
    """All of one locked entity's links to another, but those between the two. One statement."""
    with connection.cursor() as cursor:
        values = {"account_id": survivor.account_id, "survivor": survivor.id, "loser": loser.id}
        cursor.execute(MOVE_LINKS, values)


def share_links(entity: Entity, other: Entity, link_ids: Collection[UUID]) -> None:
    """Give the other one the links that came with it, and those named. Raises Unprocessable for what is not a link
    of the entity to a third."""
    links = list(Link.objects.filter(links_concerned(entity, other, link_ids), account_id=entity.account_id))
    refuse_others(entity, other, links, link_ids)
    restored: list[Link] = []
    for link in links:
        restored += remembered_of(other, link)
        for side in SIDES:
            if getattr(link, f"{side}_id") == entity.id:
                give_back(link, side, other, is_named=link.id in link_ids)
    Link.objects.bulk_update(links, ["source", "target", "properties"], batch_size=LINKS_AT_ONCE)
    restore(restored)


def links_concerned(entity: Entity, other: Entity, link_ids: Collection[UUID]) -> Q:
    came = str(other.id)
    concerned = Q(id__in=link_ids)
    for side in SIDES:
        concerned |= Q(**{f"properties__{MOVED_FROM}__{side}__contains": [came]})
        concerned |= Q(**{f"properties__{MERGED_LINKS}__contains": [{side: came}]})
    return (Q(source_id=entity.id) | Q(target_id=entity.id)) & concerned


def refuse_others(entity: Entity, other: Entity, links: Iterable[Link], link_ids: Collection[UUID]) -> None:
    thirds = {link.id for link in links if {link.source_id, link.target_id} != {entity.id, other.id}}
    if set(link_ids) - thirds:
        raise Unprocessable("only links of the entity to others can be moved")


def give_back(link: Link, side: str, other: Entity, *, is_named: bool) -> None:
    """Move one end of a link, where it came from the other one or is named; what it came from before stays known."""
    moved_from: dict[str, list[str]] = link.properties.get(MOVED_FROM, {})
    trail = moved_from.get(side, [])
    came = str(other.id)
    if came not in trail and not is_named:
        return
    setattr(link, f"{side}_id", other.id)
    left = trail[: trail.index(came)] if came in trail else trail
    put(
        link,
        MOVED_FROM,
        {**{name: ids for name, ids in moved_from.items() if name != side}, **({side: left} if left else {})},
    )


def put(link: Link, name: str, value: Any) -> None:
    """Set a property; an empty one goes."""
    rest = {key: kept for key, kept in link.properties.items() if key != name}
    link.properties = {**rest, name: value} if value else rest


def remembered_of(other: Entity, link: Link) -> list[Link]:
    """The links of the other one that were dropped for this one, which remembers them no longer."""
    remembered: list[dict[str, Any]] = link.properties.get(MERGED_LINKS, [])
    theirs = [each for each in remembered if str(other.id) in (each["source"], each["target"])]
    put(link, MERGED_LINKS, [each for each in remembered if each not in theirs])
    return [
        Link(
            id=UUID(each["id"]),
            account_id=link.account_id,
            source_id=UUID(each["source"]),
            target_id=UUID(each["target"]),
            type=each["type"],
            weight=each["weight"],
            properties=each["properties"],
        )
        for each in theirs
    ]


def restore(links: Sequence[Link]) -> None:
    """Those whose other end there still is."""
    if not links:
        return
    ends = {end for link in links for end in (link.source_id, link.target_id)}
    rows = Memory.objects.filter(account_id=links[0].account_id, id__in=ends).order_by("id")
    there = set(rows.select_for_update(no_key=True, of=("self",)).values_list("id", flat=True))
    Link.objects.bulk_create(
        [link for link in links if {link.source_id, link.target_id} <= there], ignore_conflicts=True
    )
