"""By time: what is of a time that the question speaks of."""

from typing import Any

from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query

MOST = 50


def serves(query: Query, _orientation: Orientation) -> bool:
    return bool(query.windows)


def compose(ground: Ground) -> str:
    return f"""
        SELECT id FROM unnest(%(windows_since)s::timestamptz[], %(windows_until)s::timestamptz[])
            AS asked (opens, closes) CROSS JOIN LATERAL (
            SELECT memories.id FROM memories WHERE {ground.rows}
                AND event_time >= coalesce(asked.opens, '-infinity')
                AND event_time < coalesce(asked.closes, 'infinity')
            ORDER BY salience DESC, event_time DESC, id LIMIT {MOST}
        ) AS within"""


def bind(query: Query, _orientation: Orientation) -> dict[str, Any]:
    return {
        "windows_since": [window.since for window in query.windows],
        "windows_until": [window.until for window in query.windows],
    }


TEMPORAL = Recaller(name="temporal", serves=serves, compose=compose, bind=bind)
