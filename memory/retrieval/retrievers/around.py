"""Retrievers that search around what words and meaning found first: turns before and after, and open subgoals.

In the statements OFFSET 0 makes each step use an index, however many rows the planner expects.
"""

from memory.kinds import Kind
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.retrieval.plans import QueryAnalysis, Retriever, VisibleRows
from memory.retrieval.queries import Query

FIRST_FOUND = 40
"""The best results of each retriever to search around."""
SOURCES = ("lexical", "vector")
"""Retrievers whose results are searched around."""
PASSAGE_REACH = 2
"""Turns before and after a found one."""
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
                SELECT DISTINCT adjacent.memory_ptr_id FROM ({" UNION ".join(first)}) AS first
                CROSS JOIN LATERAL (
                    SELECT log_id, "index" FROM turns WHERE turns.memory_ptr_id = first.id OFFSET 0
                ) AS turn
                CROSS JOIN LATERAL (
                    SELECT memory_ptr_id FROM turns WHERE turns.log_id = turn.log_id
                    AND turns.index BETWEEN turn.index - {PASSAGE_REACH} AND turn.index + {PASSAGE_REACH} OFFSET 0
                ) AS adjacent
            ) AS adjacent CROSS JOIN LATERAL (
                SELECT * FROM memories WHERE memories.id = adjacent.memory_ptr_id OFFSET 0
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
                CROSS JOIN LATERAL (SELECT FROM goals WHERE goals.memory_ptr_id = first.id OFFSET 0) AS goal
                CROSS JOIN LATERAL ({PARTS} UNION ALL {BLOCKERS}) AS link
                ORDER BY link.other_id, first.place, first.id
            ) AS beneath
            CROSS JOIN LATERAL (
                SELECT FROM goals WHERE goals.memory_ptr_id = beneath.other_id AND completed_at IS NULL OFFSET 0
            ) AS goal
            CROSS JOIN LATERAL (SELECT * FROM memories WHERE memories.id = beneath.other_id OFFSET 0) AS memories
            WHERE {visible.rows} ORDER BY beneath.place, memories.id LIMIT %(candidates)s"""


PASSAGE, SUBGOALS = PassageRetriever(), SubgoalRetriever()
