"""What people pinned: in every recall that may see it."""

from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query

MOST = 5


def serves(_query: Query, _orientation: Orientation) -> bool:
    return True


def compose(ground: Ground) -> str:
    # few are pinned: OFFSET 0 spares the planner all other ways to them
    return f"""
        SELECT id FROM (
            SELECT * FROM memories WHERE account_id = %(account_id)s AND pinned OFFSET 0
        ) AS memories WHERE {ground.rows}
        ORDER BY salience DESC, event_time DESC, id LIMIT {MOST}"""


PINNED = Recaller(name="pinned", serves=serves, compose=compose)
