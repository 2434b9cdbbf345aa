"""The job deletes what has expired, batch by batch and table by table, except what waits for promotion."""

from datetime import datetime, timedelta

import pytest

from memory.maintenance import Batch
from memory.maintenance.retention_jobs import expire
from memory.models import (
    Account,
    AgentShortTermMemory,
    BlackboardPosting,
    MemoryPool,
    SharedContextPool,
    ToolCacheEntry,
    WorkflowRun,
)
from memory.owner import Owner
from memory.services.short_term import ShortTermDraft, store_entry
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

PAST, FUTURE = NOW - timedelta(hours=1), NOW + timedelta(hours=1)


def keep_entries(owner: Owner, *keys: str, access_count: int = 0) -> None:
    """Store entries that live for an hour, which is over now."""
    for key in keys:
        store_entry(owner, ShortTermDraft(memory_key=key, memory_value=1, ttl_seconds=3_600), now=PAST)
    AgentShortTermMemory.objects.filter(memory_key__in=keys).update(access_count=access_count)


def make_cache(account: Account, *, expires_at: datetime | None = None) -> MemoryPool:
    run = WorkflowRun.objects.create(account=account, workflow_run_id="r1", agent_id="assistant", started_at=PAST)
    named = {"pool_id": str(run.id), "pool_type": "tool_cache", "agent_id": "assistant"}
    return SharedContextPool.objects.create(account=account, workflow_run=run, expires_at=expires_at, **named)


def cache_results(pool: MemoryPool, *keys: str, expires_at: datetime) -> None:
    ToolCacheEntry.objects.bulk_create(
        ToolCacheEntry(account_id=pool.account_id, pool=pool, key=key, ttl_seconds=1, expires_at=expires_at)
        for key in keys
    )


def make_pools(account: Account, *names: str, expires_at: datetime | None) -> None:
    MemoryPool.objects.bulk_create(MemoryPool(account=account, pool_id=name, expires_at=expires_at) for name in names)


def run_to_the_end(batch: Batch) -> list[int]:
    """Return how many rows each batch changed."""
    changed, cursor = [], None
    while cursor != "":
        sized = Batch(size=batch.size, account_id=batch.account_id, dry_run=batch.dry_run, cursor=cursor or "")
        report = expire(now=NOW, batch=sized)
        changed.append(report.changed)
        cursor = report.cursor
    return changed


def test_expired_entries_read_less_than_three_times_are_deleted(owner: Owner) -> None:
    keep_entries(owner, "unread")
    keep_entries(owner, "twice", access_count=2)
    keep_entries(owner, "thrice", access_count=3)
    store_entry(owner, ShortTermDraft(memory_key="live", memory_value=1, ttl_seconds=3_601), now=PAST)

    run_to_the_end(Batch(size=10))

    assert set(AgentShortTermMemory.objects.values_list("memory_key", flat=True)) == {"thrice", "live"}


def test_a_superseded_value_awaiting_promotion_is_kept_until_promoted(owner: Owner) -> None:
    keep_entries(owner, "k", access_count=3)
    store_entry(owner, ShortTermDraft(memory_key="k", memory_value=2), now=NOW)

    run_to_the_end(Batch(size=10))
    before = AgentShortTermMemory.objects.count()
    AgentShortTermMemory.objects.filter(superseded=True).update(promoted_at=NOW)
    run_to_the_end(Batch(size=10))

    assert (before, AgentShortTermMemory.objects.get().memory_value) == (2, 2)


def test_an_expired_promoted_entry_is_deleted(owner: Owner) -> None:
    keep_entries(owner, "promoted", access_count=5)
    AgentShortTermMemory.objects.update(promoted_at=PAST)

    run_to_the_end(Batch(size=10))

    assert not AgentShortTermMemory.objects.exists()


def test_expired_tool_results_are_deleted_and_fresh_ones_kept(account: Account) -> None:
    cache = make_cache(account)
    cache_results(cache, "old", expires_at=NOW)
    cache_results(cache, "fresh", expires_at=FUTURE)

    run_to_the_end(Batch(size=10))

    assert list(ToolCacheEntry.objects.values_list("key", flat=True)) == ["fresh"]
    assert MemoryPool.objects.count() == 1


def test_an_expired_pool_is_deleted_with_its_contents(account: Account) -> None:
    pool = make_cache(account, expires_at=NOW)
    cache_results(pool, "fresh", expires_at=FUTURE)
    BlackboardPosting.objects.create(account=account, pool=pool, position=0, content="note")
    make_pools(account, "fresh", expires_at=FUTURE)
    make_pools(account, "lasting", expires_at=None)

    changed = run_to_the_end(Batch(size=10))

    assert changed == [0, 0, 1, 0]
    assert set(MemoryPool.objects.values_list("pool_id", flat=True)) == {"fresh", "lasting"}
    assert (ToolCacheEntry.objects.count(), BlackboardPosting.objects.count()) == (0, 0)
    assert WorkflowRun.objects.count() == 1


@pytest.mark.parametrize("dry_run", [False, True])
def test_expiry_processes_the_tables_in_batches(owner: Owner, account: Account, dry_run: bool) -> None:
    keep_entries(owner, "a", "b", "c")
    cache_results(make_cache(account), "a", "b", expires_at=PAST)
    make_pools(account, "a", "b", "c", expires_at=PAST)

    changed = run_to_the_end(Batch(size=2, dry_run=dry_run))

    assert changed == [2, 1, 2, 0, 2, 1, 0]
    assert AgentShortTermMemory.objects.count() == (3 if dry_run else 0)
    assert ToolCacheEntry.objects.count() == (2 if dry_run else 0)
    assert MemoryPool.objects.count() == (4 if dry_run else 1)


def test_repeating_a_batch_is_harmless(owner: Owner) -> None:
    keep_entries(owner, "a", "b", "c")
    batch = Batch(size=2)

    first, again = expire(now=NOW, batch=batch), expire(now=NOW, batch=batch)

    assert (first.changed, again.changed) == (2, 1)
    assert run_to_the_end(batch) == [0, 0, 0, 0]


def test_a_run_for_one_account_deletes_only_its_rows(owner: Owner, account: Account, stranger: Account) -> None:
    keep_entries(owner, "a")
    keep_entries(Owner(account_id=stranger.id, agent_id="assistant"), "b")
    for owning in (account, stranger):
        make_pools(owning, "pool", expires_at=PAST)

    run_to_the_end(Batch(size=10, account_id=account.id))

    assert list(AgentShortTermMemory.objects.values_list("account", flat=True)) == [stranger.id]
    assert list(MemoryPool.objects.values_list("account", flat=True)) == [stranger.id]
