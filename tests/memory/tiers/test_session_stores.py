"""Tests that all stores of a session's buffer keep order, no turn twice, limits, and isolation."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from memory import conf
from memory.models import Conversation
from memory.owner import Owner
from memory.services.turns import StoredTurns
from memory.tiers import session_stores
from memory.tiers.session_buffer import buffer_entry
from memory.tiers.session_stores import (
    HybridStore,
    MemoryStore,
    RedisStore,
    SessionStore,
    SessionTurn,
    session_ref,
    session_store,
    session_turn,
)
from memory_project.ids import uuid7
from memory_project.redis import client, session_key
from tests.memory.turns import say, talk, turn
from tests.properties import examples
from tests.round_trips import counted_commands

pytestmark = pytest.mark.django_db

MAKES: dict[str, Callable[[], SessionStore]] = {"memory": MemoryStore, "redis": RedisStore, "hybrid": HybridStore}
TTL = conf.SESSION_TTL_HOURS * 3_600
HOSTILE_IDS = ("a:b", "{a}", "%7Ba%7D", "a", "a%3Ab", "}{", "*", "a:turns", "ü 7/8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A conversation with its turns, none of which is in a store yet."""

    conversation: Conversation
    turns: list[SessionTurn]


def log_of(stored: StoredTurns) -> Log:
    return Log(conversation=stored.conversation, turns=[session_turn(each) for each in stored.turns])


@pytest.fixture(params=MAKES)
def store(request: pytest.FixtureRequest) -> SessionStore:
    return MAKES[request.param]()


@pytest.fixture
def log(owner: Owner) -> Log:
    return log_of(talk(owner, 12))


def held(store: SessionStore, conversation: Conversation) -> list[int]:
    """Return the numbers of the turns in the buffer itself, whatever the log has."""
    whole = Conversation(
        id=conversation.id,
        account_id=conversation.account_id,
        conversation_id=conversation.conversation_id,
        user_id=conversation.user_id,
        channel=conversation.channel,
    )
    if isinstance(store, HybridStore):
        store = RedisStore()
    return numbers(store.recent(whole, 1_000))


def numbers(turns: list[SessionTurn]) -> list[int]:
    return [each.index for each in turns]


def test_the_latest_turns_come_oldest_first(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, log.turns[:5])
    store.append(log.conversation, log.turns[5:])

    assert store.recent(log.conversation, 4) == log.turns[8:]
    assert store.recent(log.conversation, 100) == log.turns


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_zero_returns_no_turns(store: SessionStore, log: Log, limit: int) -> None:
    store.append(log.conversation, log.turns)

    assert store.recent(log.conversation, limit) == []


def test_a_conversation_without_turns_is_empty(store: SessionStore, owner: Owner) -> None:
    conversation = Conversation(account_id=owner.account_id, conversation_id="silent")
    store.append(conversation, [])

    assert store.recent(conversation, 10) == []


def test_a_turn_comes_back_as_it_was_sent(store: SessionStore, owner: Owner) -> None:
    parts = [{"type": "text", "text": "what is\nthis? \u2028 %s {0}"}, {"type": "image_url", "n": [1.0, -0.0, 2**70]}]
    log = log_of(say(owner, turn(parts), turn("plain"), turn("  12 0 : {x}\t")))

    store.append(log.conversation, log.turns)

    assert repr(store.recent(log.conversation, 10)) == repr(log.turns)
    assert log.turns[0].content == parts


def test_a_content_that_text_and_payload_lack_is_kept(store: SessionStore) -> None:
    session_turn = SessionTurn(
        id=uuid7(),
        index=0,
        role="assistant",
        name="",
        agent_id="assistant",
        content=None,
        text="look_up({})",
        payload={"tool_calls": []},
        timestamp=datetime(2026, 3, 1, 1, 2, 3, 4, tzinfo=UTC),
    )
    conversation = Conversation(account_id=uuid7(), conversation_id="c1", turn_count=1)

    store.append(conversation, [session_turn])

    assert store.recent(conversation, 1) == [session_turn]


def test_turns_appended_again_change_nothing(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, log.turns)

    for again in (log.turns, log.turns[3:7], log.turns[11:], log.turns[:1]):
        store.append(log.conversation, again)

    assert held(store, log.conversation) == list(range(12))


def test_a_late_append_does_not_undo_a_correction(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, [replace(each, text="corrected") for each in log.turns])

    store.append(log.conversation, log.turns[:1])

    assert store.recent(log.conversation, 100)[0].text == "corrected"


