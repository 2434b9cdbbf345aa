"""The records of CrewAI's memory as items of a persistent context, in a namespace for each scope."""

import base64
import json
import math
import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from agent_memory_client import Client
from crewai.memory.types import MemoryRecord

from agent_memory_integrations.contexts import NamedContext
from agent_memory_integrations.item_pages import MAX_ITEMS, ItemPages

CONTEXT = "crewai"
RECORDS = "records"
VECTOR = "vector"
"""Member of a value with the record's vector, since an update of other fields must send it again."""
MAX_VALUE_BYTES = 65_536
"""Bytes of a value that the service stores. A longer one is stored without its vector."""


class RecordItems:
    """Reads and writes records. `embedding_model` names the model that made their vectors."""

    def __init__(self, client: Client, *, context: str, embedding_model: str) -> None:
        self.client = client
        self.embedding_model = embedding_model
        self._context = NamedContext(client, context)

    def write(self, records: Sequence[MemoryRecord]) -> None:
        """Store records. One of the same id in the same scope is replaced."""
        by_width: dict[int, list[dict[str, Any]]] = {}
        for record in records:
            item = make_item(record)
            by_width.setdefault(len(item["embeddings"][0]) if "embeddings" in item else 0, []).append(item)
        for width, items in by_width.items():
            model: dict[str, Any] = {"embedding_model": self._name_model(width)} if width else {}
            for start in range(0, len(items), MAX_ITEMS):
                self._context.write(items=items[start : start + MAX_ITEMS], **model)

    def remove(self, records: Sequence[MemoryRecord]) -> None:
        """Delete records."""
        for start in range(0, len(records), MAX_ITEMS):
            paths = [item_path(record) for record in records[start : start + MAX_ITEMS]]
            self._context.write(deleted=paths)

    def read_all(self, scope: str | None) -> list[MemoryRecord]:
        """Return all records of a scope and of those below."""
        return [record for record, _ in self.find(scope)]

    def find(self, scope: str | None, **question: Any) -> Iterator[tuple[MemoryRecord, float | None]]:
        """Yield records of a scope and of those below, with their scores if the question has a vector."""
        vector = question.get("query_embedding")
        model: dict[str, Any] = {"embedding_model": self._name_model(len(vector))} if vector else {}
        pages = ItemPages({"namespace_prefix": scope_labels(scope or "/"), **question})
        while (asked := pages.next_search()) and (found := self._context.query(searches=[asked], **model)):
            for item in pages.read_items(found):
                yield make_record(item["value"]), item["score"]

    def read_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record with its vector, or None."""
        return next((record for record, _ in self.find(None, filter={"id": record_id}, limit=1)), None)

    def _name_model(self, width: int) -> str:
        return self.embedding_model or f"{CONTEXT}:{width}"


def make_item(record: MemoryRecord) -> dict[str, Any]:
    """Return the item of a record, with its vector if searches are to find it."""
    value = record.model_dump(mode="json")
    item = {**item_path(record), "value": value}
    if not record.content.strip():
        return item
    vector = list(record.embedding or ())
    if not any(vector):
        # the service makes a vector of its own, by which recall finds the text
        return item | {"texts": [record.content]}
    kept = value | {VECTOR: encode_vector(vector)}
    item["value"] = kept if len(json.dumps(kept, ensure_ascii=False).encode()) <= MAX_VALUE_BYTES else value
    return item | {"texts": [record.content], "embeddings": [vector]}


def make_record(value: dict[str, Any]) -> MemoryRecord:
    """Return the record of a value, with its vector if that was kept."""
    fields = {name: member for name, member in value.items() if name != VECTOR}
    record = MemoryRecord.model_validate(fields)
    if VECTOR in value:
        record.embedding = decode_vector(value[VECTOR])
    return record


def encode_vector(vector: Sequence[float]) -> str:
    """Return a vector at unit length as text: Base64 of half-precision numbers, as exact as the service keeps them."""
    length = math.hypot(*vector)
    return base64.b64encode(struct.pack(f"<{len(vector)}e", *(each / length for each in vector))).decode()


def decode_vector(text: str) -> list[float]:
    """Return the vector that `encode_vector` took."""
    packed = base64.b64decode(text)
    return list(struct.unpack(f"<{len(packed) // 2}e", packed))


def item_path(record: MemoryRecord) -> dict[str, Any]:
    return {"namespace": scope_labels(record.scope), "key": record.id}


def scope_labels(scope: str) -> tuple[str, ...]:
    """Return the namespace of a scope. Labels have no dots, and are not empty."""
    return (RECORDS, *(quote(part, safe="").replace(".", "%2E") for part in scope.split("/") if part))


def scope_of(labels: Sequence[str]) -> str:
    """Return the scope of a namespace."""
    return "/" + "/".join(unquote(label) for label in labels[1:])


def matches(record: MemoryRecord, categories: Sequence[str] | None, metadata: dict[str, Any] | None) -> bool:
    has_metadata = all(record.metadata.get(name) == value for name, value in (metadata or {}).items())
    return has_metadata and (not categories or not set(categories).isdisjoint(record.categories))


def as_utc(time: datetime) -> datetime:
    """Return a time with a zone. CrewAI's own have none and are UTC."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)
