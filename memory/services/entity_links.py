"""The links of entities that are merged or split.

What a split needs is told to the archived one alone, not to the links, whose properties are their writers': which
links were moved from it, by end, and those that were dropped because the other had the same, whole. Links between the
two stay as they are, on the archived one.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.errors import Unprocessable
from memory.models import Entity, Link, Memory
from memory.models.binary import binary_cursor

SIDES = ("source", "target")
LINKS_AT_ONCE = 500

# a link's other end is never the survivor: those between the two stay
MOVE_LINKS = """
WITH moving AS MATERIALIZED (
    SELECT l.*, CASE WHEN source_id = %(loser)s THEN 'source' ELSE 'target' END AS side,
        CASE WHEN source_id = %(loser)s THEN %(survivor)s ELSE source_id END AS to_source,
        CASE WHEN target_id = %(loser)s THEN %(survivor)s ELSE target_id END AS to_target
    FROM memory_links l WHERE account_id = %(account_id)s AND %(loser)s IN (source_id, target_id)
        AND %(survivor)s NOT IN (source_id, target_id)
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


def move_links(loser: Entity, survivor: Entity) -> dict[str, Any]:
    """All of one locked entity's links to another, but those between the two. One statement.

    What became of them, for the archived one to keep and for `share_links`: the ids of those whose `source`, and whose
    `target`, it was, and what was `dropped`.
    """
    with binary_cursor() as cursor:
        cursor.execute(MOVE_LINKS, {"account_id": survivor.account_id, "survivor": survivor.id, "loser": loser.id})
        source, target, dropped = cursor.fetchone()
    return {"source": source, "target": target, "dropped": dropped}


def share_links(entity: Entity, other: Entity, *, came: dict[str, Any], link_ids: Collection[UUID]) -> None:
    """Give the other one the links that came with it (as `move_links` told), and those named.

    Raises Unprocessable for what is not a link of the entity to a third.
    """
    came_by_side = {side: {UUID(link_id) for link_id in came.get(side, [])} for side in SIDES}
    concerned = Q(id__in={*link_ids, *came_by_side["source"], *came_by_side["target"]})
    at_entity = Q(source_id=entity.id) | Q(target_id=entity.id)
    links = list(Link.objects.filter(concerned, at_entity, account_id=entity.account_id))
    refuse_others(entity, other, links, link_ids)
    for link in links:
        for side in SIDES:
            if getattr(link, f"{side}_id") == entity.id and link.id in (*came_by_side[side], *link_ids):
                setattr(link, f"{side}_id", other.id)
    Link.objects.bulk_update(links, ["source", "target"], batch_size=LINKS_AT_ONCE)
    restore([link_of(entity.account_id, each) for each in came.get("dropped", [])])


def refuse_others(entity: Entity, other: Entity, links: Iterable[Link], link_ids: Collection[UUID]) -> None:
    thirds = {link.id for link in links if {link.source_id, link.target_id} != {entity.id, other.id}}
    if set(link_ids) - thirds:
        raise Unprocessable("only links of the entity to others can be moved")


def link_of(account_id: UUID, told: dict[str, Any]) -> Link:
    """A link that was dropped, as it was."""
    return Link(
        id=UUID(told["id"]),
        account_id=account_id,
        source_id=UUID(told["source"]),
        target_id=UUID(told["target"]),
        type=told["type"],
        weight=told["weight"],
        properties=told["properties"],
        created_at=told["created_at"],
    )


def restore(links: Sequence[Link]) -> None:
    """Those whose ends there still are."""
    if not links:
        return
    ends = {end for link in links for end in (link.source_id, link.target_id)}
    rows = Memory.objects.filter(account_id=links[0].account_id, id__in=ends).order_by("id")
    there = set(rows.select_for_update(no_key=True, of=("self",)).values_list("id", flat=True))
    kept = [link for link in links if {link.source_id, link.target_id} <= there]
    Link.objects.bulk_create(kept, ignore_conflicts=True)