def test_only_the_latest_turns_are_kept(store: SessionStore, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "BUFFER_MESSAGES", 5)

    store.append(log.conversation, log.turns[:9])
    store.append(log.conversation, log.turns[9:])

    assert held(store, log.conversation) == [7, 8, 9, 10, 11]
    assert numbers(store.recent(log.conversation, 100)) == [7, 8, 9, 10, 11]


def test_a_batch_beyond_the_limits_keeps_its_end(
    store: SessionStore, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "BUFFER_MESSAGES", 5)

    store.append(log.conversation, log.turns)

    assert held(store, log.conversation) == [7, 8, 9, 10, 11]


def test_a_buffer_has_a_maximum_size(store: SessionStore, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [buffer_entry(each).size_bytes for each in log.turns]
    monkeypatch.setattr(conf, "BUFFER_BYTES", sum(sizes[8:]))

    for each in log.turns:
        store.append(log.conversation, [each])
    assert held(store, log.conversation) == [8, 9, 10, 11]

    monkeypatch.setattr(conf, "BUFFER_BYTES", sum(sizes[8:]) - 1)
    store.append(log.conversation, log.turns[11:])
    assert held(store, log.conversation) == [9, 10, 11]


def test_the_latest_turn_stays_whatever_its_size(
    store: SessionStore, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "BUFFER_BYTES", 1_000)
    log = log_of(say(owner, turn("small"), turn("ü" * 1_000), turn("small again")))

    store.append(log.conversation, log.turns[:2])
    assert held(store, log.conversation) == [1]

    store.append(log.conversation, log.turns[2:])
    assert held(store, log.conversation) == [2]


def test_trimming_deletes_turns_before_the_first_one(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, log.turns)
    log.conversation.buffer_from = 7

    store.trim(log.conversation)

    assert held(store, log.conversation) == [7, 8, 9, 10, 11]


def test_trimming_may_empty_a_buffer_that_lags(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, log.turns[:5])
    log.conversation.buffer_from = 7

    store.trim(log.conversation)

    assert held(store, log.conversation) == []


def test_reads_skip_turns_that_should_be_trimmed(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, log.turns)
    log.conversation.buffer_from = 7

    assert numbers(store.recent(log.conversation, 100)) == [7, 8, 9, 10, 11]


def test_turns_before_the_buffers_first_are_not_kept(store: SessionStore, log: Log) -> None:
    log.conversation.buffer_from = 7

    store.append(log.conversation, log.turns)

    assert held(store, log.conversation) == [7, 8, 9, 10, 11]


def test_a_cleared_buffer_is_empty(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, log.turns)

    store.clear(log.conversation)
    store.clear(log.conversation)

    assert held(store, log.conversation) == []


def test_a_gap_hides_earlier_turns_until_it_is_filled(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, log.turns[:4])
    store.append(log.conversation, log.turns[8:])
    assert held(store, log.conversation) == [8, 9, 10, 11]

    store.append(log.conversation, log.turns[4:8])

    assert held(store, log.conversation) == list(range(12))


def test_another_history_under_the_same_numbers_replaces_the_old_one(store: SessionStore, log: Log) -> None:
    store.append(log.conversation, log.turns)
    others = [replace(each, id=uuid7(), text="of another conversation") for each in log.turns[:2]]

    store.append(log.conversation, others)

    assert held(store, log.conversation) == [0, 1]


@given(pieces=st.data())
@examples(40)
def test_any_order_of_appends_gives_the_same_buffer(store: SessionStore, log: Log, pieces: st.DataObject) -> None:
    cuts = sorted(pieces.draw(st.sets(st.integers(1, 11))))
    batches = [log.turns[begin:end] for begin, end in zip([0, *cuts], [*cuts, 12], strict=True)]
    again = pieces.draw(st.lists(st.sampled_from(batches), max_size=3))
    bounds = pieces.draw(st.tuples(st.integers(2, 14), st.integers(1_000, 3_000)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conf, "BUFFER_MESSAGES", bounds[0])
        patch.setattr(conf, "BUFFER_BYTES", bounds[1])
        store.clear(log.conversation)
        store.append(log.conversation, log.turns)
        in_one_batch = held(store, log.conversation)
        store.clear(log.conversation)
        for batch in pieces.draw(st.permutations(batches + again)):
            store.append(log.conversation, batch)

        assert held(store, log.conversation) == in_one_batch


@pytest.mark.parametrize("segment", ["account_id", "user_id", "channel", "conversation_id"])
def test_sessions_with_hostile_ids_stay_apart(store: SessionStore, log: Log, segment: str) -> None:
    ids = [uuid7() for _ in range(3)] if segment == "account_id" else HOSTILE_IDS
    others = [session_like(log.conversation, {segment: hostile}) for hostile in ids]
    for number, other in enumerate(others, start=1):
        store.append(other, log.turns[:number])

    # a hole would send the hybrid store to the log, where these conversations have no turns
    assert [held(store, other) for other in others] == [list(range(number)) for number in range(1, len(ids) + 1)]

    store.clear(others[0])
    assert [held(store, other) for other in others[1:]] == [list(range(number)) for number in range(2, len(ids) + 1)]


def session_like(conversation: Conversation, changes: dict[str, Any]) -> Conversation:
    """One that differs in nothing but what is changed; not stored."""
    segments = {name: getattr(conversation, name) for name in ("account_id", "user_id", "channel", "conversation_id")}
    return Conversation(**segments | changes)


def test_threads_that_append_out_of_order_lose_and_duplicate_nothing(store: SessionStore, owner: Owner) -> None:
    log = log_of(talk(owner, 60))
    # a buffer that begins at 0 has no hole to its first turn's left, so that no read needs the log
    store.append(log.conversation, log.turns[:1])
    pieces = [log.turns[begin : begin + 3] for begin in range(1, 60, 3)]
    random.Random(7).shuffle(pieces)
    in_redis = RedisStore() if isinstance(store, HybridStore) else store

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda piece: in_redis.append(log.conversation, piece), pieces))

    assert store.recent(log.conversation, 100) == log.turns


