"""Simultaneous creations, grants and writes of pools."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from memory.errors import Conflict, MemoryServiceError, StaleVersion
from memory.models import AuditEntry, Level, MemoryPool
from memory.owner import Owner
from memory.services.pools.data import read_data, write_data
from memory.services.pools.manage import (
    PoolDraft,
    create_pool,
    ensure_own_pool,
    find_pool,
    grant_access,
)
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.pools import NOW, make_pool
from tests.memory.services.pools.moments import ANY, LATER

pytestmark = pytest.mark.django_db


def run_concurrently(count: int, act: Callable[[int], object]) -> list[object]:
    """Call the function in so many threads that start together; return their results and errors."""
    together = Barrier(count)

    def one(number: int) -> object:
        together.wait(PATIENCE_SECONDS)
        try:
            return act(number)
        except MemoryServiceError as err:
            return type(err)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(one, range(count)))


@pytest.mark.django_db(transaction=True)
def test_one_of_many_concurrent_creations_of_a_pool_succeeds(owner: Owner) -> None:
    got = run_concurrently(8, lambda number: make_pool(owner, data={"by": number}).id)

    assert sum(answer is Conflict for answer in got) == 7
    assert MemoryPool.objects.get().id in got


@pytest.mark.django_db(transaction=True)
def test_concurrent_creations_replace_an_expired_pool_once(owner: Owner) -> None:
    make_pool(owner, expires_at=LATER)

    got = run_concurrently(8, lambda _number: create_pool(owner, PoolDraft(pool_id="board"), now=LATER).id)

    assert sum(answer is Conflict for answer in got) == 7
    assert MemoryPool.objects.get().id in got


@pytest.mark.django_db(transaction=True)
def test_concurrent_calls_create_one_own_pool(owner: Owner) -> None:
    got = run_concurrently(8, lambda _number: ensure_own_pool(owner, now=NOW).id)

    assert set(got) == {MemoryPool.objects.get().id}
    assert AuditEntry.objects.filter(operation="create", memory_type="pool").count() == 1


@pytest.mark.django_db(transaction=True)
def test_concurrent_grants_are_all_kept(owner: Owner) -> None:
    make_pool(owner)

    run_concurrently(
        8, lambda number: grant_access(owner, "board", agent_id=f"agent-{number}", level=Level.READ, **ANY)
    )

    pool = find_pool(owner, "board", now=NOW)
    assert (pool.version, pool.grants.read) == (9, [f"agent-{number}" for number in range(8)])


@pytest.mark.django_db(transaction=True)
def test_one_of_many_concurrent_writers_with_the_same_version_wins(owner: Owner) -> None:
    make_pool(owner)
    seen = frozenset({1})

    got = run_concurrently(
        8, lambda number: write_data(owner, "board", data={"by": number}, expected=seen, now=NOW).data["by"]
    )

    assert sum(answer is StaleVersion for answer in got) == 7
    stored = read_data(owner, "board", now=NOW)
    assert (stored.version, stored.data["by"] in got) == (2, True)
