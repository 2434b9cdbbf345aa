"""Search by links: from the entities that the question names to facts, neighbours and the turns they came from.

The walk follows links in both directions, three levels deep, and stays bounded however many links a hub has. It passes
through everything that the owner sees and that is true, wanted or not (another kind, another time), and returns only
what the question's filters let through. The bounds are per level. Walks that clients ask for are in `retrieval.graph`;
they report it when a bound cuts them off.
"""

from typing import Any

from memory.retrieval.plans import QueryAnalysis, Retriever, VisibleRows
from memory.retrieval.queries import Query

SCANNED = (200, 30, 30)
"""Links of a node that are read in each direction."""
FOLLOWED = (40, 10, 5)
"""Links of a node that are followed."""
REACHED = (100, 60, 40)
"""Nodes that a level adds."""
WALKED = (30, 20)
"""Nodes of the first and second level that the walk continues from. It starts from all named entities."""

LINKS = """
    (SELECT {far} AS other_id, type, weight, id FROM memory_links
        WHERE account_id = %(account_id)s AND {near} = node.id{typed}
        ORDER BY weight DESC, id LIMIT (%(scanned)s::int[])[walk.depth + 1])"""
FACTS_ABOUT = LINKS.format(near="target_id", far="source_id", typed=" AND type = 'ABOUT'")
BOTH_WAYS = " UNION ALL ".join(
    LINKS.format(near=near, far=far, typed="") for near, far in (("source_id", "target_id"), ("target_id", "source_id"))
)

# an entity that is talked about a lot has more mentions in turns than other links: mentions come last, and facts have
# a share of their own
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


class GraphRetriever(Retriever):
    """Finds memories within three links of the entities that the question names, nearest first."""

    name = "graph"

    def applies(self, query: Query, analysis: QueryAnalysis) -> bool:
        return bool(analysis.entities)

    def to_sql(self, visible: VisibleRows) -> str:
        facts, others = (
            NEIGHBOURS.format(links=links, passable=visible.passable) for links in (FACTS_ABOUT, BOTH_WAYS)
        )
        return WALK.format(facts=facts, others=others, rows=visible.rows)

    def params(self, query: Query, analysis: QueryAnalysis) -> dict[str, Any]:
        named = list(analysis.entities)
        return {
            "named": named,
            "scanned": list(SCANNED),
            "followed": list(FOLLOWED),
            "reached": list(REACHED),
            "walked": [len(named), *WALKED],
            "deepest": len(FOLLOWED),
        }


GRAPH = GraphRetriever()
