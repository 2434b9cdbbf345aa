"""What people pinned: in every recall that may see it."""

from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query

MOST = 5


def serves(_query: Query, _orientation: Orientation) -> bool:
    return True


def compose(ground: Ground) -> str:
    return f"""
        SELECT id FROM memories WHERE {ground.rows} AND pinned
        ORDER BY salience DESC, event_time DESC, id LIMIT {MOST}"""


PINNED = Recaller(name="pinned", serves=serves, compose=compose)
