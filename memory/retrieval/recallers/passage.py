"""What was said around the turns that words and meaning find first: an answer often shares no word with its question,
and stands right after it."""

from memory.models import Kind
from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query

FIRST = 40
"""Of what each recaller found, so many are looked around."""
REACH = 2
"""Turns before and after."""
LOOKING = ("lexical", "vector")


def serves(query: Query, orientation: Orientation) -> bool:
    is_found = bool(orientation.terms) or query.vector is not None
    return is_found and (not query.kinds or Kind.TURN in query.kinds)


def compose(ground: Ground) -> str:
    """Each step goes by an index, whatever the planner takes the number of rows for."""
    first = [f"SELECT id FROM {name} WHERE place <= {FIRST}" for name in LOOKING if name in ground.shape.recallers]
    if not first:
        return "SELECT NULL::uuid AS id WHERE false"
    return f"""
        SELECT memories.id FROM (
            SELECT DISTINCT beside.memory_ptr_id FROM ({" UNION ".join(first)}) AS first
            CROSS JOIN LATERAL (
                SELECT log_id, "index" FROM turns WHERE turns.memory_ptr_id = first.id OFFSET 0
            ) AS turn
            CROSS JOIN LATERAL (
                SELECT memory_ptr_id FROM turns WHERE turns.log_id = turn.log_id
                AND turns.index BETWEEN turn.index - {REACH} AND turn.index + {REACH} OFFSET 0
            ) AS beside
        ) AS beside CROSS JOIN LATERAL (
            SELECT * FROM memories WHERE memories.id = beside.memory_ptr_id OFFSET 0
        ) AS memories WHERE {ground.rows}"""


PASSAGE = Recaller(name="passage", serves=serves, compose=compose)
