"""The in-process API over tiers, pools, contexts and learnings: each door leads to its service, as its owner."""

import doctest
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from memory import agent_contexts, agent_tiers
from memory.agent_memory import AgentMemory
from memory.errors import Conflict, Forbidden, NotFound, StaleVersion
from memory.models import Account, AuditEntry, ContextAccessLog, Level
from memory.owner import Owner
from memory.services.contexts.access_log import write_access_lines
from memory.services.contexts.entries import EntryDraft, EntryEdit
from memory.services.contexts.manage import ContextDraft
from memory.services.learnings.publish import LearningDraft
from memory.services.pools.manage import PoolDraft
from memory.services.pools.workflow_runs import RunDraft
from memory.tiers.base import NewValue
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import NOW
from tests.memory.learnings import team_of

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


@pytest.mark.parametrize("module", [agent_tiers, agent_contexts], ids=lambda module: module.__name__)
def test_the_examples_run(module: ModuleType, memory: AgentMemory, colleague: AgentMemory) -> None:
    team = team_of(memory.owner, colleague.owner)

    ran = doctest.testmod(module, extraglobs={"memory": memory, "colleague": colleague, "team": team})

    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_the_router_reads_writes_and_tells_where(memory: AgentMemory, colleague: AgentMemory) -> None:
    memory.router.write("colour", NewValue(value="green"), tier="long_term")

    assert memory.router.read("colour").tier == "long_term"
    assert memory.router.keys(tier="long_term") == ["colour"]
    assert [hit.key for hit in memory.router.semantic_search("green").hits] == ["colour"]
    assert memory.router.stats()["long_term"].entries == 1
    assert memory.router.delete("colour") == ("long_term",)
    with pytest.raises(NotFound):
        colleague.router.read("colour")


def test_what_is_read_often_is_consolidated(memory: AgentMemory) -> None:
    notes = memory.short_term("talk-1")
    notes.store("colour", "green")
    for _ in range(3):
        notes.read("colour")

    assert memory.router.consolidate(session_id="talk-1").keys == ["colour"]
    assert memory.router.read("colour", tier="long_term").value == "green"


def test_a_short_term_entry_lives_by_the_clock(memory: AgentMemory) -> None:
    notes = memory.short_term("talk-1")
    entry = notes.store("colour", "green", ttl_seconds=60)

    assert notes.refresh(entry.id, ttl_seconds=120).expires_at == NOW + timedelta(seconds=120)
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

    plan.grant("colleague")
    assert theirs.read("/a").data == 1
    with pytest.raises(Forbidden):
        theirs.write({})

    plan.grant("colleague", Level.WRITE)
    assert theirs.write(2, path="/a").data == {"a": 2}
    with pytest.raises(StaleVersion):
        plan.merge({"b": 1}, expected=frozenset({1}))

    plan.revoke("colleague")
    with pytest.raises(NotFound):
        theirs.find()


def test_a_pool_tells_of_itself_and_is_deleted(memory: AgentMemory) -> None:
    memory.create_pool(PoolDraft(pool_id="plan", data={"a": 1}))
    memory.pool("plan").read()

    assert (memory.pool("plan").statistics().read_count, memory.pool("plan").find().pool_id) == (1, "plan")
    memory.pool("plan").delete()
    with pytest.raises(NotFound):
        memory.pool("plan").find()


def test_a_run_shares_its_pools_with_its_agents(memory: AgentMemory, colleague: AgentMemory) -> None:
    memory.start_run(RunDraft(workflow_run_id="run-1"))
    run = memory.workflow_run("run-1")
    for pool_type in ("blackboard", "tool_cache"):
        run.create_pool(PoolDraft(pool_id=pool_type, pool_type=pool_type))
    with pytest.raises(NotFound):
        colleague.workflow_run("run-1").find()

    run.change({"agents": ["colleague"]})

    colleague.blackboard("blackboard").post("found it")
    assert [posting.content for posting in memory.blackboard("blackboard").postings()] == ["found it"]
    colleague.tool_cache("tool_cache").store("search:key", ["mat"], ttl_seconds=60)
    cache = memory.tool_cache("tool_cache")
    assert (cache.find("search:key").value, cache.keys(), cache.keys(now=LATER)) == (["mat"], ["search:key"], [])
    assert (cache.forget("search:key"), cache.forget("search:key")) == (True, False)
    assert [pool.pool_id for pool in colleague.workflow_run("run-1").pools()] == ["blackboard", "tool_cache"]


def test_the_agents_own_context_is_one(memory: AgentMemory) -> None:
    assert memory.own_context().find() == memory.own_context().find()
    assert memory.own_context().find().name == "agent_memory"


