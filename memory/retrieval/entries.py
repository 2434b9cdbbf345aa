"""Search in the entries of persistent contexts (P5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from memory.kinds import Kind
from memory.models import Memory
from memory.models.binary import binary_cursor, fetch_dicts
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.search import Hit, KindSearch, MemoryQuery, Row, SearchResults, search_kind

RECALLED_FIELDS = (
    *("agent_id", "user_id", "channel", "conversation_id", "event_time", "created_at"),
    *("similarity", "score", "reasons"),
)
ENTRY_COLUMNS = (
    *("context_id", "key", "value", "entry_type", "source_type", "memory_type"),
    *("importance", "confidence", "content_version"),
)

READ_ENTRIES = f"""
SELECT memories.id, metadata, {", ".join(ENTRY_COLUMNS)}
FROM memories JOIN context_entries ON memory_ptr_id = memories.id
WHERE account_id = %s AND memories.id = ANY(%s::uuid[])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHit(Hit):
    """A found entry. Without a key, `value` adds nothing to the content.

    `score` and `reasons` come from a recall: its order, and why people see the entry.
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


EntryResults = SearchResults[EntryHit]
ENTRIES = KindSearch(
    kind=Kind.CONTEXT_ENTRY, hit=EntryHit, table="context_entries", columns=ENTRY_COLUMNS, text_field="content"
)


def search_entries(owner: Owner, query: MemoryQuery, *, now: datetime) -> EntryResults:
    """Return, for staff, the `top_k` entries nearest to the query in contexts that the owner may read.

    Archived contexts are left out, and `query.contexts` limits the others (see `search_rows`). One statement. Searches
    of clients are recalls (`services.contexts.search`).
    """
    return search_kind(owner, ENTRIES, query, now=now)


def read_entry_hits(owner: Owner, recalled: Sequence[Candidate]) -> list[EntryHit]:
    """Return the entries that a recall found, in its order, without those deleted since. At most one statement."""
    if not recalled:
        return []
    with binary_cursor() as cursor:
        cursor.execute(READ_ENTRIES, [owner.account_id, [found.id for found in recalled]])
        known = {row["id"]: row for row in fetch_dicts(cursor)}
    return [recalled_entry_hit(found, known[found.id]) for found in recalled if found.id in known]


def locate_entries(owner: Owner, ids: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
    """Return pairs of context id and entry id, as the access log takes them. At most one statement."""
    if not ids:
        return []
    rows = Memory.objects.filter(account_id=owner.account_id, kind=Kind.CONTEXT_ENTRY, id__in=ids)
    return list(rows.values_list("context_id", "id"))


def recalled_entry_hit(found: Candidate, row: Row) -> EntryHit:
    shared = {name: getattr(found, name) for name in RECALLED_FIELDS}
    return EntryHit(content=found.text, **shared, **row)
