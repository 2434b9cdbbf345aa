"""Search in persistent contexts (P5): what their entries say."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import Found, Hit, MemoryQuery, Row, Searched, search_rows

ENTRIES = Searched(
    kind=Kind.CONTEXT_ENTRY,
    table="context_entries",
    columns=(
        *("context_id", "key", "value", "entry_type", "source_type", "memory_type"),
        *("importance", "confidence", "content_version"),
    ),
    type_column="entry_type",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHit(Hit):
    """A found entry. Without a key, `value` says nothing beside the content."""

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


EntriesFound = Found[EntryHit]


def search_entries(owner: Owner, query: MemoryQuery, *, now: datetime) -> EntriesFound:
    """The `top_k` entries nearest to the query in contexts that the owner may read and that are not archived.

    In those of `query.contexts` and of the entry types `query.types` only, where it names any (see `search_rows`). One
    statement.
    """
    found = search_rows(owner, ENTRIES, query, now=now)
    return Found(hits=[make_hit(row) for row in found.hits], degraded=found.degraded)


def make_hit(row: Row) -> EntryHit:
    return EntryHit(content=row["text"], **{name: value for name, value in row.items() if name != "text"})
