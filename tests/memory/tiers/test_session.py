"""Tests of session memory: turns, thoughts, a goal and values stay within limits and expire together."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from memory import conf
from memory.errors import TooLarge
from memory.owner import GLOBAL_CHANNEL
from memory.tiers.session_stores import SessionTurn
from memory_project.ids import uuid7
from memory_project.redis import SessionRef, client, session_key
from tests.memory.tiers.sessions import SessionWithTurns
from tests.round_trips import counted_commands

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
TTL = conf.SESSION_TTL_HOURS * 3_600
HOSTILE_IDS = ("a:b", "{a}", "%7Ba%7D", "a", "a%3Ab", "}{", "*", "a:turns", "ü 7/8")


def some_ref(**changes: Any) -> SessionRef:
    return changed(SessionRef(account_id=uuid7(), user_id="ana", channel=GLOBAL_CHANNEL, conversation_id="c1"), changes)


def changed(ref: SessionRef, changes: dict[str, Any]) -> SessionRef:
    return replace(ref, **changes)


def turn(index: int) -> SessionTurn:
    return SessionTurn(
        id=uuid7(),
        index=index,
        role="user",
        name="",
        agent_id="assistant",
        content=f"turn {index}",
        text=f"turn {index}",
        payload=None,
        timestamp=NOW,
    )


def keys_of(ref: SessionRef) -> set[str]:
    return {str(key) for key in client().scan_iter(f"account:{ref.account_id}:*")}


def test_a_large_thought_or_goal_is_refused(session: SessionWithTurns) -> None:
    large = "x" * conf.SESSION_VALUE_BYTES

    with pytest.raises(TooLarge):
        session.push_thought(large, "ana", NOW)
    with pytest.raises(TooLarge):
        session.set_active_goal("g1", large)

    assert session.get_thoughts(10) == []
    assert session.get_active_goal() is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "\ud800", {"\udfff": 1}, object])
def test_a_value_without_json_form_is_refused(session: SessionWithTurns, bad: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        session.set("key", bad)
    with pytest.raises((ValueError, TypeError)):
        session.push_thought(bad, "ana", NOW)

    assert session.get_context() == {}


def test_a_goal_is_set_replaced_and_cleared(session: SessionWithTurns) -> None:
    session.set_active_goal("g1", "close the books")
    session.set_active_goal("g2", "file the permit")

    assert session.get_active_goal() == {"goal_id": "g2", "goal_description": "file the permit"}
    assert session.clear_active_goal() is True
    assert session.clear_active_goal() is False
    assert session.get_active_goal() is None


def test_thoughts_come_newest_last(session: SessionWithTurns) -> None:
    for number in range(5):
        session.push_thought(f"thought {number}", "ana", NOW)

    latest = session.get_thoughts(2)

    assert [each["thought"] for each in latest] == ["thought 3", "thought 4"]
    assert latest[0] == {"thought": "thought 3", "agent_id": "ana", "timestamp": "2026-03-01T12:30:00+00:00"}
    assert session.get_thoughts(0) == []


def test_the_oldest_thoughts_go_first(session: SessionWithTurns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SESSION_THOUGHTS", 3)

    for number in range(5):
        session.push_thought(number, "ana", NOW)

    assert [each["thought"] for each in session.get_thoughts(10)] == [2, 3, 4]


def test_turns_come_oldest_first(session: SessionWithTurns) -> None:
    turns = [turn(index) for index in range(4)]

    session.add_turns(turns[:2])
    session.add_turn(turns[2])
    session.add_turns(turns)

    assert session.get_recent_turns(3) == turns[1:]


def test_every_call_on_one_list_renews_the_expiry_of_all_lists(ref: SessionRef, session: SessionWithTurns) -> None:
    session.add_turn(turn(0))
    session.push_thought("hm", "ana", NOW)
    session.set_active_goal("g1", "close the books")
    lists = [session_key(ref, name) for name in ("turns", "thoughts", "active_goal")]

    for touch in (
        lambda: session.add_turn(turn(1)),
        lambda: session.get_recent_turns(1),
        lambda: session.push_thought("so", "ana", NOW),
        lambda: session.get_thoughts(1),
        lambda: session.set_active_goal("g2", "file the permit"),
        session.get_active_goal,
    ):
        for key in lists:
            client().expire(key, 100)
        touch()
        assert all(client().ttl(key) > TTL - 100 for key in lists)


def test_every_key_of_a_session_expires(ref: SessionRef, session: SessionWithTurns) -> None:
    fill(session)
    session.restore(session.snapshot())

    assert all(0 < client().ttl(key) <= TTL for key in keys_of(ref))


def fill(session: SessionWithTurns) -> None:
    session.add_turn(turn(0))
    session.push_thought("hm", "ana", NOW)
    session.set_active_goal("g1", "close the books")
    session.set("key", 1)


def test_clearing_deletes_everything(ref: SessionRef, session: SessionWithTurns) -> None:
    fill(session)
    for number in range(3_000):
        client().set(session_key(ref, f"context:{number}"), "1")
    client().zadd(session_key(ref, "context"), {str(number): 2e15 for number in range(3_000)})

    session.clear_session()

    assert keys_of(ref) == set()


def test_clearing_an_empty_session_is_no_error(session: SessionWithTurns) -> None:
    session.clear_session()

    assert session.snapshot() == {"active_goal": None, "thoughts": [], "values": {}}


@pytest.mark.parametrize("hostile", HOSTILE_IDS)
@pytest.mark.parametrize("segment", ["user_id", "channel", "conversation_id"])
def test_sessions_with_hostile_ids_stay_apart(ref: SessionRef, hostile: str, segment: str) -> None:
    others = [SessionWithTurns(changed(ref, {segment: other})) for other in HOSTILE_IDS if other != hostile]
    for other in others:
        fill(other)

    SessionWithTurns(changed(ref, {segment: hostile})).clear_session()

    assert all(other.get_context() == {"key": 1} and other.get_recent_turns(1) for other in others)


def test_users_and_channels_with_colons_stay_apart(ref: SessionRef) -> None:
    account_id = ref.account_id
    SessionWithTurns(some_ref(user_id="a", account_id=account_id, channel="b:c")).set("key", 1)

    assert SessionWithTurns(some_ref(user_id="a:b", account_id=account_id, channel="c")).get_context() == {}


def test_another_account_sees_nothing(session: SessionWithTurns) -> None:
    fill(session)

    other = SessionWithTurns(some_ref())

    assert other.snapshot() == {"active_goal": None, "thoughts": [], "values": {}}
    assert other.get_recent_turns(10) == []


def test_a_snapshot_brings_everything_back(session: SessionWithTurns) -> None:
    fill(session)
    session.set("odd", [1.0, -0.0, 2**200, "\x00", "123"], ttl_seconds=70)
    saved = json.loads(json.dumps(session.snapshot()))
    session.clear_session()

    session.restore(saved)

    assert session.snapshot() == saved
    assert repr(session.get("odd")) == repr([1.0, -0.0, 2**200, "\x00", "123"])
    assert [each["thought"] for each in session.get_thoughts(5)] == ["hm"]
    assert session.get_active_goal() == {"goal_id": "g1", "goal_description": "close the books"}


def test_a_snapshot_contains_the_remaining_seconds_of_values(session: SessionWithTurns) -> None:
    session.set("key", "text", ttl_seconds=70)

    assert session.snapshot()["values"] == {"key": {"json": '"text"', "ttl_seconds": 70}}


def test_restoring_replaces_nothing(session: SessionWithTurns) -> None:
    fill(session)
    session.set("saved only", 1)
    saved = session.snapshot()
    session.clear_session()
    session.set("key", "newer")
    session.set_active_goal("g2", "file the permit")
    session.push_thought("newer", "ana", NOW)

    session.restore(saved)

    assert session.get_context() == {"key": "newer", "saved only": 1}
    assert session.get_active_goal() == {"goal_id": "g2", "goal_description": "file the permit"}
    assert [each["thought"] for each in session.get_thoughts(5)] == ["newer"]


def test_restoring_respects_the_current_limits(session: SessionWithTurns, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        session.set(f"value-{number}", number)
        session.push_thought(number, "ana", NOW)
    saved = session.snapshot()
    session.clear_session()
    monkeypatch.setattr(conf, "SESSION_VALUES", 2)
    monkeypatch.setattr(conf, "SESSION_THOUGHTS", 2)

    session.restore(saved)

    assert len(session.get_context()) == 2
    assert [each["thought"] for each in session.get_thoughts(5)] == [2, 3]


def test_every_call_is_one_round_trip(session: SessionWithTurns) -> None:
    def call_everything() -> None:
        session.add_turn(turn(0))
        session.get_recent_turns(5)
        session.set("key", 1)
        session.find("key")
        session.get("key")
        session.get_context()
        session.delete("key")
        session.set_active_goal("g1", "close the books")
        session.get_active_goal()
        session.clear_active_goal()
        session.push_thought("hm", "ana", NOW)
        session.get_thoughts(5)
        session.restore(session.snapshot())
        session.clear_session()

    call_everything()
    with counted_commands() as commands:
        call_everything()

    assert [command.split()[0] for command in commands] == ["EVALSHA"] * 15
