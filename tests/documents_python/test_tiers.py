"""The Python of the tiered service: its Ruby calls, as a user would type them in Python."""

from typing import Any

import pytest
from django.utils import timezone

from memory.documented.tiers import (
    EmbeddingService,
    MaintenanceService,
    RouterService,
    StorageService,
    WorkingMemoryService,
)
from memory.models import Account, Agent, AgentShortTermMemory
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft
from memory.services.pools.manage import PoolDraft

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


@pytest.fixture
def router(default_account: Account) -> RouterService:
    return RouterService(account=default_account, agent="assistant")


@pytest.fixture
def wm(default_account: Account) -> WorkingMemoryService:
    return WorkingMemoryService(agent="assistant", account="default", task="t1")


def test_the_router_reads_what_it_wrote(router: RouterService) -> None:
    router.write("task_result", {"output": "done"}, tier="short_term", session_id="sess-123")
    router.write("colour", "green", tier="long_term")

    value: Any = router.read("task_result", session_id="sess-123")

    assert value["output"] == "done"
    assert router.read("colour") == "green"
    assert router.find("colour").tier == "long_term"


def test_the_router_searches_by_an_embedding(router: RouterService) -> None:
    router.write("mat", "The key is under the mat.", tier="long_term")
    query_embedding = [float(number) for number in EmbeddingService().embed("The key is under the mat.")]

    results = router.semantic_search(query_embedding, limit=10)

    assert [hit.key for hit in results.hits] == ["mat"]


def test_the_router_consolidates_what_was_read_three_times(router: RouterService) -> None:
    router.write("colour", "green", tier="short_term", session_id="sess-123")
    for _ in range(3):
        router.read("colour", session_id="sess-123")

    router.consolidate(session_id="sess-123")

    assert router.find("colour", tier="long_term").value == "green"
    assert set(router.stats()) == {"working_memory", "short_term", "long_term", "shared"}


def test_an_agents_row_stands_for_its_name(default_account: Account) -> None:
    RouterService(agent="assistant").write("colour", "green")
    agent = Agent.objects.get(agent_id="assistant")

    assert RouterService(account=default_account, agent=agent).read("colour") == "green"


def test_working_memory_stores_values(wm: WorkingMemoryService) -> None:
    wm.store("key", {"a": 1}, ttl=300)

    assert wm.retrieve("key") == {"a": 1}
    assert wm.exists("key")
    assert wm.keys() == ["key"]
    wm.remove("key")
    assert not wm.exists("key")
    wm.store("other", 1)
    wm.clear()
    assert wm.keys() == []


def test_working_memory_has_documented_values(wm: WorkingMemoryService) -> None:
    wm.store_task_state({"step": 1})
    wm.store_intermediate_result("parse", [1, 2])
    wm.store_conversation_context([{"role": "user", "content": "hello"}])
    wm.append_to_conversation({"role": "assistant", "content": "hi"})
    wm.store_tool_state("search", {"page": 2})
    wm.store_scratch_pad("first")
    wm.append_to_scratch_pad(", second")

    assert wm.keys() == [
        "conversation_context",
        "intermediate_result:parse",
        "scratch_pad",
        "task_state",
        "tool_state:search",
    ]
    assert wm.get_scratch_pad() == "first, second"
    assert len(wm.get_conversation_context()) == 2


def test_a_scratch_pad_begins_by_an_append(wm: WorkingMemoryService) -> None:
    wm.append("scratch_pad", "first")
    wm.append_to_scratch_pad(", second")

    assert wm.get_scratch_pad() == "first, second"


def test_working_memory_is_shared_and_saved(wm: WorkingMemoryService) -> None:
    colleague = WorkingMemoryService(agent="colleague", task="t1")
    wm.share_with_agent("colleague", "plan", ["look"])
    assert colleague.retrieve_shared("assistant", "plan") == ["look"]

    wm.store("key", "value")
    wm.persist_to_database()
    wm.clear()
    wm.load_from_database()
    assert wm.retrieve("key") == "value"
    assert wm.workflow_memory("run-1").keys() == []


def test_storage_keeps_facts_and_pools(owner: Owner) -> None:
    storage = StorageService(owner=owner)
    storage.store_fact(EntryDraft(key="mat", content="The key is under the mat."))
    storage.create_pool(PoolDraft(pool_id="plan", data={"one": "look"}))

    assert [hit.key for hit in storage.find_facts("The key is under the mat.").hits] == ["mat"]
    assert storage.merge_pool("plan", {"two": "dig"}).data == {"one": "look", "two": "dig"}


def test_maintenance_promotes_and_cleans_up(owner: Owner, router: RouterService) -> None:
    router.write("colour", "green", tier="short_term")
    for _ in range(3):
        router.read("colour")
    AgentShortTermMemory.objects.update(expires_at=timezone.now())
    maintenance = MaintenanceService(owner)

    runs = [
        maintenance.consolidate(),
        maintenance.deduplicate(),
        maintenance.cleanup_expired(),
        maintenance.detect_context_rot(),
    ]

    assert [run.status for run in runs] == ["completed"] * 4
    assert router.find("colour", tier="long_term").value == "green"
    assert not AgentShortTermMemory.objects.exists()
