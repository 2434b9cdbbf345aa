"""Search by time: memories from the times that the question mentions, nearest in meaning (or in words) first.

Of a long time only the latest memories of each kind are read: words and meaning find the best answers anyway, and the
scorer `window` prefers those. They are searched for among the latest memories of the account and the latest that the
agent wrote, the same number of each, so a visible memory that is older than so many of other agents' may be missed by
time, and the search never takes long.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memory.kinds import all_kinds
from memory.retrieval.plans import GatheringShape, QueryAnalysis, Retriever, VisibleRows
from memory.retrieval.queries import Query, TimeWindow
from memory.retrieval.retrievers.lexical import bm25_of_terms_sql
from memory.retrieval.statements import SEARCHED_COLUMNS

MAX_FOUND = 50
MAX_COMPARED = 100
"""Visible memories of each kind and window that are compared with the question."""
MAX_SCANNED = 1_000
"""Memories of each kind and window that are read to find visible ones, of the account and of the agent each."""

LATEST = f"""(SELECT {SEARCHED_COLUMNS} FROM memories
    WHERE account_id = %(account_id)s{{further}} AND kind = of.kind
        AND event_time >= coalesce(asked.opens, '-infinity') AND event_time < coalesce(asked.closes, 'infinity')
    ORDER BY event_time DESC LIMIT {MAX_SCANNED})"""

MIN_TIME, MAX_TIME = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class TemporalRetriever(Retriever):
    """Finds memories from the times that the question mentions."""

    name = "temporal"

    def applies(self, query: Query, analysis: QueryAnalysis) -> bool:
        return bool(query.windows)

    def to_sql(self, visible: VisibleRows) -> str:
        """Return the search kind by kind, as the indexes by time are: so a long time costs no more than a short one."""
        latest = [LATEST.format(further="")]
        if visible.shape.owner.has_agent:
            latest.append(LATEST.format(further=" AND agent_id = %(agent_id)s"))
        return f"""
            SELECT id FROM (
                SELECT DISTINCT ON (memories.id) memories.*
                FROM unnest(%(windows_since)s::timestamptz[], %(windows_until)s::timestamptz[]) AS asked (opens, closes)
                CROSS JOIN unnest(%(windows_kinds)s::text[]) AS of (kind) CROSS JOIN LATERAL (
                    SELECT * FROM ({" UNION ALL ".join(latest)}) AS memories WHERE {visible.rows}
                    ORDER BY event_time DESC LIMIT {MAX_COMPARED * len(latest)}
                ) AS memories
            ) AS memories
            ORDER BY {relevance_order(visible.shape)}, salience DESC, event_time DESC, id LIMIT {MAX_FOUND}"""

    def params(self, query: Query, analysis: QueryAnalysis) -> dict[str, Any]:
        windows = merge_windows(query.windows)
        return {
            "windows_since": [window.since for window in windows],
            "windows_until": [window.until for window in windows],
            "windows_kinds": [str(kind) for kind in query.kinds or all_kinds()],
        }


def relevance_order(shape: GatheringShape) -> str:
    """Return what to order by. A memory without a vector comes after those that have one."""
    if not shape.width:
        return f"{bm25_of_terms_sql(shape)} DESC"
    return f"""(
        SELECT min(vector <=> %(vector)s::halfvec) FROM memory_vectors
        WHERE account_id = %(account_id)s AND memory_id = memories.id AND model = %(model)s AND width = {shape.width}
    )"""


def merge_windows(windows: Sequence[TimeWindow]) -> list[TimeWindow]:
    """Return windows that cover the same times without overlaps, earliest first."""
    merged: list[TimeWindow] = []
    for window in sorted(windows, key=lambda each: each.since or MIN_TIME):
        if merged and (merged[-1].until or MAX_TIME) >= (window.since or MIN_TIME):
            ends = [merged[-1].until, window.until]
            until = None if None in ends else max(end for end in ends if end)
            merged[-1] = TimeWindow(since=merged[-1].since, until=until)
        else:
            merged.append(window)
    return merged


TEMPORAL = TemporalRetriever()
