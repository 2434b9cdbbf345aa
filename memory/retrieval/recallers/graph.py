"""By links: from the entities that the question names to facts, neighbours and the turns that they came from.

A walk over links in both directions, three deep and bounded however large hubs are. It passes what the owner sees and
what is true, also what the question does not want (another kind, another time): only what it answers with is wanted.
Bounds by level: how many links of a node are looked at each way, how many are followed, from how many nodes it goes on.
See `retrieval.graph` for walks that clients ask for, which miss nothing without saying so.
"""

from typing import Any

from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query

SCANNED = (200, 30, 30)
FOLLOWED = (40, 10, 5)
REACHED = (100, 60, 40)
WALKED = (30, 20)
"""Of the nodes of the first and the second level; the walk begins at all that are named."""

LINKS = """
    (SELECT {far} AS other_id, type, weight, id FROM memory_links
        WHERE account_id = %(account_id)s AND {near} = node.id{typed}
        ORDER BY weight DESC, id LIMIT (%(scanned)s::int[])[walk.depth + 1])"""
FACTS_ABOUT = LINKS.format(near="target_id", far="source_id", typed=" AND type = 'ABOUT'")
BOTH_WAYS = " UNION ALL ".join(
    LINKS.format(near=near, far=far, typed="") for near, far in (("source_id", "target_id"), ("target_id", "source_id"))
)

# who is much spoken of is mentioned by more turns than all else: those come last, and facts have a share of their own
NEIGHBOURS = """
    SELECT link.other_id AS id, link.is_mention, link.weight FROM (
        SELECT *, type = 'MENTIONS' AS is_mention FROM ({links}) AS links WHERE NOT other_id = ANY(walk.seen)
        ORDER BY is_mention, weight DESC, id OFFSET 0
    ) AS link WHERE (
        SELECT {passable} FROM (SELECT * FROM memories WHERE memories.id = link.other_id OFFSET 0) AS memories
    ) LIMIT (%(followed)s::int[])[walk.depth + 1]"""

WALK = """
    WITH RECURSIVE walk (depth, ids, seen) AS (
        SELECT 0, %(named)s::uuid[], %(named)s::uuid[]
        UNION ALL
        SELECT walk.depth + 1, level.ids, walk.seen || level.ids FROM walk CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(reached.id ORDER BY is_mention, weight DESC, reached.id), '{{}}') AS ids FROM (
                SELECT near.id, bool_and(near.is_mention) AS is_mention, max(near.weight) AS weight
                FROM unnest(walk.ids[:(%(walked)s::int[])[walk.depth + 1]]) AS node (id)
                CROSS JOIN LATERAL (({facts}) UNION ALL ({others})) AS near
                GROUP BY near.id ORDER BY is_mention, weight DESC, near.id LIMIT (%(reached)s::int[])[walk.depth + 1]
            ) AS reached
        ) AS level
        WHERE walk.depth < %(deepest)s AND cardinality(walk.ids) > 0
    )
    SELECT memories.id, reached.hops FROM (
        SELECT node.id AS node_id, walk.depth AS hops, node.place
        FROM walk CROSS JOIN LATERAL unnest(walk.ids) WITH ORDINALITY AS node (id, place)
    ) AS reached CROSS JOIN LATERAL (SELECT * FROM memories WHERE memories.id = reached.node_id OFFSET 0) AS memories
    WHERE {rows} ORDER BY reached.hops, reached.place LIMIT %(candidates)s"""


def serves(_query: Query, orientation: Orientation) -> bool:
    return bool(orientation.entities)


def compose(ground: Ground) -> str:
    facts, others = (NEIGHBOURS.format(links=links, passable=ground.passable) for links in (FACTS_ABOUT, BOTH_WAYS))
    return WALK.format(facts=facts, others=others, rows=ground.rows)


def bind(_query: Query, orientation: Orientation) -> dict[str, Any]:
    named = list(orientation.entities)
    return {
        "named": named,
        "scanned": list(SCANNED),
        "followed": list(FOLLOWED),
        "reached": list(REACHED),
        "walked": [len(named), *WALKED],
        "deepest": len(FOLLOWED),
    }


GRAPH = Recaller(name="graph", serves=serves, compose=compose, bind=bind)