def test_every_call_renews_the_session(log: Log) -> None:
    store = RedisStore()
    store.append(log.conversation, log.turns)
    key = session_key(session_ref(log.conversation), "turns")

    for touch in (
        lambda: store.append(log.conversation, log.turns[11:]),
        lambda: store.recent(log.conversation, 1),
        lambda: store.trim(log.conversation),
    ):
        client().expire(key, 100)
        touch()
        assert client().ttl(key) > TTL - 100


def test_a_session_in_this_process_expires_unless_it_is_used(log: Log) -> None:
    seconds = [0.0]
    store = MemoryStore(clock=lambda: seconds[0])
    store.append(log.conversation, log.turns)

    seconds[0] = TTL - 1
    assert numbers(store.recent(log.conversation, 1)) == [11]
    seconds[0] = 2 * TTL - 2
    assert numbers(store.recent(log.conversation, 1)) == [11]
    seconds[0] = 3 * TTL

    assert store.recent(log.conversation, 1) == []


def test_this_process_keeps_a_limited_number_of_sessions(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_stores, "MAX_SESSIONS", 2)
    store = MemoryStore()
    first, second, third = (session_like(log.conversation, {"conversation_id": name}) for name in ("1", "2", "3"))
    store.append(first, log.turns)
    store.append(second, log.turns)
    store.recent(first, 1)

    store.append(third, log.turns)

    assert [bool(held(store, each)) for each in (first, second, third)] == [True, False, True]


def test_changing_a_turn_that_was_read_changes_no_buffer(store: SessionStore, owner: Owner) -> None:
    log = log_of(say(owner, turn([{"type": "text", "text": "parts"}])))
    store.append(log.conversation, log.turns)

    store.recent(log.conversation, 1)[0].content[0]["text"] = "changed"

    assert store.recent(log.conversation, 1)[0].content == [{"type": "text", "text": "parts"}]


@pytest.mark.parametrize("name", ["redis", "hybrid"])
def test_every_call_is_one_round_trip(name: str, log: Log) -> None:
    store = MAKES[name]()

    def call_everything() -> None:
        store.append(log.conversation, log.turns)
        store.recent(log.conversation, 5)
        store.trim(log.conversation)
        store.clear(log.conversation)

    call_everything()
    with counted_commands() as commands:
        call_everything()

    assert [command.split()[0] for command in commands] == ["EVALSHA"] * 4


@pytest.mark.parametrize("name", MAKES)
def test_the_settings_name_the_store(name: str, settings: Settings) -> None:
    settings.SESSION_STORE_TYPE = name

    assert type(session_store()) is type(MAKES[name]())
    assert session_store() is session_store()
