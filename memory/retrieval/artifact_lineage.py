"""Lineage of an artifact: its revisions and derivations, walked backwards and forwards in one statement.

`walk` has a row for each level and direction, with the artifacts that are new in it and those seen so far. So no
artifact is walked from twice, and rings, which should not exist, end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from memory.kinds import Kind
from memory.models import Memory
from memory.owner import Owner
from memory.retrieval.statements import STAND_INS, OwnerShape, Sql, collapse_whitespace, owner_shape, where_sql

MAX_ARTIFACTS = 200
"""Artifacts returned in each direction."""

LINEAGE_TYPES = ("DERIVED_FROM", "SUPERSEDES")
"""Types of links from a later artifact to an earlier one."""

# a level reads one more than there is room for, which shows whether there are more
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
    SELECT id, way * depth AS step, is_cut
    FROM walk LEFT JOIN LATERAL unnest(ids) AS node (id) ON true ORDER BY depth"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageSteps:
    """Artifacts by their number of steps from the start of the walk, negative for earlier ones."""

    steps: Mapping[UUID, int]
    truncated: bool


def walk_artifact_lineage(owner: Owner, artifact_id: UUID, *, now: datetime) -> LineageSteps:
    """Return the visible part of an artifact's lineage, with the artifact itself at 0 even if it is invisible."""
    statement = build_artifact_lineage_statement(owner_shape(owner))
    values: dict[str, Any] = {"start": artifact_id, "most": MAX_ARTIFACTS, "types": list(LINEAGE_TYPES)}
    found = statement.read_dicts(owner, values, now=now)
    steps: dict[UUID, int] = {}
    for row in found:
        if row["id"] is not None:
            steps.setdefault(row["id"], row["step"])
    return LineageSteps(steps=steps, truncated=any(row["is_cut"] for row in found))


@lru_cache(maxsize=16)
def build_artifact_lineage_statement(shape: OwnerShape) -> Sql:
    visible = Memory.objects.visible_to(shape.owner, Kind.ARTIFACT).live(STAND_INS["now"])
    rows = where_sql(visible, prefix="m")
    return Sql(text=collapse_whitespace(WALK.format(rows=rows.text)), parameters=rows.parameters)
