"""Tests of the counts of tool caches, which change by differences without reading all values."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memory import conf
from memory.errors import TooLarge
from memory.maintenance import Batch
from memory.maintenance.retention_jobs import expire
from memory.models import MemoryPool, ToolCacheEntry
from memory.owner import Owner
from memory.services.pools.data import cache_result, delete_cached_result, find_cached_result
from memory.services.pools.manage import EMPTY_BYTES, PoolDraft, pool_statistics
from memory.services.pools.workflow_runs import RunDraft, create_run_pool, start_run
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(minutes=5)
LONG = 3_600


@pytest.fixture(autouse=True)
def cache(owner: Owner) -> None:
    start_run(owner, RunDraft(workflow_run_id="r1"), now=NOW)
    create_run_pool(owner, "r1", PoolDraft(pool_id="cache", pool_type="tool_cache"), now=NOW)


def store_result(owner: Owner, key: str, *, size: int = 10, ttl_seconds: int = 60) -> None:
    """Cache a result for a minute; with its key of one byte it has `size` bytes."""
    cache_result(owner, "cache", key, value="x" * (size - 3), ttl_seconds=ttl_seconds, now=NOW)


def counted() -> tuple[int, int]:
    pool = MemoryPool.objects.get()
    return pool.entry_count, pool.size_bytes - EMPTY_BYTES


def stored() -> tuple[int, int]:
    return ToolCacheEntry.objects.of_pool(MemoryPool.objects.get()).count_and_size()


def clean() -> None:
    expire(now=LATER, batch=Batch(size=10, cursor="tool_cache:"))


@pytest.mark.slow
def test_each_write_looks_at_its_own_key_alone(owner: Owner) -> None:
    for number in range(200):
        cache_result(owner, "cache", f"key-{number}", value="x" * 100, now=NOW)

    with CaptureQueriesContext(
        connection,
    ) as putting:
        cache_result(owner, "cache", "another", value=1, now=NOW)
    with CaptureQueriesContext(connection) as forgetting:
        delete_cached_result(owner, "cache", "another", now=NOW)

    for statements, count in ((putting, 2), (forgetting, 3)):
        of_entries = [statement["sql"] for statement in statements if "tool_cache_entries" in statement["sql"]]
        assert [("another" in sql) for sql in of_entries] == [True] * count
    assert len(putting) == 8
    assert counted() == stored() == (200, 200 * 102 + sum(len(f"key-{number}") for number in range(200)))


def test_the_counts_follow_insertions_replacements_and_deletions(owner: Owner) -> None:
    store_result(owner, "a", size=10)
    store_result(owner, "b", size=20)
    assert counted() == (2, 30)

    store_result(owner, "a", size=15)
    assert counted() == (2, 35)

    delete_cached_result(owner, "cache", "b", now=NOW)
    assert counted() == stored() == (1, 15)


def test_a_result_that_replaces_an_expired_one_is_counted_once(owner: Owner) -> None:
    store_result(owner, "a")

    cache_result(owner, "cache", "a", value=1, now=LATER)

    assert counted() == stored() == (1, 2)


def test_expired_results_make_room_when_it_is_needed(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "POOL_LIMIT_BYTES", EMPTY_BYTES + 30)
    store_result(owner, "a")
    store_result(owner, "b")
    store_result(owner, "c", ttl_seconds=LONG)

    cache_result(owner, "cache", "d", value="x" * 17, now=LATER)

    assert counted() == stored() == (2, 30)
    assert find_cached_result(owner, "cache", "c", now=LATER).key == "c"


def test_without_room_nothing_changes(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "POOL_LIMIT_BYTES", EMPTY_BYTES + 30)
    store_result(owner, "a")
    store_result(owner, "b", size=20, ttl_seconds=LONG)

    with pytest.raises(TooLarge) as refused:
        cache_result(owner, "cache", "c", value="x" * 8, now=LATER)

    assert refused.value.facts["size_bytes"] == EMPTY_BYTES + 31
    assert counted() == stored() == (2, 30)


def test_statistics_exclude_expired_results(owner: Owner) -> None:
    store_result(owner, "a", size=10)
    store_result(owner, "b", size=20, ttl_seconds=LONG)

    before, after = (pool_statistics(owner, "cache", now=now) for now in (NOW, LATER))

    assert (before.entry_count, before.size_bytes) == (2, EMPTY_BYTES + 30)
    assert (after.entry_count, after.size_bytes) == (1, EMPTY_BYTES + 20)


def test_results_that_the_cleanup_deletes_are_not_counted(owner: Owner) -> None:
    create_run_pool(owner, "r1", PoolDraft(pool_id="other", pool_type="tool_cache"), now=NOW)
    cache_result(owner, "other", "a", value="ü", ttl_seconds=60, now=NOW)
    store_result(owner, "a")
    store_result(owner, "b")
    store_result(owner, "c", size=20, ttl_seconds=LONG)

    clean()

    assert list(ToolCacheEntry.objects.values_list("key", flat=True)) == ["c"]
    pools = MemoryPool.objects.order_by("pool_id").values_list("pool_id", "entry_count", "size_bytes", "version")
    assert list(pools) == [("cache", 1, EMPTY_BYTES + 20, 4), ("other", 0, EMPTY_BYTES, 2)]


@pytest.mark.django_db(transaction=True)
def test_the_cleanup_keeps_results_renewed_while_it_waits(owner: Owner, start_concurrently: Start) -> None:
    store_result(owner, "a")
    store_result(owner, "b")

    with transaction.atomic():
        cache_result(owner, "cache", "a", value=1, ttl_seconds=LONG, now=LATER)
        cleaning = start_concurrently(clean)

    cleaning.result(PATIENCE_SECONDS)
    assert counted() == stored() == (1, 2)
