"""Search in persistent contexts (P5): what their entries say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from memory.models import Kind, Memory
from memory.models.binary import binary_cursor, fetch_dicts
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.search import Found, Hit, MemoryQuery, Row, Searched, search_rows

ENTRIES = Searched(
    kind=Kind.CONTEXT_ENTRY,
    table="context_entries",
    columns=(
        *("context_id", "key", "value", "entry_type", "source_type", "memory_type"),
        *("importance", "confidence", "content_version"),
    ),
)

READ_ENTRIES = f"""
SELECT memories.id, metadata, {", ".join(ENTRIES.columns)}
FROM memories JOIN context_entries ON memory_ptr_id = memories.id
WHERE account_id = %s AND memories.id = ANY(%s::uuid[])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHit(Hit):
    """A found entry. Without a key, `value` says nothing beside the content.

    `score` orders what a recall found, `reasons` say why, for people.
    """

    kind: ClassVar[Kind] = Kind.CONTEXT_ENTRY

    content: str
    context_id: UUID
    key: str
    value: Any
    entry_type: str
    source_type: str
    memory_type: str
    importance: float
    confidence: float
    content_version: int
    score: float = 0.0
    reasons: Sequence[str] = ()


EntriesFound = Found[EntryHit]


def search_entries(owner: Owner, query: MemoryQuery, *, now: datetime) -> EntriesFound:
    """For staff: the `top_k` entries nearest to the query in contexts that the owner may read, archived ones apart.

    In those of `query.contexts` only, where it names any (see `search_rows`). One statement. Clients' searches are
    recalls (`services.entry_searches`).
    """
    found = search_rows(owner, ENTRIES, query, now=now)
    return Found(hits=[make_hit(row) for row in found.hits], degraded=found.degraded)


def make_hit(row: Row) -> EntryHit:
    return EntryHit(content=row["text"], **{name: value for name, value in row.items() if name != "text"})


def read_entries(owner: Owner, recalled: Sequence[Candidate]) -> list[EntryHit]:
    """What is known of entries that a recall found, in its order. One statement, none for nothing.

    What has gone since is left out.
    """
    if not recalled:
        return []
    with binary_cursor() as cursor:
        cursor.execute(READ_ENTRIES, [owner.account_id, [found.id for found in recalled]])
        known = {row["id"]: row for row in fetch_dicts(cursor)}
    return [make_recalled(found, known[found.id]) for found in recalled if found.id in known]


def locate_entries(owner: Owner, ids: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
    """In which context each of these is, with its id: as the access log takes them. None for nothing."""
    if not ids:
        return []
    rows = Memory.objects.filter(account_id=owner.account_id, kind=Kind.CONTEXT_ENTRY, id__in=ids)
    return list(rows.values_list("context_id", "id"))


def make_recalled(found: Candidate, row: Row) -> EntryHit:
    return EntryHit(
        content=found.text,
        agent_id=found.agent_id,
        user_id=found.user_id,
        channel=found.channel,
        conversation_id=found.conversation_id,
        event_time=found.event_time,
        created_at=found.created_at,
        similarity=found.similarity,
        score=found.score,
        reasons=found.reasons,
        **row,
    )
