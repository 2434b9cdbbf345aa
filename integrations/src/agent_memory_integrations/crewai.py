"""A storage of CrewAI's unified memory: `Memory(storage=AgentMemoryStorage(client))`.

Records are items of a persistent context, in a namespace for each scope, with the vectors of CrewAI's embedder.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from agent_memory_client import Client
from crewai.memory.types import MemoryRecord, ScopeInfo

from agent_memory_integrations.contexts import NamedContext

CONTEXT = "crewai"
RECORDS = "records"
MAX_ITEMS = 1_000


class AgentMemoryStorage:
    """The records of one agent, with a context for each user of it. `embedding_model` names CrewAI's embedder."""

    def __init__(self, client: Client, *, context: str = "", embedding_model: str = "") -> None:
        self.client = client
        user_id = client.settings.user_id
        self.embedding_model = embedding_model
        self._context = NamedContext(client, context or (f"{CONTEXT}:{user_id}" if user_id else CONTEXT))

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records. One of the same id in the same scope is replaced."""
        by_width: dict[int, list[dict[str, Any]]] = {}
        for record in records:
            vector = list(record.embedding or ())
            is_found = any(vector) and bool(record.content.strip())
            found: dict[str, Any] = {"texts": [record.content], "embeddings": [vector]} if is_found else {}
            item = {**item_path(record), "value": record.model_dump(mode="json"), **found}
            by_width.setdefault(len(vector) if is_found else 0, []).append(item)
        for width, items in by_width.items():
            model: dict[str, Any] = {"embedding_model": self._name_model(width)} if width else {}
            for start in range(0, len(items), MAX_ITEMS):
                self.client.write_items(self._context.ensure_id(), items=items[start : start + MAX_ITEMS], **model)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of the same id, also where it was in another scope."""
        old = self.get_record(record.id)
        self.save([record])
        if old and item_path(old) != item_path(record):
            self.client.write_items(self._context.ensure_id(), deleted=[item_path(old)])

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
        model = {"embedding_model": self._name_model(len(query_embedding))}
        page = MAX_ITEMS if categories or metadata_filter else max(1, min(limit, MAX_ITEMS))
        found = self._find(scope_prefix, {"query_embedding": query_embedding, "limit": page}, model)
        results: list[tuple[MemoryRecord, float]] = []
        for record, score in found:
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
            item_path(record)
            for record, _ in self._find(scope_prefix)
            if matches(record, categories, metadata_filter)
            and (record_ids is None or record.id in record_ids)
            and (older_than is None or as_utc(record.created_at) < as_utc(older_than))
        ]
        for start in range(0, len(going), MAX_ITEMS):
            self.client.write_items(self._context.ensure_id(), deleted=going[start : start + MAX_ITEMS])
        return len(going)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record, or None."""
        return next((record for record, _ in self._find(None, {"filter": {"id": record_id}, "limit": 1})), None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records, newest first."""
        records = sorted(self._list(scope_prefix), key=lambda record: as_utc(record.created_at), reverse=True)
        return records[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what is in a scope and the ones below."""
        records = self._list(scope)
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
        below = {scope_labels(record.scope)[: len(above) + 1] for record in self._list(parent)} - {above}
        return sorted("/" + "/".join(unquote(label) for label in labels[1:]) for labels in below)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return how many records have each category."""
        return dict(Counter(each for record in self._list(scope_prefix) for each in record.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records."""
        return len(self._list(scope_prefix))

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

    def _list(self, scope_prefix: str | None) -> list[MemoryRecord]:
        return [record for record, _ in self._find(scope_prefix)]

    def _find(
        self, scope: str | None, question: dict[str, Any] | None = None, model: dict[str, Any] | None = None
    ) -> Iterator[tuple[MemoryRecord, float | None]]:
        context_id, offset = self._context.find_id(), 0
        asked = {"namespace_prefix": scope_labels(scope or "/"), "limit": MAX_ITEMS, **(question or {})}
        items: list[dict[str, Any]] = [{}] * asked["limit"]
        while context_id and len(items) == asked["limit"]:
            found = self.client.query_items(context_id, searches=[{**asked, "offset": offset}], **(model or {}))
            items = found.to_dict()["searches"][0]["items"]
            offset += len(items)
            yield from ((MemoryRecord.model_validate(item["value"]), item["score"]) for item in items)

    def _name_model(self, width: int) -> str:
        return self.embedding_model or f"{CONTEXT}:{width}"


def scope_labels(scope: str) -> tuple[str, ...]:
    """Return the namespace of a scope. Labels have no dots, and are not empty."""
    return (RECORDS, *(quote(part, safe="").replace(".", "%2E") for part in scope.split("/") if part))


def item_path(record: MemoryRecord) -> dict[str, Any]:
    return {"namespace": scope_labels(record.scope), "key": record.id}


def matches(record: MemoryRecord, categories: list[str] | None, metadata: dict[str, Any] | None) -> bool:
    has_metadata = all(record.metadata.get(name) == value for name, value in (metadata or {}).items())
    return has_metadata and (not categories or not set(categories).isdisjoint(record.categories))


def as_utc(time: datetime) -> datetime:
    """Return a time with a zone. CrewAI's own have none and are UTC."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)
