"""What is open of the goals that words and meaning find first: their subgoals, and what they wait for. These say what
is left to do, and seldom for what."""

from memory.models import Kind
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query
from memory.retrieval.recallers.passage import FIRST, LOOKING

MOST = 20
"""Of one goal, of each sort."""

LINKS = f"""(SELECT {{far}} AS other_id FROM memory_links
    WHERE account_id = %(account_id)s AND {{near}} = first.id AND type = '{{type}}'
    ORDER BY weight DESC, id LIMIT {MOST})"""
PARTS = LINKS.format(near="target_id", far="source_id", type=SUBGOAL_OF)
BLOCKERS = LINKS.format(near="source_id", far="target_id", type=BLOCKED_BY)


def serves(query: Query, orientation: Orientation) -> bool:
    """Not where nothing is open, as for most: planning it takes longer than many a search."""
    is_found = bool(orientation.terms) or query.vector is not None
    return is_found and bool(orientation.goals) and (not query.kinds or Kind.GOAL in query.kinds)


def compose(ground: Ground) -> str:
    """What is beneath several goals is beneath the first of them. OFFSET 0: each step goes by an index, whatever the
    planner takes the number of rows for."""
    first = [
        f"SELECT id, place FROM {name} WHERE place <= {FIRST}" for name in LOOKING if name in ground.shape.recallers
    ]
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
        WHERE {ground.rows} ORDER BY beneath.place, memories.id LIMIT %(candidates)s"""


SUBGOALS = Recaller(name="subgoals", serves=serves, compose=compose)
