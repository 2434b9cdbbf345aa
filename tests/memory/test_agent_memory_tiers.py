"""The in-process API over keyed values, pools, tool caches and facts: each call leads to its service, as its owner."""

import doctest
from datetime import timedelta

import pytest

from memory import agent_tiers
from memory.agent_memory import AgentMemory
from memory.errors import Forbidden, NotFound, StaleVersion
from memory.models import Account, AuditEntry, Level
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft
from memory.services.contexts.manage import ensure_own_context
from memory.services.pools.manage import PoolDraft, grant_access
from memory.services.pools.workflow_runs import RunDraft, create_run_pool, start_run
from memory.tiers.base import NewValue
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]

LATER = NOW + timedelta(days=1)


@pytest.fixture
def memory(owner: Owner) -> AgentMemory:
    return AgentMemory(owner, clock=lambda: NOW)


@pytest.fixture
def colleague(account: Account) -> AgentMemory:
    return AgentMemory(Owner(account_id=account.id, agent_id="colleague"), clock=lambda: NOW)


@pytest.fixture
def stranger_memory(stranger: Account) -> AgentMemory:
    """The same agent's name in another account."""
    return AgentMemory(Owner(account_id=stranger.id, agent_id="assistant"), clock=lambda: NOW)


def test_the_examples_run(memory: AgentMemory) -> None:
    ran = doctest.testmod(agent_tiers, extraglobs={"memory": memory, "PoolDraft": PoolDraft})

    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_the_router_reads_and_writes_entries_and_reports_their_tier(
    memory: AgentMemory, colleague: AgentMemory
) -> None:
    memory.router.write("colour", NewValue(value="green"), tier="long_term")

    assert memory.router.read("colour").tier == "long_term"
    assert [hit.key for hit in memory.router.semantic_search("green").hits] == ["colour"]
    assert memory.router.stats()["long_term"].entries == 1
    assert memory.router.delete("colour") == ("long_term",)
    with pytest.raises(NotFound):
        colleague.router.read("colour")


def test_a_frequently_read_entry_is_consolidated(memory: AgentMemory) -> None:
    notes = memory.short_term("talk-1")
    notes.store("colour", "green")
    for _ in range(3):
        notes.read("colour")

    assert memory.router.consolidate(session_id="talk-1").keys == ["colour"]
    assert memory.router.read("colour", tier="long_term").value == "green"


def test_a_short_term_entry_lives_by_the_clock(memory: AgentMemory) -> None:
    notes = memory.short_term("talk-1")
    notes.store("colour", "green", ttl_seconds=60)

    with pytest.raises(NotFound):
        notes.read("colour", now=LATER)
    with pytest.raises(NotFound):
        memory.short_term().read("colour")
    notes.delete("colour")
    with pytest.raises(NotFound):
        notes.read("colour")


def test_working_memory_is_narrowed_and_shared(memory: AgentMemory, colleague: AgentMemory) -> None:
    memory.agent_working_memory(task_id="t1").store("step", 3)

    memory.agent_working_memory().share_with_agent("colleague", "step", 3)

    assert memory.agent_working_memory().retrieve("step") is None
    assert memory.agent_working_memory(task_id="t1").retrieve("step") == 3
    assert colleague.agent_working_memory().retrieve_shared("assistant", "step") == 3


def test_a_pool_is_written_by_version_and_by_grant(memory: AgentMemory, colleague: AgentMemory) -> None:
    memory.create_pool(PoolDraft(pool_id="plan", pool_type="agent_private", data={"a": 1}))
    plan, theirs = memory.pool("plan"), colleague.pool("plan")
    with pytest.raises(NotFound):
        theirs.read()

    grant_access(memory.owner, "plan", agent_id="colleague", level=Level.READ, expected=None, now=NOW)
    assert theirs.read("/a").data == 1
    with pytest.raises(Forbidden):
        theirs.write({})

    assert plan.write(2, path="/a").data == {"a": 2}
    with pytest.raises(StaleVersion):
        plan.merge({"b": 1}, expected=frozenset({1}))


def test_a_tool_cache_is_shared_by_the_agents_of_its_run(memory: AgentMemory, colleague: AgentMemory) -> None:
    start_run(memory.owner, RunDraft(workflow_run_id="run-1", agents=["colleague"]), now=NOW)
    create_run_pool(memory.owner, "run-1", PoolDraft(pool_id="cache", pool_type="tool_cache"), now=NOW)

    colleague.tool_cache("cache").store("search:key", ["mat"], ttl_seconds=60)

    assert memory.tool_cache("cache").find("search:key").value == ["mat"]
    with pytest.raises(NotFound):
        memory.tool_cache("cache").find("search:key", now=LATER)


def test_facts_are_kept_in_the_agents_own_context(memory: AgentMemory, colleague: AgentMemory) -> None:
    fact = memory.factual.store(EntryDraft(key="mat", content="The key is under the mat."))

    assert fact.context_id == ensure_own_context(memory.owner, now=NOW).id
    assert [hit.key for hit in memory.factual.search("key").hits] == ["mat"]
    assert colleague.factual.search("key").hits == []


def test_another_account_finds_nothing_by_the_same_ids(memory: AgentMemory, stranger_memory: AgentMemory) -> None:
    memory.create_pool(PoolDraft(pool_id="plan"))
    memory.short_term("talk-1").store("colour", "green")

    for find in (
        stranger_memory.pool("plan").read,
        lambda: stranger_memory.short_term("talk-1").read("colour"),
        lambda: stranger_memory.router.read("colour", session_id="talk-1"),
    ):
        with pytest.raises(NotFound):
            find()


def test_writes_are_audited_under_its_name(account: Account) -> None:
    memory = AgentMemory.open(account.name, agent_id="assistant")

    memory.create_pool(PoolDraft(pool_id="plan"))
    memory.factual.store(EntryDraft(content="Red."))

    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {"python"}
