"""Walks over links: the neighbourhood of some memories in both directions, bounded however many links hubs have.

One statement. `walk` has a row for each level with the nodes that are new in it, those seen so far, and whether
something was left out. So no node is walked from twice, whatever rings there are, and the bounds hold level by level.
OFFSET 0 makes PostgreSQL plan a sub-select by itself: it looks rows up one by one and never reads whole tables.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from memory import conf
from memory.errors import NotFound, Unprocessable
from memory.kinds import Audience, all_kinds, kinds_seen_by
from memory.models import Fact, Memory, PersistentContext
from memory.models.facts import true_at
from memory.owner import Owner
from memory.retrieval.statements import STAND_INS, OwnerShape, Sql, collapse_whitespace, owner_shape, where_sql
from memory.retrieval.visibility import (
    ALLOWED_TIERS,
    IN_READABLE_CONTEXT,
    readable_contexts_cte,
    reasoning_is_allowed,
)

MAX_DEPTH = 3
SCANNED_PER_NEIGHBOUR = 20
EDGES_PER_NODE = 5
LABEL_CHARACTERS = 200

# the links with the greatest weights, then a row without another end that stands for the rest
LINKS_ONE_WAY = """
    SELECT id, CASE WHEN place <= %(scanned)s THEN other_id END AS other_id, weight, {is_out} AS is_out FROM (
        SELECT id, {far} AS other_id, weight, row_number() OVER (ORDER BY weight DESC, id) AS place
        FROM memory_links WHERE account_id = %(account_id)s AND {near} = node.id{typed}
        ORDER BY weight DESC, id LIMIT %(scanned)s + 1
    ) AS links"""

# each type by itself, so that an index finds its greatest weights, however many links of other types there are
LINKS_OF_TYPES = """
    SELECT links.* FROM unnest(%(types)s::text[]) AS asked (type) CROSS JOIN LATERAL ({links}) AS links"""

# only links that may be followed count towards the fan-out; the row after the last one stands for the rest
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
    {contexts}
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
        WHERE account_id = %(account_id)s AND id IN (SELECT id FROM between WHERE other_id IS NOT NULL)
        ORDER BY weight DESC, id LIMIT %(edges)s + 1
    )
    SELECT found.*, (SELECT bool_or(is_cut) FROM walk) OR (
        SELECT bool_or(is_out) AND NOT bool_and(is_out) FROM between WHERE other_id IS NULL
    ) IS TRUE AS is_cut
    FROM (
        SELECT nodes.id, depth, place, described.*,
            NULL::uuid AS source, NULL::uuid AS target, NULL::float8 AS weight, NULL::jsonb AS properties
        FROM nodes CROSS JOIN LATERAL (
            SELECT kind, CASE kind WHEN 'entity' THEN name ELSE left(text, %(label)s) END AS label,
                coalesce(type, '') AS type, salience, channel, conversation_id, event_time
            FROM memories WHERE account_id = %(account_id)s AND memories.id = nodes.id OFFSET 0
        ) AS described
        UNION ALL
        SELECT id, NULL, NULL, '', '', type, NULL, '', '', NULL, source_id, target_id, weight, properties FROM edges
    ) AS found
    ORDER BY source IS NOT NULL, depth, place, weight DESC, id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkBounds:
    """Bounds of a walk: total `nodes`, and `fan_out` links followed from one node, greatest weights first."""

    nodes: int = conf.GRAPH_NODES
    fan_out: int = conf.GRAPH_FANOUT

    @property
    def scanned(self) -> int:
        """Links of a node that are read to find visible ones, in each direction (and of each type asked for)."""
        return SCANNED_PER_NEIGHBOUR * self.fan_out

    @property
    def edges(self) -> int:
        return EDGES_PER_NODE * self.nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkNode:
    """A memory that the walk reached over `depth` links, 0 for its starts.

    `label` is the name of an entity, or the beginning of the text of other kinds; `type` is empty for other kinds.
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
        """The key of this memory in the injection ledger."""
        return f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkEdge:
    """A link between two nodes of the graph."""

    id: UUID
    source: UUID
    target: UUID
    type: str
    weight: float
    properties: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The result of a walk.

    `nodes` are ordered by depth, then salience, then the weight of the link that led to them; `edges` by weight.
    `truncated` is True if a bound was met, so that there may be more.
    """

    nodes: Sequence[WalkNode]
    edges: Sequence[WalkEdge]
    truncated: bool


DEFAULT_BOUNDS = WalkBounds()


def walk_graph(
    owner: Owner,
    ids: Collection[UUID],
    *,
    depth: int,
    types: Collection[str] = (),
    bounds: WalkBounds = DEFAULT_BOUNDS,
    now: datetime,
) -> Graph:
    """Return the memories within `depth` links (1 to 3) of these, in both directions, and the links among them.

    `types` limits the types of links. The walk includes only what the owner sees and is live, facts that are true now,
    and reasoning that the account allows; the starts need not be true any more. With a `user_id`, only memories of that
    user and of no user. Only the active channel and `_global`. One statement. Raises NotFound if one of `ids` is
    invisible, Unprocessable for another depth or for more `ids` than nodes.
    """
    asked = set(ids)
    if not 1 <= depth <= MAX_DEPTH:
        raise Unprocessable(f"The depth of a walk must be from 1 to {MAX_DEPTH} links.")
    if len(asked) > bounds.nodes:
        raise Unprocessable(f"A graph has at most {bounds.nodes} nodes. Start at fewer memories.")
    statement = build_walk_statement(owner_shape(owner), has_types=bool(types))
    values = {
        "ids": list(asked),
        "depth": depth,
        "types": sorted(set(types)),
        "nodes": bounds.nodes,
        "fan_out": bounds.fan_out,
        "scanned": bounds.scanned,
        "edges": bounds.edges,
        "label": LABEL_CHARACTERS,
    }
    graph = parse_graph_rows(statement.read_dicts(owner, values, now=now), bounds)
    if asked != {node.id for node in graph.nodes if node.depth == 0}:
        raise NotFound("There is no such memory.")
    return graph


def parse_graph_rows(found: Sequence[dict[str, Any]], bounds: WalkBounds) -> Graph:
    """Return the graph. One edge more than the bound means that some are left out."""
    nodes = [row for row in found if row["source"] is None]
    edges = [row for row in found if row["source"] is not None]
    return Graph(
        nodes=[WalkNode(**fields_of_row(WalkNode, row)) for row in nodes],
        edges=[WalkEdge(**fields_of_row(WalkEdge, row)) for row in edges[: bounds.edges]],
        truncated=len(edges) > bounds.edges or any(row["is_cut"] for row in nodes),
    )


def fields_of_row(shape: type[WalkNode | WalkEdge], row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in shape.__dataclass_fields__}


@lru_cache(maxsize=64)
def build_walk_statement(shape: OwnerShape, *, has_types: bool) -> Sql:
    contexts = readable_contexts_cte(PersistentContext.objects.visible_to(shape.owner).active(), all_kinds())
    rows = walkable_rows(shape.owner)
    believed = where_sql(Fact.objects.filter(true_at(STAND_INS["now"])), prefix="f")
    true_now = f"(kind <> 'fact' OR {believed.text})"
    links = links_of_node(has_types=has_types)
    text = WALK.format(
        allowed=ALLOWED_TIERS,
        contexts=contexts.text,
        starts=rows.text,
        neighbours=NEIGHBOURS.format(links=links, rows=f"{rows.text} AND {true_now}"),
        links=links,
    )
    return Sql(
        text=collapse_whitespace(text), parameters={**contexts.parameters, **rows.parameters, **believed.parameters}
    )


def links_of_node(*, has_types: bool) -> str:
    """Return a SELECT of the links of the row `node` in both directions."""
    typed = " AND type = asked.type" if has_types else ""
    ways = (("source_id", "target_id", "true"), ("target_id", "source_id", "false"))
    each = [LINKS_ONE_WAY.format(near=near, far=far, is_out=out, typed=typed) for near, far, out in ways]
    return " UNION ALL ".join(LINKS_OF_TYPES.format(links=one) if has_types else f"({one})" for one in each)


def walkable_rows(owner: Owner) -> Sql:
    """Return the condition on memories, for an owner made of stand-ins. Readable contexts are listed once, as a CTE."""
    shared = Memory.objects.filter(account_id=owner.account_id).in_channels(owner).live(STAND_INS["now"])
    if owner.user_id:
        shared = shared.filter(user_id__in=("", owner.user_id))
    of_all = where_sql(shared, prefix="m")
    kinds = kinds_seen_by(Audience.CONTEXT_READERS)
    elsewhere = where_sql(Memory.objects.visible_to(owner, *sorted(frozenset(all_kinds()) - kinds)), prefix="v")
    in_contexts = where_sql(Memory.objects.visible_to(replace(owner, agent_id=""), *sorted(kinds)), prefix="w")
    allowed = reasoning_is_allowed(table="memories")
    text = f"""{of_all.text} AND {allowed} AND (({elsewhere.text})
        OR ({in_contexts.text} AND {IN_READABLE_CONTEXT}))"""
    return Sql(text=text, parameters={**of_all.parameters, **elsewhere.parameters, **in_contexts.parameters})