def test_a_context_is_shared_changed_and_archived(memory: AgentMemory, colleague: AgentMemory) -> None:
    context = memory.create_context(ContextDraft(name="garden"))
    ours, theirs = memory.context_of(context.id), colleague.context_of(context.id)
    for act in (theirs.find, theirs.entries, theirs.snapshots, lambda: theirs.search("roses")):
        with pytest.raises(NotFound):
            act()

    ours.grant("colleague")
    assert theirs.find() == context
    with pytest.raises(Forbidden):
        theirs.store([EntryDraft(content="Tulips.")])

    assert ours.change({"name": "flowers"}, expected=frozenset({2})).name == "flowers"
    assert ours.archive().archived
    with pytest.raises(Conflict):
        ours.store([EntryDraft(content="Tulips.")])
    assert not ours.unarchive().archived
    ours.revoke("colleague")
    with pytest.raises(NotFound):
        theirs.find()


def test_an_entry_is_weighed_edited_brought_back_and_removed(memory: AgentMemory) -> None:
    [stored] = memory.own_context().store([EntryDraft(content="Red.", importance=0.95)])
    entry = memory.entry(stored.id)

    assert (entry.boost().importance, entry.reduce(by=0.5).importance) == (1.0, 0.5)
    with pytest.raises(StaleVersion):
        entry.update_content(EntryEdit(content="Blue."), expected=frozenset({1}))
    entry.update_content(EntryEdit(content="Blue."))
    assert entry.restore_version(1).text == "Red."
    assert [(version.content, version.editor) for version in entry.versions()][2] == ("Red.", "assistant")
    entry.remove()
    with pytest.raises(NotFound):
        entry.find()


def test_a_snapshot_is_previewed_and_restored(memory: AgentMemory) -> None:
    context = memory.own_context()
    context.store([EntryDraft(content="Red."), EntryDraft(content="Blue.")])
    kept = context.snapshot("two")
    [added] = context.store([EntryDraft(content="Green.")])

    preview = context.preview(kept.id)
    context.restore(kept.id)

    assert [step.entry_id for step in preview.removed] == [added.id]
    assert {entry.text for entry in context.entries()} == {"Red.", "Blue."}
    assert [snapshot.name for snapshot in context.snapshots()] == ["two"]


def test_reads_of_entries_are_in_the_access_log(memory: AgentMemory) -> None:
    [stored] = memory.own_context().store([EntryDraft(content="Red.")])
    reads: tuple[Callable[[], Any], ...] = (
        memory.entry(stored.id).find,
        memory.entry(stored.id).versions,
        memory.own_context().entries,
        lambda: memory.own_context().search("red"),
    )

    for read in reads:
        read()
    write_access_lines(100, after="", account_id=None, now=NOW)

    lines = ContextAccessLog.objects.filter(entry_id=stored.id, agent_id="assistant").values_list("action", flat=True)
    assert sorted(lines) == ["create", "read", "read", "read", "search"]


def test_facts_are_kept_in_the_agents_own_context(memory: AgentMemory, colleague: AgentMemory) -> None:
    memory.factual.store(EntryDraft(key="mat", content="The key is under the mat."))

    assert [fact.context_id for fact in memory.factual.all()] == [memory.own_context().find().id]
    assert [hit.key for hit in memory.factual.search("key").hits] == ["mat"]
    assert (colleague.factual.all(), colleague.factual.search("key").hits) == ([], [])


def test_learnings_are_a_teams(
    memory: AgentMemory, colleague: AgentMemory, stranger_memory: AgentMemory, embedding_server: EmbeddingServer
) -> None:
    team = team_of(memory.owner, colleague.owner)
    learning = memory.learnings.publish(LearningDraft(team_id=team.id, insight="Look under the mat."))

    assert colleague.learnings.vote(learning.id, helpful=True).helpful_count == 1
    assert [hit.id for hit in colleague.learnings.search("mat", team_id=team.id).hits] == [learning.id]
    assert [found.id for found in colleague.learnings.all()] == [learning.id]
    assert stranger_memory.learnings.all() == []
    with pytest.raises(Forbidden):
        colleague.learnings.remove(learning.id)
    memory.learnings.remove(learning.id)
    with pytest.raises(NotFound):
        colleague.learnings.find(learning.id)


def test_another_account_finds_nothing_by_the_same_ids(memory: AgentMemory, stranger_memory: AgentMemory) -> None:
    memory.create_pool(PoolDraft(pool_id="plan"))
    memory.start_run(RunDraft(workflow_run_id="run-1"))
    [entry] = memory.own_context().store([EntryDraft(content="Red.")])
    context_id = memory.own_context().find().id

    for find in (
        stranger_memory.pool("plan").read,
        stranger_memory.workflow_run("run-1").find,
        stranger_memory.entry(entry.id).find,
        stranger_memory.context_of(context_id).find,
    ):
        with pytest.raises(NotFound):
            find()


def test_writes_are_audited_under_its_name(account: Account) -> None:
    memory = AgentMemory.open(account.name, agent_id="assistant")

    memory.create_pool(PoolDraft(pool_id="plan"))
    memory.factual.store(EntryDraft(content="Red."))

    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {"python"}
