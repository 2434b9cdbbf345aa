"""What an artifact came from and what came of it: revisions and derivations, walked one way each.

One statement. `walk` has a row for each level and way: which artifacts are new in it, and which have been seen so far.
So nothing is walked from twice, and rings, which nobody should be able to make, end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from memory.models import Kind, Memory
from memory.models.binary import binary_cursor
from memory.owner import Owner
from memory.retrieval.statements import STAND_IN, OwnerShape, Sql, bind_owner, shape_of, squeeze, where_of

MOST_ARTIFACTS = 200
"""Each way."""

LINEAGE_TYPES = ("DERIVED_FROM", "SUPERSEDES")
"""Types of links from what came later, to what was there before."""

# a level takes one more than there is room for, which shows that there are more
WALK = """
    WITH RECURSIVE walk (way, depth, ids, seen, is_cut) AS (
        SELECT way, 0, ARRAY[%(start)s::uuid], ARRAY[%(start)s::uuid], false FROM (VALUES (-1), (1)) AS ways (way)
        UNION ALL
        SELECT walk.way, walk.depth + 1, level.ids, walk.seen || level.ids, level.is_cut
        FROM walk CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(DISTINCT id) FILTER (WHERE place <= room), '{{}}') AS ids,
                coalesce(bool_or(place > room), false) AS is_cut
            FROM (
                SELECT memories.id, row_number() OVER () AS place, %(most)s + 1 - cardinality(walk.seen) AS room
                FROM (
                    SELECT target_id AS id FROM memory_links
                    WHERE walk.way = -1 AND account_id = %(account_id)s AND type = ANY(%(types)s::text[])
                        AND source_id = ANY(walk.ids)
                    UNION ALL
                    SELECT source_id FROM memory_links
                    WHERE walk.way = 1 AND account_id = %(account_id)s AND type = ANY(%(types)s::text[])
                        AND target_id = ANY(walk.ids)
                ) AS near JOIN memories ON memories.id = near.id
                WHERE {rows} AND memories.id <> ALL(walk.seen)
                LIMIT %(most)s + 2 - cardinality(walk.seen)
            ) AS found
        ) AS level
        WHERE cardinality(walk.ids) > 0 AND NOT walk.is_cut
    )
    SELECT id, way * depth, is_cut FROM walk LEFT JOIN LATERAL unnest(ids) AS node (id) ON true ORDER BY depth"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """Artifacts by how many steps they lie from where the walk began: below zero for what was there before."""

    steps: Mapping[UUID, int]
    truncated: bool


def walk_lineage(owner: Owner, artifact_id: UUID, *, now: datetime) -> Walked:
    """What the owner sees of an artifact's lineage, itself at 0, whether or not it is seen. One statement."""
    statement = compose(shape_of(owner))
    values: dict[str, Any] = {"start": artifact_id, "most": MOST_ARTIFACTS, "types": list(LINEAGE_TYPES)}
    with binary_cursor() as cursor:
        cursor.execute(statement.text, {**statement.parameters, **bind_owner(owner, now=now), **values})
        found = cursor.fetchall()
    steps: dict[UUID, int] = {}
    for node_id, step, _is_cut in found:
        if node_id is not None:
            steps.setdefault(node_id, step)
    return Walked(steps=steps, truncated=any(is_cut for *_node, is_cut in found))


@lru_cache(maxsize=16)
def compose(shape: OwnerShape) -> Sql:
    """The statement for owners of this shape."""
    visible: Any = Memory.objects.visible_to(shape.owner, Kind.ARTIFACT).live(STAND_IN["now"])
    rows = where_of(visible, prefix="m")
    return Sql(text=squeeze(WALK.format(rows=rows.text)), parameters=rows.parameters)
