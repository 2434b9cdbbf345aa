"""The tiers document's models, with the methods that it gives them, called as it writes them."""

import pytest

from memory.documented.services import EmbeddingService, RouterService, StorageService
from memory.documented.tiers import AgentShortTermMemory, ContextEntry, MemoryPool, PersistentContext
from memory.errors import Forbidden, NotFound
from memory.models import AuditEntry
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft, store_entries
from memory.services.contexts.manage import ContextDraft, create_context
from memory.services.embedding.embed import embed_texts
from memory.services.pools.manage import PoolDraft
from memory.tiers.base import time_of_call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def pool(owner: Owner) -> MemoryPool:
    draft = PoolDraft(pool_id="plan", pool_type="agent_private", data={"first": "look"})
    StorageService(owner=owner).create_pool(draft)
    return MemoryPool.find_by(pool_id="plan", agent="assistant")


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    made = create_context(owner, ContextDraft(name="house", context_type="knowledge_base"))
    return PersistentContext.find_by(context_id=made.id, agent="assistant")


@pytest.fixture
def entry(owner: Owner, context: PersistentContext) -> ContextEntry:
    draft = EntryDraft(key="mat", content="The key is under the mat.", importance=0.5)
    stored = store_entries(
        owner, context.id, drafts=[draft], embedded=embed_texts([draft.content]), now=time_of_call(None)
    )
    return ContextEntry.find_by(entry_id=stored[0].id, agent="assistant")


def test_the_data_of_a_pool_is_read_written_and_merged(pool: MemoryPool) -> None:
    assert pool.read_data() == {"first": "look"}
    assert pool.merge_data({"second": "dig"}) == {"first": "look", "second": "dig"}
    assert pool.write_data({"third": "rest"}) == {"third": "rest"}
    assert pool.read_data("/third") == "rest"
    assert (pool.version, pool.statistics().entry_count) == (3, 1)


def test_access_to_a_pool_is_granted_and_revoked(pool: MemoryPool) -> None:
    assert not pool.accessible_by("colleague")
    pool.grant_access("colleague", "write")
    assert pool.accessible_by("colleague", "write")
    pool.revoke_access("colleague")

    assert not pool.accessible_by("colleague")
    with pytest.raises(NotFound):
        MemoryPool.find_by(pool_id="plan", agent="colleague")
    assert AuditEntry.objects.filter(operation__in=["grant", "revoke"]).count() == 2


def test_a_context_is_restored_from_a_snapshot(context: PersistentContext, entry: ContextEntry) -> None:
    snapshot = context.create_snapshot("before")
    entry.update_content("The key is under the pot.", "ana")
    restored = context.restore_from_snapshot(snapshot)

    assert restored.changed == 1
    assert ContextEntry.find_by(entry_id=entry.id).text == "The key is under the mat."


def test_a_context_is_archived_and_granted(context: PersistentContext) -> None:
    assert context.archive().archived
    assert not context.unarchive().archived
    context.grant_access("colleague", "read")

    colleagues = PersistentContext.find_by(context_id=context.id, agent="colleague")
    with pytest.raises(Forbidden):
        colleagues.archive()


def test_an_entry_is_found_by_an_embedding_and_weighed(entry: ContextEntry) -> None:
    [hit] = ContextEntry.semantic_search(EmbeddingService().embed("The key is under the mat."), 1).hits
    before = entry.effective_relevance_score()

    assert hit.key == "mat"
    assert entry.boost_importance().importance == pytest.approx(0.6)
    assert entry.effective_relevance_score() > before
    assert entry.reduce_importance(0.2).importance == pytest.approx(0.4)


def test_an_entry_that_expires_is_touched_and_refreshed(memory: object) -> None:
    RouterService(agent="assistant").write("colour", "green", tier="short_term")
    found = AgentShortTermMemory.find_by(memory_key="colour", agent="assistant")
    expires_at = found.expires_at

    assert (found.access_count, found.touch_access().access_count) == (0, 1)
    assert found.refresh_ttl(100_000).expires_at > expires_at
    assert AgentShortTermMemory.cleanup_expired().status == "completed"


def test_the_documented_constants_are_there() -> None:
    assert set(MemoryPool.POOL_TYPES) >= {"shared", "agent_private", "team_shared", "task_scoped"}
    assert set(MemoryPool.SCOPES) == {"global", "account", "team", "agent", "task"}
    assert "tool_cache" in PersistentContext.CONTEXT_TYPES
    assert set(PersistentContext.SCOPES) == {"agent", "account", "team", "global"}
    assert set(ContextEntry.MEMORY_TYPES) == {"factual", "experiential", "working"}
