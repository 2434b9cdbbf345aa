"""Tests of a session's context values: types, individual expiries, limits in number and size."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given

from memory import conf
from memory.errors import TooLarge, Unprocessable
from memory_project.redis import SessionRef, client, session_key
from tests.memory.expiries import left_of
from tests.memory.tiers.sessions import SessionWithTurns
from tests.memory.tiers.test_session import NOW, keys_of, some_ref
from tests.memory.tiers.test_working import names, values
from tests.properties import examples


@given(key=names, value=values)
@examples(100)
def test_any_json_value_comes_back_as_it_went_in(key: str, value: Any) -> None:
    session = SessionWithTurns(some_ref())

    session.set(key, value)

    # as JSON, since to Python 1 == 1.0 == True
    assert json.dumps(session.get(key), sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.mark.parametrize("value", ["123", 123, 1, 1.0, -0.0, True, None, "", "null", 2**200, [], {}, {"a": [None]}])
def test_types_are_not_mixed_up(session: SessionWithTurns, value: Any) -> None:
    session.set("key", value)

    assert repr(session.get("key")) == repr(value)
    assert repr(session.get_context()) == repr({"key": value})


def test_a_stored_none_differs_from_a_missing_value(session: SessionWithTurns) -> None:
    session.set("nothing", None)

    stored = session.find("nothing")

    assert stored is not None
    assert stored.value is None
    assert session.find("missing") is None


def test_a_value_is_replaced_with_its_expiry(session: SessionWithTurns) -> None:
    session.set("key", "old", ttl_seconds=50)
    session.set("key", "new", ttl_seconds=500)

    stored = session.find("key")

    assert stored is not None
    assert stored.value == "new"
    assert stored.ttl_seconds in left_of(500)


def test_a_value_lives_for_the_default_ttl(session: SessionWithTurns) -> None:
    session.set("key", 1)

    stored = session.find("key")

    assert stored is not None
    assert conf.SESSION_VALUE_TTL_SECONDS == 3_600
    assert stored.ttl_seconds in left_of(3_600)


@pytest.mark.parametrize("ttl_seconds", [0, -1, conf.SESSION_MAX_TTL_HOURS * 3_600 + 1])
def test_a_ttl_out_of_bounds_is_refused(session: SessionWithTurns, ttl_seconds: int) -> None:
    with pytest.raises(ValueError, match=r"^ttl_seconds must be from 1 to 604800$"):
        session.set("key", 1, ttl_seconds=ttl_seconds)

    assert session.find("key") is None


def test_the_maximum_ttl_is_allowed(session: SessionWithTurns) -> None:
    session.set("key", 1, ttl_seconds=conf.SESSION_MAX_TTL_HOURS * 3_600)

    stored = session.find("key")

    assert stored is not None
    assert stored.ttl_seconds in left_of(604_800)


def test_an_expired_value_is_gone_and_its_name_too(ref: SessionRef, session: SessionWithTurns) -> None:
    session.set("short", 1, ttl_seconds=1)
    session.set("long", 2)
    expire_now(ref, "short")

    assert session.get_context() == {"long": 2}
    assert session.find("short") is None
    assert client().zrange(session_key(ref, "context"), 0, -1) == ["long"]


def test_time_alone_makes_a_value_expire(ref: SessionRef, session: SessionWithTurns) -> None:
    session.set("short", 1, ttl_seconds=1)

    time.sleep(1.05)

    assert (session.get("short"), session.get_context()) == (None, {})
    assert keys_of(ref) == set()


def test_names_expire_with_the_last_value(ref: SessionRef, session: SessionWithTurns) -> None:
    session.set("long", 1, ttl_seconds=500)
    session.set("short", 2, ttl_seconds=5)

    assert 400 < client().ttl(session_key(ref, "context")) <= 500


def test_a_deleted_value_is_gone(session: SessionWithTurns) -> None:
    session.set("key", 1)

    assert session.delete("key") is True

    assert session.delete("key") is False
    assert session.find("key") is None
    assert session.get_context() == {}


def test_one_value_too_many_is_refused(session: SessionWithTurns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SESSION_VALUES", 2)
    session.set("one", 1)
    session.set("two", 2)

    with pytest.raises(Unprocessable, match=r"^the session already has 2 values: delete one first$"):
        session.set("three", 3)

    session.set("two", "II")
    assert session.get_context() == {"one": 1, "two": "II"}


def test_expired_and_deleted_values_make_room(
    ref: SessionRef, session: SessionWithTurns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "SESSION_VALUES", 2)
    session.set("expired", 1)
    session.set("deleted", 1)
    expire_now(ref, "expired")
    session.delete("deleted")

    session.set("one", 1)
    session.set("two", 2)

    assert session.get_context() == {"one": 1, "two": 2}


def expire_now(ref: SessionRef, name: str) -> None:
    """Make the value look expired: delete it, and give its name a past expiry."""
    client().delete(session_key(ref, f"context:{name}"))
    client().zadd(session_key(ref, "context"), {name: 1})


def test_concurrent_writers_cannot_pass_the_bound_together(ref: SessionRef, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SESSION_VALUES", 5)

    def write(number: int) -> bool:
        try:
            SessionWithTurns(ref).set(f"value-{number}", number)
        except Unprocessable:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(write, range(40)))

    assert outcomes.count(True) == len(SessionWithTurns(ref).get_context()) == 5


def test_a_value_of_the_largest_size_is_stored_and_one_byte_more_is_not(session: SessionWithTurns) -> None:
    session.set("fits", "ü" * (conf.SESSION_VALUE_BYTES // 2 - 1))

    with pytest.raises(TooLarge) as refused:
        session.set("large", "x" * (conf.SESSION_VALUE_BYTES - 1))

    assert refused.value.facts == {"stored": False, "size_bytes": 65_537, "limit_bytes": 65_536}
    assert list(session.get_context()) == ["fits"]


@pytest.mark.parametrize("name", ["", "n" * 201, "a\x00b", "\ud800"])
def test_an_invalid_name_is_refused(session: SessionWithTurns, name: str) -> None:
    for call in (lambda: session.set(name, 1), lambda: session.find(name), lambda: session.delete(name)):
        with pytest.raises(ValueError, match=r".+"):
            call()


def test_a_value_cannot_collide_with_another_key(ref: SessionRef, session: SessionWithTurns) -> None:
    for name in ("turns", ":turns", "x:context", "{other}", "context:key"):
        session.set(name, name)

    assert session.get_context() == {name: name for name in ("turns", ":turns", "x:context", "{other}", "context:key")}
    assert session.get_recent_turns(10) == []


def test_values_keep_their_own_expiry(ref: SessionRef, session: SessionWithTurns) -> None:
    session.set("key", 1, ttl_seconds=100)

    session.get("key")
    session.get_context()
    session.push_thought("hm", "ana", NOW)

    assert client().ttl(session_key(ref, "context:key")) <= 100
