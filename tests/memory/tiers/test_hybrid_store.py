"""Tests of the hybrid store: it answers with the log's content when its buffer is lost, late, old or unreachable."""

import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.models import Account, Conversation, Turn
from memory.owner import Owner
from memory.services.conversations.end import end_conversation
from memory.services.conversations.lifecycle import find_conversation
from memory.services.turns import get_conversation
from memory.tiers.session_buffer import RedisBuffer, buffer_entry, fitting_entries
from memory.tiers.session_stores import HybridStore, rows_for_buffer, session_ref, session_turn
from memory_project.redis import client, session_key
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.episodes import NOW
from tests.memory.tiers.test_session_stores import Log, held, log_of, numbers
from tests.memory.turns import say, talk, turn
from tests.round_trips import counted_commands

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def store() -> HybridStore:
    return HybridStore()


@pytest.fixture
def log(owner: Owner) -> Log:
    """Twelve committed turns that are in the buffer."""
    return log_of(talk(owner, 12))


def buffer_of(log: Log) -> RedisBuffer:
    return RedisBuffer(session_ref(log.conversation))


def test_turns_in_the_buffer_are_not_read_from_the_log(
    store: HybridStore, log: Log, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        assert store.recent(log.conversation, 5) == log.turns[7:]
        assert store.recent(log.conversation, 100) == log.turns


def test_a_lost_buffer_is_read_from_the_log_once(
    store: HybridStore, log: Log, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client().flushdb()

    # the turns asked for, those that fill the buffer, and whether they were corrected meanwhile
    with django_assert_num_queries(3):
        assert store.recent(log.conversation, 5) == log.turns[7:]
    with django_assert_num_queries(0):
        assert store.recent(log.conversation, 100) == log.turns


def test_the_next_turn_after_a_loss_brings_back_those_before(store: HybridStore, owner: Owner, log: Log) -> None:
    client().flushdb()

    talk(owner, 1, start=12)

    assert held(store, log.conversation) == list(range(13))


def test_a_batch_that_fills_the_buffer_needs_nothing_from_the_log(
    store: HybridStore,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    monkeypatch.setattr(conf, "BUFFER_MESSAGES", 5)
    client().flushdb()

    with django_assert_num_queries(0):
        store.append(log.conversation, log.turns)

    assert held(store, log.conversation) == [7, 8, 9, 10, 11]


def key_of(log: Log) -> str:
    return session_key(session_ref(log.conversation), "turns")


def replace_buffer_with(log: Log, old: list[bytes | str]) -> None:
    """Put an old buffer back, as if a copy of Redis had been started."""
    client().delete(key_of(log))
    client().rpush(key_of(log), *old)


def test_turns_that_the_buffer_missed_are_read_from_the_log(store: HybridStore, owner: Owner, log: Log) -> None:
    old = client().lrange(key_of(log), 0, -1)
    more = log_of(talk(owner, 3, start=12))
    # or as if the process had been killed after the commit
    replace_buffer_with(log, old)

    assert store.recent(more.conversation, 100) == log.turns + more.turns
    assert held(store, log.conversation) == list(range(15))


def test_turns_after_missed_ones_bring_them_back(store: HybridStore, owner: Owner, log: Log) -> None:
    old = client().lrange(key_of(log), 0, -1)
    talk(owner, 3, start=12)
    replace_buffer_with(log, old)

    talk(owner, 1, start=15)

    assert held(store, log.conversation) == list(range(16))


def test_a_buffer_ahead_of_the_row_is_checked_with_the_log(store: HybridStore, owner: Owner, log: Log) -> None:
    more = log_of(talk(owner, 2, start=12))

    assert store.recent(log.conversation, 4) == log.turns[10:] + more.turns


def test_a_deleted_conversation_leaves_nothing_to_the_next_of_its_id(
    store: HybridStore, owner: Owner, log: Log
) -> None:
    Turn.objects.filter(log=log.conversation).delete()
    Conversation.objects.filter(id=log.conversation.id).delete()
    say(owner)
    assert store.recent(find_conversation(owner, "c1"), 10) == []

    recreated = log_of(talk(owner, 2))

    assert store.recent(recreated.conversation, 10) == recreated.turns
    assert held(store, recreated.conversation) == [0, 1]


def test_turns_that_are_too_large_for_the_buffer_come_from_the_log(
    store: HybridStore, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "BUFFER_BYTES", 5_000)
    log = log_of(say(owner, *(turn(f"{number}" * 2_000) for number in range(5))))

    assert store.recent(log.conversation, 4) == log.turns[1:]

    assert held(store, log.conversation) == [3, 4]


def test_a_buffer_cut_by_its_bytes_is_not_written_again(
    store: HybridStore, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "BUFFER_BYTES", 5_000)
    log = log_of(say(owner, *(turn(f"{number}" * 2_000) for number in range(5))))
    store.recent(log.conversation, 4)

    with counted_commands() as commands:
        store.recent(log.conversation, 4)

    assert len(commands) == 1


@pytest.fixture
def large_turns(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> Log:
    """Twenty large turns: a buffer holds two of them, or one with a payload."""
    monkeypatch.setattr(conf, "BUFFER_BYTES", 5_000)
    return log_of(say(owner, *(turn(f"{number % 10}" * 2_000) for number in range(20))))


def test_of_large_turns_no_more_are_read_than_asked_for(
    store: HybridStore, large_turns: Log, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1) as asked:
        assert store.recent(large_turns.conversation, 4) == large_turns.turns[16:]

    assert "LIMIT 4" in asked.captured_queries[0]["sql"]


def test_a_refill_reads_the_rows_that_fill_a_buffer(owner: Owner, large_turns: Log) -> None:
    with_parts = say(owner, turn([{"type": "text", "text": "ü" * 1_000}]), turn([{"type": "text", "text": "ü" * 600}]))

    rows = rows_for_buffer(with_parts.conversation)

    # the other's text and parts take 4,000 bytes in a buffer, estimated as 3,000 beforehand
    assert [row.index for row in rows] == [20, 21]
    assert [row.index for row in rows_for_buffer(large_turns.conversation)][-1] == 21


def test_a_refill_reads_the_latest_row_whatever_its_size(owner: Owner, large_turns: Log) -> None:
    huge = say(owner, turn("x" * 6_000))

    assert [row.index for row in rows_for_buffer(huge.conversation)] == [20]


def test_a_lost_buffer_of_large_turns_is_rebuilt_once(store: HybridStore, large_turns: Log) -> None:
    client().flushdb()

    assert store.recent(large_turns.conversation, 1) == large_turns.turns[19:]
    with counted_commands() as commands:
        assert store.recent(large_turns.conversation, 20) == large_turns.turns

    assert held(store, large_turns.conversation) == [18, 19]
    assert len(commands) == 1


@pytest.mark.parametrize(
    "content", ["ü \u2028\\n", [{"type": "text", "text": "ü" * 90}, {"n": [1, 2, 3], "type": "x"}]]
)
def test_a_row_is_never_estimated_larger_than_in_the_buffer(
    store: HybridStore, owner: Owner, content: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "BUFFER_BYTES", 3_000)
    log = log_of(say(owner, *(turn(content) for _ in range(40))))
    client().flushdb()

    rows = rows_for_buffer(log.conversation)

    assert len(rows) >= len(fitting_entries(log.turns))


def test_a_read_after_the_end_creates_no_buffer(store: HybridStore, owner: Owner, log: Log) -> None:
    ended = end_conversation(owner, "c1", outcome="", now=NOW)

    assert store.recent(ended, 5) == log.turns[7:]

    assert client().exists(key_of(log)) == 0


def test_a_reader_with_an_old_row_leaves_no_buffer_after_the_end(store: HybridStore, owner: Owner, log: Log) -> None:
    end_conversation(owner, "c1", outcome="", now=NOW)

    assert store.recent(log.conversation, 5) == log.turns[7:]

    assert client().exists(key_of(log)) == 0


def test_a_reopened_conversation_has_its_buffer_again(store: HybridStore, owner: Owner, log: Log) -> None:
    end_conversation(owner, "c1", outcome="", now=NOW)

    more = log_of(talk(owner, 1, start=12))

    assert held(store, more.conversation) == list(range(13))


def test_no_more_comes_from_the_log_than_a_buffer_holds(
    store: HybridStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "BUFFER_MESSAGES", 5)
    log.conversation.buffer_from = 3
    client().flushdb()

    assert numbers(store.recent(log.conversation, 100)) == [7, 8, 9, 10, 11]
    log.conversation.buffer_from = 9
    client().flushdb()

    assert numbers(store.recent(log.conversation, 100)) == [9, 10, 11]


def test_the_log_is_filtered_by_account(store: HybridStore, stranger: Account, log: Log) -> None:
    client().flushdb()
    log.conversation.account_id = stranger.id

    assert store.recent(log.conversation, 100) == []


def test_without_redis_reads_come_from_the_log_and_say_so_once(
    store: HybridStore, log: Log, dead_redis: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="memory"):
        assert store.recent(log.conversation, 5) == log.turns[7:]

    [record] = (each for each in caplog.records if each.name.startswith("memory."))
    assert record.getMessage() == f"session of conversation {log.conversation.id} read from the log: ConnectionError"


def test_without_redis_turns_are_stored_and_trimming_is_no_error(
    store: HybridStore, owner: Owner, log: Log, dead_redis: None
) -> None:
    more = log_of(talk(owner, 2, start=12))
    more.conversation.buffer_from = 10

    store.trim(more.conversation)

    assert numbers(store.recent(more.conversation, 100)) == [10, 11, 12, 13]


def test_turns_of_a_transaction_reach_no_buffer_before_its_end(store: HybridStore, owner: Owner, log: Log) -> None:
    with transaction.atomic():
        more = log_of(talk(owner, 2, start=12))
        assert numbers(store.recent(more.conversation, 2)) == [12, 13]
        transaction.set_rollback(True)

    assert held(store, log.conversation) == list(range(12))
    assert store.recent(find_conversation(owner, "c1"), 100) == log.turns


def test_a_late_refill_never_replaces_newer_turns(store: HybridStore, log: Log) -> None:
    store.clear(log.conversation)
    buffer_of(log).append(log.turns[6:], first=0)

    buffer_of(log).replace([buffer_entry(each) for each in log.turns[:8]], first=0)
    assert held(store, log.conversation) == list(range(12))

    buffer_of(log).replace([buffer_entry(each) for each in log.turns[:2]], first=0)
    assert store.recent(log.conversation, 100) == log.turns


def test_a_refill_does_not_restore_corrected_text(store: HybridStore, log: Log) -> None:
    store.clear(log.conversation)
    with transaction.atomic():
        # read now, and put into the buffer at the end
        assert store.recent(log.conversation, 1)[0].text == "message 11"
        Turn.objects.filter(log=log.conversation, index=11).update(text="corrected", version=2)

    assert held(store, log.conversation) == []
    assert store.recent(log.conversation, 1)[0].text == "corrected"


def test_turns_deleted_from_the_log_cause_no_error(store: HybridStore, log: Log) -> None:
    Turn.objects.get(log=log.conversation, index=9).delete()
    client().flushdb()

    assert numbers(store.recent(log.conversation, 4)) == [8, 10, 11]
    assert numbers(store.recent(log.conversation, 4)) == [8, 10, 11]


def test_a_refill_is_two_round_trips(store: HybridStore, log: Log) -> None:
    store.clear(log.conversation)
    store.recent(log.conversation, 5)
    store.clear(log.conversation)

    with counted_commands() as commands:
        store.recent(log.conversation, 5)

    assert [command.split()[0] for command in commands] == ["EVALSHA"] * 2


def test_ten_threads_lose_and_reorder_no_turns(store: HybridStore, owner: Owner) -> None:
    started = Barrier(10)

    def append(thread: int) -> None:
        started.wait(PATIENCE_SECONDS)
        try:
            for number in range(3):
                say(owner, turn(f"{thread}.{number}a"), turn(f"{thread}.{number}b"))
        finally:
            connection.close()

    connection.close()  # the pool has ten
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(append, range(10)))

    logged = get_conversation(owner, "c1")
    assert [each.index for each in logged] == list(range(60))
    assert [each.text[:-1] for each in logged[::2]] == [each.text[:-1] for each in logged[1::2]]
    assert held(store, find_conversation(owner, "c1")) == list(range(60))
    assert store.recent(find_conversation(owner, "c1"), 100) == [session_turn(each) for each in logged]


def test_readers_see_consecutive_turns_while_others_write_and_redis_forgets(store: HybridStore, owner: Owner) -> None:
    talk(owner, 5)

    def write(start: int) -> None:
        try:
            say(owner, turn(f"first of {start}"), turn(f"second of {start}"))
        finally:
            connection.close()

    def read(number: int) -> list[int]:
        try:
            if number % 5 == 0:
                client().flushdb()
            return numbers(store.recent(find_conversation(owner, "c1"), 20))
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        writes = [pool.submit(write, number) for number in range(20)]
        reads = [found.result() for found in [pool.submit(read, number) for number in range(40)]]
        assert [each.result() for each in writes] == [None] * 20

    assert all(found == list(range(found[0], found[0] + len(found))) for found in reads)
    assert numbers(store.recent(find_conversation(owner, "c1"), 100)) == list(range(45))
