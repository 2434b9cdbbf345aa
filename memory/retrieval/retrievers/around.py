"""Retrievers that search around something: turns and subgoals around what was found first, links of named entities.

In the statements OFFSET 0 makes each step use an index, however many rows the planner expects.

The walk over links goes from the entities that the question names to facts, neighbours and the turns they came from. It
follows links in both directions, three levels deep, and stays bounded however many links a hub has; the bounds are per
level. It passes through everything that the owner sees and that is true, wanted or not (another kind, another time),
and returns only what the question's filters let through. Walks that clients ask for are in `retrieval.graph`; they
report it when a bound cuts them off.
"""

from typing import Any

from memory.kinds import Kind
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.retrieval.plans import QueryAnalysis, Retriever, VisibleRows
from memory.retrieval.queries import Query
from memory.retrieval.statements import SEARCHED_COLUMNS, memory_by_id_sql

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
NEIGHBOURS = f"""
    SELECT link.other_id AS id, link.is_mention, link.weight FROM (
        SELECT *, type = 'MENTIONS' AS is_mention FROM ({{links}}) AS links WHERE NOT other_id = ANY(walk.seen)
        ORDER BY is_mention, weight DESC, id OFFSET 0
    ) AS link WHERE (
        SELECT {{passable}} FROM {memory_by_id_sql("link.other_id")}
    ) LIMIT (%(followed)s::int[])[walk.depth + 1]"""

WALK = f"""
    WITH RECURSIVE walk (depth, ids, seen) AS (
        SELECT 0, %(named)s::uuid[], %(named)s::uuid[]
        UNION ALL
        SELECT walk.depth + 1, level.ids, walk.seen || level.ids FROM walk CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(reached.id ORDER BY is_mention, weight DESC, reached.id), ARRAY[]::uuid[]) AS ids
            FROM (
                SELECT near.id, bool_and(near.is_mention) AS is_mention, max(near.weight) AS weight
                FROM unnest(walk.ids[:(%(walked)s::int[])[walk.depth + 1]]) AS node (id)
                CROSS JOIN LATERAL (({{facts}}) UNION ALL ({{others}})) AS near
                GROUP BY near.id ORDER BY is_mention, weight DESC, near.id LIMIT (%(reached)s::int[])[walk.depth + 1]
            ) AS reached
        ) AS level
        WHERE walk.depth < %(deepest)s AND cardinality(walk.ids) > 0
    )
    SELECT memories.id, reached.hops FROM (
        SELECT node.id AS node_id, walk.depth AS hops, node.place
        FROM walk CROSS JOIN LATERAL unnest(walk.ids) WITH ORDINALITY AS node (id, place)
    ) AS reached CROSS JOIN LATERAL {memory_by_id_sql("reached.node_id")}
    WHERE {{rows}} ORDER BY reached.hops, reached.place LIMIT %(candidates)s"""


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


FIRST_FOUND = 40
"""The best results of each retriever to search around."""
SOURCES = ("lexical", "vector")
"""Retrievers whose results are searched around."""
PASSAGE_REACH = 2
"""Turns before and after a found one."""
STEPS = list(range(-PASSAGE_REACH, PASSAGE_REACH + 1))
MAX_LINKED_GOALS = 20
"""Links of one goal that are followed, per type of link."""

GOAL_LINKS = f"""(SELECT {{far}} AS other_id FROM memory_links
    WHERE account_id = %(account_id)s AND {{near}} = first.id AND type = '{{type}}'
    ORDER BY weight DESC, id LIMIT {MAX_LINKED_GOALS})"""
PARTS = GOAL_LINKS.format(near="target_id", far="source_id", type=SUBGOAL_OF)
BLOCKERS = GOAL_LINKS.format(near="source_id", far="target_id", type=BLOCKED_BY)


def first_found(visible: VisibleRows, columns: str) -> list[str]:
    """Return a SELECT of the best results of each source in the statement."""
    names = (name for name in SOURCES if name in visible.shape.retrievers)
    return [f"SELECT {columns} FROM {name} WHERE place <= {FIRST_FOUND}" for name in names]


class PassageRetriever(Retriever):
    """Finds turns before and after found ones: an answer often shares no word with its question and follows it."""

    name = "passage"

    def applies(self, query: Query, analysis: QueryAnalysis) -> bool:
        has_sources = bool(analysis.terms) or query.vector is not None
        return has_sources and (not query.kinds or Kind.TURN in query.kinds)

    def to_sql(self, visible: VisibleRows) -> str:
        first = first_found(visible, "id")
        if not first:
            return "SELECT NULL::uuid AS id WHERE false"
        return f"""
            SELECT memories.id FROM (
                SELECT DISTINCT turn.log_id, turn.index + step AS "index" FROM ({" UNION ".join(first)}) AS first
                CROSS JOIN LATERAL (
                    SELECT log_id, "index" FROM memories
                    WHERE account_id = %(account_id)s AND memories.id = first.id AND kind = 'turn' OFFSET 0
                ) AS turn CROSS JOIN unnest(ARRAY{STEPS}) AS step
            ) AS spot CROSS JOIN LATERAL (
                SELECT {SEARCHED_COLUMNS} FROM memories
                WHERE account_id = %(account_id)s AND kind = 'turn'
                    AND memories.log_id = spot.log_id AND memories.index = spot.index OFFSET 0
            ) AS memories WHERE {visible.rows}"""


class SubgoalRetriever(Retriever):
    """Finds open subgoals and blockers of found goals: they say what is left to do, and seldom for which goal."""

    name = "subgoals"

    def applies(self, query: Query, analysis: QueryAnalysis) -> bool:
        """Return False also if no goal is open, because planning this part takes longer than most searches."""
        has_sources = bool(analysis.terms) or query.vector is not None
        return has_sources and bool(analysis.goals) and (not query.kinds or Kind.GOAL in query.kinds)

    def to_sql(self, visible: VisibleRows) -> str:
        """Return goals with the first found goal that they are beneath, as `part_of`."""
        first = first_found(visible, "id, place")
        if not first:
            return "SELECT NULL::uuid AS id, NULL::uuid AS part_of WHERE false"
        return f"""
            SELECT memories.id, beneath.part_of FROM (
                SELECT DISTINCT ON (link.other_id) link.other_id, first.id AS part_of, first.place
                FROM ({" UNION ALL ".join(first)}) AS first
                CROSS JOIN LATERAL (
                    SELECT FROM memories
                    WHERE account_id = %(account_id)s AND memories.id = first.id AND kind = 'goal' OFFSET 0
                ) AS goal
                CROSS JOIN LATERAL ({PARTS} UNION ALL {BLOCKERS}) AS link
                ORDER BY link.other_id, first.place, first.id
            ) AS beneath
            CROSS JOIN LATERAL {memory_by_id_sql("beneath.other_id")}
            WHERE {visible.rows} AND kind = 'goal' AND completed_at IS NULL
            ORDER BY beneath.place, memories.id LIMIT %(candidates)s"""


PASSAGE, SUBGOALS = PassageRetriever(), SubgoalRetriever()
