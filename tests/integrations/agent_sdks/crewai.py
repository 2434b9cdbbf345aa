"""Use an `AgentMemoryStorage` by itself and through CrewAI's memory."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from agent_memory_client import Client
from agent_memory_integrations.crewai import AgentMemoryStorage
from agent_memory_integrations.crewai_records import scope_labels
from crewai import Memory
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord

# CrewAI's times have no zone
NOW = datetime(2026, 11, 1, 12)  # noqa: DTZ001
AXES = {"seat": [1.0, 0.0, 0.0], "food": [0.0, 1.0, 0.0], "city": [0.0, 0.0, 1.0]}


def embed(texts: list[str]) -> list[list[float]]:
    return [next((axis for word, axis in AXES.items() if word in text), [0.5, 0.5, 0.5]) for text in texts]


def make_record(record_id: str, content: str, scope: str, age_days: int, **fields: Any) -> MemoryRecord:
    [vector] = embed([content])
    made = NOW - timedelta(days=age_days)
    return MemoryRecord(id=record_id, content=content, scope=scope, created_at=made, embedding=vector, **fields)


RECORDS = [
    make_record("r1", "a window seat", "/travel/a.b", 3, categories=["likes"], metadata={"by": "form"}),
    make_record("r2", "no meat as food", "/travel", 2, categories=["likes", "diet"], source="chat", private=True),
    make_record("r3", "lives in a city", "/home", 1),
    MemoryRecord(id="r4", content="", scope="/", created_at=NOW),
]


def dump(records: list[MemoryRecord]) -> list[dict[str, Any]]:
    """Return records without their vectors, which the service keeps."""
    return [record.model_dump() for record in records]


def keep_records(storage: AgentMemoryStorage) -> None:
    assert isinstance(storage, StorageBackend)
    assert (storage.count(), storage.list_records(), storage.search([1.0, 0.0, 0.0])) == (0, [], [])
    storage.save(RECORDS)
    assert dump(storage.list_records()) == dump(RECORDS[::-1])
    assert dump(storage.list_records("/travel", limit=1, offset=1)) == dump(RECORDS[:1])
    found = storage.get_record("r2")
    assert found is not None
    assert dump([found]) == dump([RECORDS[1]])
    assert storage.get_record("none") is None
    assert [(each.id, round(score, 1)) for each, score in storage.search([1.0, 0.1, 0.0], limit=2)] == [
        ("r1", 1.0),
        ("r2", 0.1),
    ]
    assert [each.id for each, _ in storage.search([1.0, 0.1, 0.0], scope_prefix="/travel/a.b")] == ["r1"]
    assert [each.id for each, _ in storage.search([1.0, 0.1, 0.0], categories=["diet"])] == ["r2"]
    assert [each.id for each, _ in storage.search([1.0, 0.1, 0.0], metadata_filter={"by": "form"})] == ["r1"]
    assert [each.id for each, _ in storage.search([1.0, 0.1, 0.0], min_score=0.5)] == ["r1"]
    assert len(storage.search([1.0, 0.1, 0.0])) == 3
    assert storage.search([1.0, 0.1, 0.0], limit=0) == []
    assert (storage.list_scopes(), storage.list_scopes("/travel")) == (["/home", "/travel"], ["/travel/a.b"])
    assert storage.list_categories() == {"likes": 2, "diet": 1}
    info = storage.get_scope_info("/travel")
    assert (info.record_count, info.categories, info.child_scopes) == (2, ["diet", "likes"], ["/travel/a.b"])
    assert (info.oldest_record, info.newest_record) == (RECORDS[0].created_at, RECORDS[1].created_at)


def change_records(storage: AgentMemoryStorage) -> None:
    storage.update(RECORDS[0].model_copy(update={"content": "an aisle seat", "scope": "/home"}))
    assert (storage.count(), storage.count("/travel"), storage.count("/home")) == (4, 1, 2)
    assert storage.delete(categories=["diet"], older_than=NOW - timedelta(days=2)) == 0
    assert storage.delete(categories=["diet"], older_than=NOW) == 1
    assert storage.delete(record_ids=["r3", "none"]) == 1
    assert asyncio.run(storage.asearch([1.0, 0.0, 0.0], limit=1))[0][0].content == "an aisle seat"
    assert asyncio.run(storage.adelete(metadata_filter={"by": "form"})) == 1
    asyncio.run(storage.asave(RECORDS))
    storage.reset("/travel")
    assert storage.count() == 2
    storage.reset()
    assert storage.count() == 0


def use_memory(client: Client) -> None:
    memory = Memory(storage=AgentMemoryStorage(client, context="crew"), embedder=embed, llm="gpt-4o-mini")
    kept = {"scope": "/travel", "categories": ["likes"], "importance": 0.8, "metadata": {"a": 1}}
    memory.remember("Tess wants a window seat", **kept)
    [found] = memory.recall("which seat", depth="shallow")
    assert found.record.content == "Tess wants a window seat"
    memory.update(found.record.id, importance=0.9)
    [found] = memory.recall("which seat", depth="shallow")
    assert found.record.importance == 0.9
    memory.update(found.record.id, scope="/travel/rail")
    [found] = memory.recall("which seat", depth="shallow")
    assert found.record.scope == "/travel/rail"
    memory.update(found.record.id, scope="/travel")
    assert memory.list_scopes() == ["/travel"]
    assert memory.forget(record_ids=[found.record.id]) == 1
    memory.close()


def update_former_record(client: Client) -> None:
    """Update a record that a former version stored, whose value does not have its vector."""
    storage = AgentMemoryStorage(client, context="former")
    record = make_record("old", "a window seat", "/travel", 1)
    value = record.model_dump(mode="json")
    context = client.create_context(name="former").id
    item = {"namespace": scope_labels("/travel"), "key": "old", "value": value}
    vector = {"texts": [record.content], "embeddings": [record.embedding]}
    client.write_items(context, items=[item | vector], embedding_model="crewai:3")
    found = storage.get_record("old")
    assert found is not None
    assert found.embedding is None
    storage.update(found.model_copy(update={"importance": 0.9}))
    [(kept, score)] = storage.search([1.0, 0.0, 0.0])
    assert (kept.importance, round(score, 2)) == (0.9, 1.0)


def go_on_after_the_context_was_deleted(client: Client) -> None:
    storage, record = AgentMemoryStorage(client, context="gone"), make_record("one", "a window seat", "/travel", 1)
    storage.save([record])
    [context] = client.list_contexts(name="gone")
    client.delete_context(context.id)
    assert storage.count() == 0
    storage.save([record])
    assert storage.count() == 1


with Client(agent_id="tester", user_id="tess") as client, Client(agent_id="tester", user_id="ben") as other:
    keep_records(AgentMemoryStorage(client))
    assert AgentMemoryStorage(other).count() == 0
    change_records(AgentMemoryStorage(client))
    use_memory(client)
    update_former_record(client)
    go_on_after_the_context_was_deleted(client)
