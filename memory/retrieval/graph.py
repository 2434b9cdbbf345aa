"""Walks over links: the neighbourhood of some memories, in both directions, bounded however large its hubs are.

One statement. `walk` has a row for each level: which nodes are new in it, which have been seen so far, and whether
something was left out. So no node is walked from twice, whatever rings there are, and the bounds hold level by level.
OFFSET 0 has a sub-select planned by itself: its tables are looked into, row by row, and never read whole.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from memory import conf
from memory.errors import NotFound, Unprocessable
from memory.models import Fact, Kind, Memory, PersistentContext
from memory.models.binary import binary_cursor, fetch_dicts
from memory.models.facts import true_at
from memory.models.memory import OF_CONTEXTS
from memory.owner import Owner
from memory.retrieval.statements import STAND_IN, OwnerShape, Sql, bind_owner, shape_of, squeeze, where_of
from memory.retrieval.visibility import ALLOWED, TOLD

DEEPEST = 3
SCANNED_PER_NEIGHBOUR = 20
EDGES_PER_NODE = 5
LABEL_CHARACTERS = 200

# the weightiest, then one without an other end that stands for the rest
LINKS_ONE_WAY = """
    SELECT id, CASE WHEN place <= %(scanned)s THEN other_id END AS other_id, weight, {is_out} AS is_out FROM (
        SELECT id, {far} AS other_id, weight, row_number() OVER (ORDER BY weight DESC, id) AS place
        FROM memory_links WHERE account_id = %(account_id)s AND {near} = {node}{typed}
        ORDER BY weight DESC, id LIMIT %(scanned)s + 1
    ) AS links"""

# each type by itself: its weightiest are found by an index, however many links of other types there are
LINKS_OF_TYPES = """
    SELECT links.* FROM unnest(%(types)s::text[]) AS asked (type) CROSS JOIN LATERAL ({links}) AS links"""

# only links that may be followed count towards the fan-out; the row after the last of them stands for the rest
NEIGHBOURS = """
    SELECT CASE WHEN place <= %(fan_out)s THEN id END AS id, salience, weight FROM (
        SELECT found.id, found.salience, link.weight, row_number() OVER (ORDER BY link.weight DESC, link.id) AS place
        FROM (SELECT * FROM ({links}) AS links ORDER BY weight DESC, id) AS link LEFT JOIN LATERAL (
            SELECT id, salience FROM memories WHERE memories.id = link.other_id AND {rows} OFFSET 0
        ) AS found ON true
        WHERE found.id IS NOT NULL OR link.other_id IS NULL
        ORDER BY link.weight DESC, link.id LIMIT %(fan_out)s + 1
    ) AS taken"""

WALK = """
    WITH RECURSIVE {allowed}
    readable AS MATERIALIZED (SELECT array_agg(id) AS ids FROM persistent_contexts WHERE {contexts}),
    walk (depth, ids, seen, is_cut) AS (
        SELECT 0, ids, ids, false FROM (
            SELECT array_agg(id ORDER BY salience DESC, id) AS ids FROM memories
            WHERE id = ANY(%(ids)s::uuid[]) AND {starts}
        ) AS starts WHERE ids IS NOT NULL
        UNION ALL
        SELECT walk.depth + 1, level.ids, walk.seen || level.ids, walk.is_cut OR level.is_cut
        FROM walk CROSS JOIN LATERAL (
            SELECT
                coalesce(array_agg(id ORDER BY place) FILTER (WHERE id IS NOT NULL AND place <= room), '{{}}') AS ids,
                coalesce(bool_or(id IS NULL OR place > room), false) AS is_cut
            FROM (
                SELECT id, row_number() OVER (ORDER BY id IS NULL, salience DESC, weight DESC, id) AS place,
                    %(nodes)s - cardinality(walk.seen) AS room
                FROM (
                    SELECT near.id, max(near.salience) AS salience, max(near.weight) AS weight
                    FROM unnest(walk.ids) AS node (id) CROSS JOIN LATERAL ({neighbours}) AS near GROUP BY near.id
                ) AS reached
                WHERE NOT EXISTS (SELECT FROM unnest(walk.seen) AS before (id) WHERE before.id = reached.id)
            ) AS placed
        ) AS level
        WHERE walk.depth < %(depth)s AND cardinality(walk.ids) > 0
            AND (cardinality(walk.seen) < %(nodes)s OR NOT walk.is_cut)
    ),
    nodes AS MATERIALIZED (
        SELECT node.id, walk.depth, node.place
        FROM walk CROSS JOIN LATERAL unnest(ids) WITH ORDINALITY AS node (id, place)
    ),
    between AS MATERIALIZED (
        SELECT link.id, link.is_out, link.other_id FROM (
            SELECT link.* FROM nodes AS node CROSS JOIN LATERAL ({links}) AS link OFFSET 0
        ) AS link LEFT JOIN nodes AS other ON other.id = link.other_id
        WHERE other.id IS NOT NULL OR link.other_id IS NULL
    ),
    edges AS MATERIALIZED (
        SELECT id, source_id, target_id, type, weight, properties FROM memory_links
        WHERE id IN (SELECT id FROM between WHERE other_id IS NOT NULL)
        ORDER BY weight DESC, id LIMIT %(edges)s + 1
    )
    SELECT found.*, (SELECT bool_or(is_cut) FROM walk) OR (
        SELECT bool_or(is_out) AND NOT bool_and(is_out) FROM between WHERE other_id IS NULL
    ) IS TRUE AS is_cut
    FROM (
        SELECT nodes.id, depth, place, told.*,
            NULL::uuid AS source, NULL::uuid AS target, NULL::float8 AS weight, NULL::jsonb AS properties
        FROM nodes CROSS JOIN LATERAL (
            SELECT kind, coalesce(entities.name, left(text, %(label)s)) AS label, coalesce(entities.type, '') AS type,
                salience, channel, conversation_id, event_time
            FROM memories LEFT JOIN entities ON memory_ptr_id = id WHERE id = nodes.id OFFSET 0
        ) AS told
        UNION ALL
        SELECT id, NULL, NULL, '', '', type, NULL, '', '', NULL, source_id, target_id, weight, properties FROM edges
    ) AS found
    ORDER BY source IS NOT NULL, depth, place, weight DESC, id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a walk opens: `nodes` in all, `fan_out` links followed from one node, the weightiest first."""

    nodes: int = conf.GRAPH_NODES
    fan_out: int = conf.GRAPH_FANOUT

    @property
    def scanned(self) -> int:
        """Links of a node, in each direction (and of each type asked for), that are looked at for visible ones."""
        return SCANNED_PER_NEIGHBOUR * self.fan_out

    @property
    def edges(self) -> int:
        return EDGES_PER_NODE * self.nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory that the walk reached: over `depth` links, 0 for those that it began at.

    `label` is an entity's name, or else how its text begins; `type` an entity's type, or empty.
    """

    id: UUID
    kind: str
    label: str
    type: str
    salience: float
    depth: int
    channel: str
    conversation_id: str
    event_time: datetime

    @property
    def item_key(self) -> str:
        """Its name in the injection ledger."""
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A link between two nodes of the graph."""

    id: UUID
    source: UUID
    target: UUID
    type: str
    weight: float
    properties: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """`nodes` by depth, then the most salient first, then those that the weightiest link led to; `edges` weightiest
    first. `truncated` says that a bound was met, so that there may be more."""

    nodes: Sequence[Node]
    edges: Sequence[Edge]
    truncated: bool


NO_BOUNDS_GIVEN = Bounds()


def walk_graph(
    owner: Owner,
    ids: Collection[UUID],
    *,
    depth: int,
    types: Collection[str] = (),
    bounds: Bounds = NO_BOUNDS_GIVEN,
    now: datetime,
) -> Graph:
    """The memories within `depth` links (1 to 3) of these, over links in both directions, and the links among them.

    Over links of these types only, or of any. Only what the owner sees, what is live, of facts what is true now, and of
    reasoning what the account allows; the memories that it begins at need not be true any more. With a `user_id`, that
    user's and nobody's. Channels: the active one and `_global`. One statement. Raises NotFound when one of `ids` cannot
    be seen, Unprocessable for another depth, or for more `ids` than nodes.
    """
    asked = set(ids)
    if not 1 <= depth <= DEEPEST:
        raise Unprocessable(f"a walk is 1 to {DEEPEST} links deep")
    if len(asked) > bounds.nodes:
        raise Unprocessable(f"a graph has at most {bounds.nodes} nodes: begin at fewer")
    statement = compose(shape_of(owner), has_types=bool(types))
    values = {**bind_owner(owner, now=now), **bind_bounds(bounds), "ids": list(asked), "depth": depth}
    with binary_cursor() as cursor:
        cursor.execute(statement.text, {**statement.parameters, **values, "types": sorted(set(types))})
        found = fetch_dicts(cursor)
    graph = make_graph(found, bounds)
    if asked != {node.id for node in graph.nodes if node.depth == 0}:
        raise NotFound("no such memory")
    return graph


def bind_bounds(bounds: Bounds) -> dict[str, Any]:
    return {
        "nodes": bounds.nodes,
        "fan_out": bounds.fan_out,
        "scanned": bounds.scanned,
        "edges": bounds.edges,
        "label": LABEL_CHARACTERS,
    }


def make_graph(found: Sequence[dict[str, Any]], bounds: Bounds) -> Graph:
    """Nodes come first, then edges, of which one more than there may be shows that there are more."""
    nodes = [row for row in found if row["source"] is None]
    edges = [row for row in found if row["source"] is not None]
    return Graph(
        nodes=[Node(**columns_of(Node, row)) for row in nodes],
        edges=[Edge(**columns_of(Edge, row)) for row in edges[: bounds.edges]],
        truncated=len(edges) > bounds.edges or any(row["is_cut"] for row in nodes),
    )


def columns_of(shape: type[Node | Edge], row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in shape.__dataclass_fields__}


@lru_cache(maxsize=64)
def compose(shape: OwnerShape, *, has_types: bool) -> Sql:
    """The statement for owners of this shape."""
    contexts = where_of(PersistentContext.objects.visible_to(shape.owner).active(), prefix="c")
    rows = walkable_rows(shape.owner)
    believed = where_of(Fact.objects.filter(true_at(STAND_IN["now"])), prefix="f")
    # of one fact: an EXISTS might look through all that there are
    true_now = f"(kind <> 'fact' OR (SELECT {believed.text} FROM facts WHERE memory_ptr_id = memories.id))"
    links = links_of("node.id", has_types=has_types)
    text = WALK.format(
        allowed=ALLOWED,
        contexts=contexts.text,
        starts=rows.text,
        neighbours=NEIGHBOURS.format(links=links, rows=f"{rows.text} AND {true_now}"),
        links=links,
    )
    return Sql(text=squeeze(text), parameters={**contexts.parameters, **rows.parameters, **believed.parameters})


def links_of(node: str, *, has_types: bool) -> str:
    """The links of a node in both directions."""
    typed = " AND type = asked.type" if has_types else ""
    ways = (("source_id", "target_id", "true"), ("target_id", "source_id", "false"))
    each = [LINKS_ONE_WAY.format(near=near, far=far, is_out=out, node=node, typed=typed) for near, far, out in ways]
    return " UNION ALL ".join(LINKS_OF_TYPES.format(links=one) if has_types else f"({one})" for one in each)


def walkable_rows(owner: Owner) -> Sql:
    """The condition on memories for an owner made of stand-ins. Contexts are worked out once, not for each memory."""
    shared = Memory.objects.filter(account_id=owner.account_id).in_channels(owner).live(STAND_IN["now"])
    if owner.user_id:
        shared = shared.filter(user_id__in=("", owner.user_id))
    of_all = where_of(shared, prefix="m")
    elsewhere = where_of(Memory.objects.visible_to(owner, *sorted(frozenset(Kind) - OF_CONTEXTS)), prefix="v")
    in_contexts = where_of(Memory.objects.visible_to(replace(owner, agent_id=""), *sorted(OF_CONTEXTS)), prefix="w")
    text = f"""{of_all.text} AND {TOLD.format(table="memories", memory_id="memories.id")} AND (({elsewhere.text})
        OR ({in_contexts.text} AND context_id = ANY((SELECT ids FROM readable)::uuid[])))"""
    return Sql(text=text, parameters={**of_all.parameters, **elsewhere.parameters, **in_contexts.parameters})
