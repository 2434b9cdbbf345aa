"""A storage of CrewAI's unified memory: `Memory(storage=AgentMemoryStorage(client))`.

Records keep the vectors of CrewAI's embedder.
"""

import asyncio
from collections import Counter
from datetime import datetime
from typing import Any

from agent_memory_client import Client
from crewai.memory.types import MemoryRecord, ScopeInfo

from agent_memory_integrations.crewai_records import (
    CONTEXT,
    RecordItems,
    as_utc,
    matches,
    scope_labels,
    scope_of,
)
from agent_memory_integrations.item_pages import MAX_ITEMS


class AgentMemoryStorage:
    """The records of one agent, with a context for each user of it. `embedding_model` names CrewAI's embedder."""

    def __init__(self, client: Client, *, context: str = "", embedding_model: str = "") -> None:
        user_id = client.settings.user_id
        own_context = f"{CONTEXT}:{user_id}" if user_id else CONTEXT
        self._items = RecordItems(client, context=context or own_context, embedding_model=embedding_model)

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records. One of the same id in the same scope is replaced."""
        self._items.write(records)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of the same id, also where it was in another scope."""
        old = self.get_record(record.id)
        self.save([record])
        if old and scope_labels(old.scope) != scope_labels(record.scope):
            self._items.remove([old])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return records by cosine similarity, best first. `categories`: at least one of them."""
        page = MAX_ITEMS if categories or metadata_filter else max(1, min(limit, MAX_ITEMS))
        results: list[tuple[MemoryRecord, float]] = []
        for record, score in self._items.find(scope_prefix, query_embedding=query_embedding, limit=page):
            if score is None or score < min_score:
                break
            if matches(record, categories, metadata_filter):
                results.append((record, score))
            # the next one may be in another request
            if len(results) >= limit:
                break
        return results[:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet all conditions, and return their number."""
        going = [
            record
            for record in self._items.read_all(scope_prefix)
            if matches(record, categories, metadata_filter)
            and (record_ids is None or record.id in record_ids)
            and (older_than is None or as_utc(record.created_at) < as_utc(older_than))
        ]
        self._items.remove(going)
        return len(going)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record, or None."""
        return self._items.read_record(record_id)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records, newest first."""
        records = sorted(self._items.read_all(scope_prefix), key=lambda record: as_utc(record.created_at), reverse=True)
        return records[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what is in a scope and the ones below."""
        records = self._items.read_all(scope)
        times = sorted((record.created_at for record in records), key=as_utc)
        return ScopeInfo(
            path=scope,
            record_count=len(records),
            categories=sorted({each for record in records for each in record.categories}),
            oldest_record=times[0] if times else None,
            newest_record=times[-1] if times else None,
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes right below."""
        above = scope_labels(parent)
        below = {scope_labels(record.scope)[: len(above) + 1] for record in self._items.read_all(parent)} - {above}
        return sorted(scope_of(labels) for labels in below)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return how many records have each category."""
        return dict(Counter(each for record in self._items.read_all(scope_prefix) for each in record.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records."""
        return len(self._items.read_all(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Do as `save`, in a thread."""
        await asyncio.to_thread(self.save, records)

    async def asearch(self, query_embedding: list[float], **options: Any) -> list[tuple[MemoryRecord, float]]:
        """Do as `search`, in a thread."""
        return await asyncio.to_thread(self.search, query_embedding, **options)

    async def adelete(self, **conditions: Any) -> int:
        """Do as `delete`, in a thread."""
        return await asyncio.to_thread(self.delete, **conditions)
