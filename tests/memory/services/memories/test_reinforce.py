"""Reinforcement: reads of recalled memories are counted exactly, also by simultaneous recalls."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Memory
from memory.owner import Owner
from memory.services.memories.decay import reinforce
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.episodes import NOW
from tests.memory.heap import hot_updates
from tests.memory.heap import room_beside_rows as room_beside_rows
from tests.memory.turns import say, talk, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

LATER = NOW + timedelta(hours=1)
LARGEST = 2_147_483_647


def ids_of(owner: Owner, count: int = 3) -> list[UUID]:
    return [each.id for each in talk(owner, count).turns]


def counts(**filters: Any) -> list[int]:
    rows = Memory.objects.filter(**filters).order_by("id")
    return [row.access_count for row in rows]


def test_each_memory_is_counted_once_with_its_time_in_one_statement(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first, second, third = ids_of(owner)

    with django_assert_num_queries(1):
        assert reinforce(owner, [second, first, second], now=LATER) == 2

    rows = {row.id: (row.access_count, row.last_accessed) for row in Memory.objects.all()}
    assert rows == {first: (1, LATER), second: (1, LATER), third: (0, None)}


def test_no_ids_are_no_statement(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        assert reinforce(owner, [], now=NOW) == 0


def test_deleted_memories_are_ignored(owner: Owner) -> None:
    first, second, third = ids_of(owner)
    Memory.objects.filter(id=second).delete()

    assert reinforce(owner, [first, second, third], now=NOW) == 2


def test_memories_of_another_account_are_not_counted(owner: Owner, stranger: Account) -> None:
    theirs = ids_of(Owner(account_id=stranger.id, agent_id="assistant"))

    assert reinforce(owner, theirs, now=NOW) == 0
    assert counts(account_id=stranger.id) == [0, 0, 0]


def test_counting_stops_at_the_maximum_of_the_column(owner: Owner) -> None:
    ids = ids_of(owner, 2)
    Memory.objects.filter(id=ids[0]).update(access_count=LARGEST)
    Memory.objects.filter(id=ids[1]).update(access_count=LARGEST - 1)

    assert reinforce(owner, ids, now=NOW) == 2
    assert counts() == [LARGEST, LARGEST]


def test_an_older_read_does_not_move_last_accessed_back(owner: Owner) -> None:
    [memory_id] = ids_of(owner, 1)
    reinforce(owner, [memory_id], now=LATER)

    reinforce(owner, [memory_id], now=NOW)

    row = Memory.objects.get(id=memory_id)
    assert (row.access_count, row.last_accessed) == (2, LATER)


@pytest.mark.usefixtures("room_beside_rows")
def test_counting_rewrites_rows_and_none_of_their_indexes(owner: Owner) -> None:
    ids = ids_of(owner)
    before = hot_updates()

    reinforce(owner, ids, now=NOW)

    assert hot_updates() - before == len(ids)


def test_counting_changes_neither_version_nor_words(owner: Owner) -> None:
    [memory_id] = ids_of(owner, 1)
    before = Memory.objects.values("version", "updated_at", "text", "embed_after").get()

    reinforce(owner, [memory_id], now=LATER)

    assert Memory.objects.values("version", "updated_at", "text", "embed_after").get() == before


@pytest.mark.django_db(transaction=True)
def test_twenty_simultaneous_recalls_of_the_same_rows_count_exactly(owner: Owner) -> None:
    say(owner, *(turn(f"said {number}") for number in range(12)))
    ids = [each.id for each in Memory.objects.order_by("id")]
    together = Barrier(20)

    def read(client: int) -> None:
        together.wait(PATIENCE_SECONDS)
        try:
            for _number in range(5):
                # half of them in the opposite order
                reinforce(owner, ids if client % 2 else ids[::-1], now=NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as clients:
        list(clients.map(read, range(20)))

    assert counts() == [100] * 12


@pytest.fixture
def waits_for_the_disk() -> Iterator[None]:
    """Restore the default of servers, which the configuration of the test server overrides."""
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = on")
        yield
        cursor.execute("RESET synchronous_commit")


@pytest.mark.django_db(transaction=True)
def test_writes_after_counting_wait_for_the_disk(owner: Owner, waits_for_the_disk: None) -> None:
    ids = ids_of(owner)

    assert reinforce(owner, ids, now=NOW) == 3

    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
    assert counts() == [1, 1, 1]
