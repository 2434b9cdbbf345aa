"""A plain search: a recall of memories of many kinds, without goals and profile, with all columns of what it finds."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.kinds import Kind, kinds_where
from memory.models.statements import binary_cursor, fetch_dicts
from memory.owner import Owner
from memory.retrieval.candidates import Bundle, Candidate
from memory.services.recall.recall import RecallRequest, recall

READ_DETAILS = """
SELECT id, created_at, metadata, expires_at, coalesce(importance, salience) AS importance, context_id,
    coalesce(key, '') AS key, value
FROM memories WHERE account_id = %s AND id = ANY(%s::uuid[])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMemory:
    """A memory that a search found, with the columns that a recall does not read."""

    candidate: Candidate
    details: dict[str, Any]


def searchable_kinds() -> frozenset[Kind]:
    """Return the kinds that a plain search covers: all that no policy about reasoning may hide."""
    return kinds_where(lambda spec: not spec.has_reasoning_tier)


def search_memories(owner: Owner, asked: RecallRequest, *, now: datetime) -> tuple[Bundle, list[FoundMemory]]:
    """Return a recall and its results with all columns, best first, without those deleted since.

    One statement more than `recall`, whose errors it raises. Call `conclude_recall` with the bundle afterwards.
    """
    bundle = recall(owner, asked, now=now)
    if not bundle.results:
        return bundle, []
    with binary_cursor() as cursor:
        cursor.execute(READ_DETAILS, [owner.account_id, [result.id for result in bundle.results]])
        details = {row.pop("id"): row for row in fetch_dicts(cursor)}
    found = [result for result in bundle.results if result.id in details]
    return bundle, [FoundMemory(candidate=result, details=details[result.id]) for result in found]
