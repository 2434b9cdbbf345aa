"""Tests of the access log's stream: bounded, one round trip, and exact about its losses."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from redis import RedisError

from memory import conf
from memory.owner import Owner
from memory.tiers import access_log
from memory.tiers.access_log import LOST_LINES, UNREPORTED, AccessLine
from tests.redis_elsewhere import redis_away
from tests.round_trips import counted_commands

pytestmark = pytest.mark.usefixtures("empty_redis")

NOW = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
CONTEXT = uuid4()
OWNER = Owner(account_id=uuid4(), agent_id="reader", actor="key:abc")


@pytest.fixture(autouse=True)
def _no_unreported_losses() -> Iterator[None]:
    UNREPORTED.pop_all()
    yield
    UNREPORTED.pop_all()


def read(*entry_ids: UUID, owner: Owner = OWNER, context_id: UUID = CONTEXT) -> None:
    access_log.push_access_lines(owner, [(context_id, entry_id) for entry_id in entry_ids], action="read", now=NOW)


def lines(size: int = 100, *, after: str = "", account_id: UUID | None = None) -> list[AccessLine]:
    return access_log.read_access_lines(size, after=after, account_id=account_id)[0]


def report_all() -> list[tuple[UUID, UUID, int]]:
    access_log.report_losses(NOW)
    return [(line.account_id, line.context_id, line.count) for line in lines() if line.action == "lost"]


def lost_so_far() -> float:
    (metric,) = LOST_LINES.collect()
    return next(sample.value for sample in metric.samples if sample.name.endswith("_total"))


def test_a_line_records_the_reader_the_entry_and_the_time() -> None:
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
    assert access_log.count_waiting_access_lines() == 101


def test_lines_are_read_in_pages_and_deleted_afterwards() -> None:
    read(uuid4(), uuid4(), uuid4())

    first, cursor = access_log.read_access_lines(2, after="", account_id=None)
    access_log.delete_access_lines(first)
    rest, end = access_log.read_access_lines(2, after=cursor, account_id=None)

    assert (len(first), len(rest), end) == (2, 1, "")
    assert access_log.count_waiting_access_lines() == 1


def test_lines_of_other_accounts_are_skipped() -> None:
    other = Owner(account_id=uuid4())
    read(uuid4())
    read(uuid4(), owner=other)

    assert [line.account_id for line in lines(account_id=other.account_id)] == [other.account_id]


def test_lines_without_room_are_counted_by_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 2)
    before, elsewhere = lost_so_far(), uuid4()

    read(uuid4(), uuid4(), uuid4())
    read(uuid4(), uuid4(), context_id=elsewhere)

    assert (access_log.count_waiting_access_lines(), lost_so_far() - before) == (2, 3)
    assert sorted(report_all()) == sorted([(OWNER.account_id, CONTEXT, 1), (OWNER.account_id, elsewhere, 2)])


def test_losses_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 1)
    read(uuid4(), uuid4(), uuid4())

    assert (access_log.count_loss_lines(), access_log.count_loss_lines(uuid4())) == (1, 0)
    assert [access_log.report_losses(NOW) for _ in range(2)] == [1, 0]
    assert report_all() == [(OWNER.account_id, CONTEXT, 2)]


def test_loss_lines_have_different_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 0)
    read(uuid4())
    read(uuid4(), context_id=uuid4())
    access_log.report_losses(NOW)

    first, again = lines(), lines()

    assert first == again
    assert len({line.id for line in first}) == 2


def test_lines_that_redis_did_not_accept_are_counted_and_reported_later(caplog: pytest.LogCaptureFixture) -> None:
    before = lost_so_far()
    with redis_away():
        for _again in range(2):
            read(uuid4(), uuid4())
    assert lost_so_far() - before == 4
    assert "2 lines of the access log are lost" in caplog.text

    read(uuid4())

    assert report_all() == [(OWNER.account_id, CONTEXT, 4)]
    assert not UNREPORTED.pop_all()


def test_a_warning_contains_no_names(dead_redis: None, caplog: pytest.LogCaptureFixture) -> None:
    read(uuid4())

    assert "reader" not in caplog.text
    assert str(CONTEXT) not in caplog.text


def test_a_count_that_could_not_be_sent_is_kept(dead_redis: None) -> None:
    read(uuid4())
    read(uuid4())

    assert UNREPORTED.pop_all() == {f"{OWNER.account_id}:{CONTEXT}": 2}
    with pytest.raises(RedisError):
        access_log.count_waiting_access_lines()
