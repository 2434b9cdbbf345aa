"""By time: of the times that the question speaks of, what is nearest to it in meaning, or in words without a vector.

Of a long time the latest memories of each kind are looked at: what answers best of all is found by words and meaning
anyway, and the scorer `window` prefers it. They are looked for among the latest of the account and the latest that the
agent wrote, so many of each: what lies behind more of other people's is not found by its time, and nobody waits for
it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memory.models import Kind
from memory.retrieval.lexical import score_of_terms
from memory.retrieval.plans import Ground, Orientation, Recaller, Shape
from memory.retrieval.queries import Query, Window

MOST = 50
LOOKED_AT = 100
"""Of each kind and window."""
LOOKED_THROUGH = 1_000
"""Of each kind and window, to find those that the owner sees: of the account, and of the agent."""

LATEST = f"""(SELECT * FROM memories
    WHERE account_id = %(account_id)s{{further}} AND kind = of.kind
        AND event_time >= coalesce(asked.opens, '-infinity') AND event_time < coalesce(asked.closes, 'infinity')
    ORDER BY event_time DESC LIMIT {LOOKED_THROUGH})"""

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def serves(query: Query, _orientation: Orientation) -> bool:
    return bool(query.windows)


def compose(ground: Ground) -> str:
    """Each kind by itself, as the indexes by time have them: so a long time costs no more than a short one."""
    latest = [LATEST.format(further="")]
    if ground.shape.has_agent:
        latest.append(LATEST.format(further=" AND agent_id = %(agent_id)s"))
    return f"""
        SELECT id FROM (
            SELECT DISTINCT ON (memories.id) memories.*
            FROM unnest(%(windows_since)s::timestamptz[], %(windows_until)s::timestamptz[]) AS asked (opens, closes)
            CROSS JOIN unnest(%(windows_kinds)s::text[]) AS of (kind) CROSS JOIN LATERAL (
                SELECT * FROM ({" UNION ALL ".join(latest)}) AS memories WHERE {ground.rows}
                ORDER BY event_time DESC LIMIT {LOOKED_AT * len(latest)}
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
    windows = merge(query.windows)
    return {
        "windows_since": [window.since for window in windows],
        "windows_until": [window.until for window in windows],
        "windows_kinds": [str(kind) for kind in query.kinds or Kind],
    }


def merge(windows: Sequence[Window]) -> list[Window]:
    """The same times without any twice."""
    merged: list[Window] = []
    for window in sorted(windows, key=lambda each: each.since or FIRST):
        if merged and (merged[-1].until or LAST) >= (window.since or FIRST):
            ends = [merged[-1].until, window.until]
            until = None if None in ends else max(end for end in ends if end)
            merged[-1] = Window(since=merged[-1].since, until=until)
        else:
            merged.append(window)
    return merged


TEMPORAL = Recaller(name="temporal", serves=serves, compose=compose, bind=bind)
