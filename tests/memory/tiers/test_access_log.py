"""The access log's stream: bounded, in one round trip, and honest about what it lost."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from redis import RedisError

from memory import conf
from memory.owner import Owner
from memory.tiers import access_log
from memory.tiers.access_log import LOST_LINES, UNTOLD, Line
from tests.redis_elsewhere import redis_away
from tests.round_trips import counted_commands

pytestmark = pytest.mark.usefixtures("empty_redis")

NOW = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
CONTEXT = uuid4()
OWNER = Owner(account_id=uuid4(), agent_id="reader", actor="key:abc")


@pytest.fixture(autouse=True)
def _nothing_untold() -> Iterator[None]:
    UNTOLD.take()
    yield
    UNTOLD.take()


def read(*entry_ids: UUID, owner: Owner = OWNER, context_id: UUID = CONTEXT) -> None:
    access_log.push(owner, [(context_id, entry_id) for entry_id in entry_ids], action="read", now=NOW)


def lines(size: int = 100, *, after: str = "", account_id: UUID | None = None) -> list[Line]:
    return access_log.next_lines(size, after=after, account_id=account_id)[0]


def settled() -> list[tuple[UUID, UUID, int]]:
    access_log.settle(NOW)
    return [(line.account_id, line.context_id, line.count) for line in lines() if line.action == "lost"]


def lost_so_far() -> float:
    (metric,) = LOST_LINES.collect()
    return next(sample.value for sample in metric.samples if sample.name.endswith("_total"))


def test_a_line_says_who_read_what_when() -> None:
    entry_id = uuid4()

    read(entry_id)

    (line,) = lines()
    assert (line.account_id, line.context_id, line.entry_id) == (OWNER.account_id, CONTEXT, entry_id)
    assert (line.agent_id, line.actor, line.action) == ("reader", "key:abc", "read")
    assert (line.count, line.accessed_at) == (1, NOW)


def test_all_lines_of_a_request_are_one_round_trip() -> None:
    read(uuid4())

    with counted_commands() as commands:
        read(*(uuid4() for _ in range(100)))

    assert len(commands) == 1
    assert access_log.waiting() == 101


def test_lines_are_read_in_pages_and_deleted_afterwards() -> None:
    read(uuid4(), uuid4(), uuid4())

    first, cursor = access_log.next_lines(2, after="", account_id=None)
    access_log.forget(first)
    rest, end = access_log.next_lines(2, after=cursor, account_id=None)

    assert (len(first), len(rest), end) == (2, 1, "")
    assert access_log.waiting() == 1


def test_another_accounts_lines_are_passed_over() -> None:
    other = Owner(account_id=uuid4())
    read(uuid4())
    read(uuid4(), owner=other)

    assert [line.account_id for line in lines(account_id=other.account_id)] == [other.account_id]


def test_lines_without_room_are_counted_by_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 2)
    before, elsewhere = lost_so_far(), uuid4()

    read(uuid4(), uuid4(), uuid4())
    read(uuid4(), uuid4(), context_id=elsewhere)

    assert (access_log.waiting(), lost_so_far() - before) == (2, 3)
    assert sorted(settled()) == sorted([(OWNER.account_id, CONTEXT, 1), (OWNER.account_id, elsewhere, 2)])


def test_counts_are_settled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 1)
    read(uuid4(), uuid4(), uuid4())

    assert (access_log.count_settled(), access_log.count_settled(uuid4())) == (1, 0)
    assert [access_log.settle(NOW) for _ in range(2)] == [1, 0]
    assert settled() == [(OWNER.account_id, CONTEXT, 2)]


def test_lines_settled_together_have_ids_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 0)
    read(uuid4())
    read(uuid4(), context_id=uuid4())
    access_log.settle(NOW)

    first, again = lines(), lines()

    assert first == again
    assert len({line.id for line in first}) == 2


def test_lines_that_redis_did_not_take_are_counted_here_and_told_later(caplog: pytest.LogCaptureFixture) -> None:
    before = lost_so_far()
    with redis_away():
        for _again in range(2):
            read(uuid4(), uuid4())
    assert lost_so_far() - before == 4
    assert "2 lines of the access log are lost" in caplog.text

    read(uuid4())

    assert settled() == [(OWNER.account_id, CONTEXT, 4)]
    assert not UNTOLD.take()


def test_a_warning_names_nobody(dead_redis: None, caplog: pytest.LogCaptureFixture) -> None:
    read(uuid4())

    assert "reader" not in caplog.text
    assert str(CONTEXT) not in caplog.text


def test_a_count_that_could_not_be_told_either_is_kept(dead_redis: None) -> None:
    read(uuid4())
    read(uuid4())

    assert UNTOLD.take() == {f"{OWNER.account_id}:{CONTEXT}": 2}
    with pytest.raises(RedisError):
        access_log.waiting()
