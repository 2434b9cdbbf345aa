"""By time: of the times that the question speaks of, what is nearest to it in meaning, or in words without a vector.

Of a long time the latest memories of each kind are looked at: what answers best of all is found by words and meaning
anyway, and the scorer `window` prefers it.
"""

from typing import Any

from memory.models import Kind
from memory.retrieval.lexical import score_of_terms
from memory.retrieval.plans import Ground, Orientation, Recaller, Shape
from memory.retrieval.queries import Query

MOST = 50
LOOKED_AT = 100
"""Of each kind and window."""


def serves(query: Query, _orientation: Orientation) -> bool:
    return bool(query.windows)


def compose(ground: Ground) -> str:
    """Each kind by itself, as the index by time has them: so a long time costs no more than a short one."""
    return f"""
        SELECT id FROM (
            SELECT DISTINCT ON (memories.id) memories.*
            FROM unnest(%(windows_since)s::timestamptz[], %(windows_until)s::timestamptz[]) AS asked (opens, closes)
            CROSS JOIN unnest(%(windows_kinds)s::text[]) AS of (kind) CROSS JOIN LATERAL (
                SELECT memories.* FROM memories WHERE {ground.rows} AND memories.kind = of.kind
                    AND event_time >= coalesce(asked.opens, '-infinity')
                    AND event_time < coalesce(asked.closes, 'infinity')
                ORDER BY event_time DESC LIMIT {LOOKED_AT}
            ) AS memories
        ) AS memories ORDER BY {order_of(ground.shape)}, salience DESC, event_time DESC, id LIMIT {MOST}"""


def order_of(shape: Shape) -> str:
    """Without a vector of its own, a memory comes after those that have one."""
    if not shape.width:
        return f"{score_of_terms(shape)} DESC"
    return f"""(
        SELECT vector <=> %(vector)s::halfvec FROM memory_vectors
        WHERE memory_id = memories.id AND model = %(model)s AND width = {shape.width}
    )"""


def bind(query: Query, _orientation: Orientation) -> dict[str, Any]:
    return {
        "windows_since": [window.since for window in query.windows],
        "windows_until": [window.until for window in query.windows],
        "windows_kinds": [str(kind) for kind in query.kinds or Kind],
    }


TEMPORAL = Recaller(name="temporal", serves=serves, compose=compose, bind=bind)
