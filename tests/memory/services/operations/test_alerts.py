"""Alerts: each is on while it is so, and a healthy installation has none."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as some
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.maintenance import JOBS, runner
from memory.models import Account, Conversation, JobRun, Memory
from memory.models.jobs import SCHEDULE
from memory.owner import Owner
from memory.services.conversations.queue import EXTRACTION
from memory.services.operations.alerts import (
    LAST_RUNS,
    Alert,
    ago,
    find_alerts,
    find_alerts_of_redis,
    find_alerts_of_rows,
    look_at_installation,
)
from memory_project import redis
from tests.memory.episodes import draft, store
from tests.memory.maintenance.jobs import describe_job, describing
from tests.redis_elsewhere import own_redis, redis_away

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "just_migrated")]

STATEMENTS = 6
QUEUES = [("extract", "extraction"), ("summary", "summary")]
DUE = {"extract": "extract_after", "summary": "summarize_after"}


def alerts(now: datetime | None = None) -> dict[str, Alert]:
    """Those that are on, but for what is late because the tests have no workers."""
    found = find_alerts(now or timezone.now(), jobs=[])
    return {alert.name: alert for alert in found}


def conversation(account: Account, **columns: Any) -> Conversation:
    return Conversation.objects.create(
        account=account, conversation_id="c", started_at=timezone.now(), turn_count=5, **columns
    )


def ended_run(job: str, *, ago: timedelta, status: str = "completed", **columns: Any) -> JobRun:
    at = timezone.now() - ago
    run = JobRun.objects.create(job=job, requested_by=SCHEDULE, status=status, started_at=at, finished_at=at, **columns)
    JobRun.objects.filter(id=run.id).update(created_at=at)
    return run


def test_an_installation_that_has_just_started_has_none(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(STATEMENTS):
        assert find_alerts(timezone.now(), jobs=JOBS.values()) == []


def test_what_is_due_for_less_than_an_hour_is_not_behind(account: Account, owner: Owner) -> None:
    now = timezone.now()
    store(owner, draft("new"))
    conversation(account, extract_after=now - timedelta(minutes=59), summarize_after=now + timedelta(minutes=30))
    ended_run("embed", ago=timedelta(minutes=9))

    assert alerts(now) == {}


def test_a_memory_that_waits_for_its_embedding_for_over_an_hour_is_told(owner: Owner) -> None:
    (episode,) = store(owner, draft("old"))
    Memory.objects.update(embed_after=timezone.now() - timedelta(hours=2), created_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert alerts()["embedding_backlog"].what.endswith(": 1, the first for 2 hours.")

    Memory.objects.filter(id=episode.id).update(embed_after=None)
    assert alerts() == {}


def test_an_old_memory_that_was_edited_just_now_is_not_behind(owner: Owner) -> None:
    store(owner, draft("old"))
    Memory.objects.update(embed_after=timezone.now(), created_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert alerts() == {}


def test_what_an_embedder_failed_on_since_long_is_told_though_it_is_due_later(owner: Owner) -> None:
    store(owner, draft("hopeless"))
    soon = timezone.now() + timedelta(minutes=30)
    Memory.objects.update(embed_after=soon, embed_attempts=12, created_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert "embedding_backlog" in alerts()


def test_many_that_wait_are_told_though_none_does_for_long(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.services.operations.alerts.LARGE_BACKLOG", 2)
    store(owner, *(draft(name) for name in ("a", "b", "c")))

    assert ": 3, the first for " in alerts()["embedding_backlog"].what


@pytest.mark.parametrize(("prefix", "noun"), QUEUES)
def test_a_conversation_that_is_due_for_over_an_hour_is_told(account: Account, prefix: str, noun: str) -> None:
    since = timezone.now() - timedelta(hours=3)
    conversation(account, **{DUE[prefix]: since})

    found = alerts()

    assert list(found) == [f"{noun}_lag"]
    assert found[f"{noun}_lag"].since == since
    assert f"Conversations wait for {noun}: 1, the first for 3 hours." in found[f"{noun}_lag"].text


@settings(max_examples=20)
@given(attempts=some.integers(0, 30), waited=some.timedeltas(timedelta(0), timedelta(days=3)))
def test_what_fails_waits_since_it_was_due_first(attempts: int, waited: timedelta) -> None:
    """Whatever it was put off by meanwhile."""
    now = timezone.now()
    pauses = sum((EXTRACTION.wait_after(attempt) for attempt in range(1, attempts + 1)), timedelta(0))
    account = Account.objects.create(name=f"{attempts} {waited} {now}")
    row = conversation(account, extract_after=now - waited + pauses, extract_attempts=attempts)

    lags = [alert.since for alert in find_alerts_of_rows(now, jobs=[]) if alert.name == "extraction_lag"]

    row.delete()
    assert len(lags) == (waited > timedelta(hours=1))
    assert all(since is not None and abs(since - (now - waited)) < timedelta(milliseconds=1) for since in lags)


def test_an_attempt_that_is_under_way_has_put_nothing_off_yet(account: Account) -> None:
    now = timezone.now()
    lease = now + timedelta(minutes=1)
    conversation(account, extract_after=now, extract_attempts=7, extract_lease_until=lease)

    # the six before it: 30 s (2^6 - 1)
    assert alerts() == {}


@pytest.mark.parametrize(("prefix", "noun"), QUEUES)
def test_parked_conversations_are_told_by_themselves(account: Account, prefix: str, noun: str) -> None:
    conversation(account, **{f"{prefix}_parked_at": timezone.now(), f"{prefix}_attempts": 8})

    assert list(alerts()) == [f"{noun}_parked"]


def test_a_day_without_its_partition_is_told() -> None:
    day = timezone.now().astimezone(UTC).date() + timedelta(days=conf.AUDIT_PARTITIONS_AHEAD - 1)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE memory_audit_log_{day:%Y%m%d}")

    assert alerts()["audit_partition_missing"].what == f"The audit log has no partition for {day}."


def test_a_worker_that_nobody_has_seen_is_told_once_it_should_have_been() -> None:
    now = look_at_installation().up_since

    assert "no_worker" not in alerts(now + timedelta(minutes=9))
    assert alerts(now + timedelta(days=1))["no_worker"].what.startswith("No worker has ever run a job")


def test_a_worker_that_is_gone_is_told_though_commands_run_jobs() -> None:
    later = timezone.now() + timedelta(hours=1)
    ended_run("embed", ago=timedelta(hours=2))
    JobRun.objects.create(job="expire", requested_by="command", status="completed", finished_at=later)

    assert alerts(later)["no_worker"].what.startswith("No worker has run a job for 3 hours")


def test_a_worker_is_not_missed_before_its_most_frequent_job_is_due_twice() -> None:
    now = look_at_installation().up_since
    hourly = [replace(JOBS["promote"], every=timedelta(hours=1))]

    for minutes, missed in ((40, False), (119, False), (125, True)):
        found = find_alerts_of_rows(now + timedelta(minutes=minutes), jobs=hourly)
        assert ("no_worker" in {alert.name for alert in found}) is missed


def test_a_worker_that_is_at_a_long_run_is_seen() -> None:
    later = timezone.now() + timedelta(hours=1)
    JobRun.objects.create(job="embed").take(leased_by="somebody", lease=timedelta(hours=2))

    assert alerts(later) == {}


def test_a_run_that_nobody_takes_is_told() -> None:
    run = JobRun.objects.create(job="embed")
    JobRun.objects.filter(id=run.id).update(created_at=timezone.now() - timedelta(minutes=11))

    assert alerts()["jobs_waiting"].what == "Runs of jobs wait for a worker: 1, the first for 11 minutes."


def jobs_told(now: datetime, job: Any) -> dict[str, str]:
    found = find_alerts_of_rows(now, jobs=[job])
    return {alert.name: alert.what for alert in found if alert.name.startswith("job_")}


def test_a_job_is_overdue_after_two_periods() -> None:
    now, daily = timezone.now(), JOBS["cleanup"]
    ended_run("cleanup", ago=timedelta(hours=1))

    assert jobs_told(now + timedelta(hours=46), daily) == {}
    assert "cleanup (" in jobs_told(now + timedelta(hours=48), daily)["job_overdue"]


def test_a_dry_run_and_a_run_of_one_account_are_no_ends_of_a_job(account: Account) -> None:
    later = timezone.now() + timedelta(days=3)
    ended_run("cleanup", ago=timedelta(days=-3), dry_run=True)
    ended_run("cleanup", ago=timedelta(days=-3), account=account)

    assert "cleanup (never)" in jobs_told(later, JOBS["cleanup"])["job_overdue"]


@pytest.mark.parametrize("status", ["failed", "incomplete"])
def test_a_job_that_failed_last_is_told_until_it_does_well(status: str) -> None:
    ended_run("embed", ago=timedelta(minutes=2), status=status)

    assert "embed (" in jobs_told(timezone.now(), JOBS["embed"])[f"job_{status}"]

    ended_run("embed", ago=timedelta(minutes=1))
    assert jobs_told(timezone.now(), JOBS["embed"]) == {}


def test_a_job_that_raises_is_told() -> None:
    def explode(_batch: object) -> None:
        raise ZeroDivisionError

    job = describe_job(describing(explode))
    runner.run_at_once(job, JobRun(job="describe"), clock=timezone.now)

    assert "describe (" in jobs_told(timezone.now(), job)["job_failed"]


def test_the_last_runs_of_jobs_are_read_off_an_index_however_many_there_are() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {LAST_RUNS}", [list(JOBS)])
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert plan.count("Index Scan Backward using job_run_history") == 2
    assert "Sort Key: job_runs" not in plan


def test_a_redis_that_would_drop_the_ledger_is_told() -> None:
    with own_redis():
        assert alerts() == {}
        redis.client().config_set("maxmemory-policy", "allkeys-lru")
        assert list(alerts()) == ["redis_evicts"]


def test_a_redis_that_is_nearly_full_is_told() -> None:
    with own_redis():
        used = redis.client().info("memory")["used_memory"]
        redis.client().config_set("maxmemory", used + 1_000)
        assert [alert.name for alert in find_alerts_of_redis()] == ["redis_nearly_full"]


def test_a_redis_that_is_down_hides_nothing_of_the_database(account: Account) -> None:
    conversation(account, extract_parked_at=timezone.now())

    with redis_away():
        assert list(alerts()) == ["extraction_parked", "redis_unreachable"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 seconds"), (119, "119 seconds"), (120, "2 minutes"), (7_200, "2 hours"), (172_800, "2 days")],
)
def test_times_are_told_in_the_largest_unit_that_fits_twice(seconds: int, told: str) -> None:
    now = timezone.now()

    assert ago(now - timedelta(seconds=seconds), now) == told
