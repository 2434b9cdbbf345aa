"""Tests of alerts: each is on while its condition holds, and a healthy installation has none."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
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
    find_alerts,
    find_alerts_of_redis,
    find_alerts_of_rows,
    format_age,
    read_installation,
)
from memory_project import redis
from tests.memory.episodes import draft, store
from tests.memory.maintenance.jobs import describe_job, describing
from tests.properties import examples
from tests.redis_elsewhere import own_redis, redis_away, take_disk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "just_migrated")]

STATEMENTS = 7
QUEUES = [("extract", "extraction"), ("summary", "summary")]
DUE = {"extract": "extract_after", "summary": "summarize_after"}


def alerts(now: datetime | None = None) -> dict[str, Alert]:
    """Return the active alerts by name, without those that only report that the tests have no workers."""
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


def test_an_installation_that_has_just_started_has_no_alerts(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(STATEMENTS):
        assert find_alerts(timezone.now(), jobs=JOBS.values()) == []


def test_work_due_for_less_than_an_hour_raises_no_alert(account: Account, owner: Owner) -> None:
    now = timezone.now()
    store(owner, draft("new"))
    conversation(account, extract_after=now - timedelta(minutes=59), summarize_after=now + timedelta(minutes=30))
    ended_run("embed", ago=timedelta(minutes=9))

    assert alerts(now) == {}


def test_a_memory_without_embedding_for_over_an_hour_raises_an_alert(owner: Owner) -> None:
    (episode,) = store(owner, draft("old"))
    Memory.objects.update(embed_after=timezone.now() - timedelta(hours=2), created_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert alerts()["embedding_backlog"].what.startswith(
        "Memories without a vector of the serving model: 1; the first has waited for 2 hours."
    )

    Memory.objects.filter(id=episode.id).update(embed_after=None)
    assert alerts() == {}


def test_an_old_memory_that_was_just_edited_raises_no_alert(owner: Owner) -> None:
    store(owner, draft("old"))
    Memory.objects.update(embed_after=timezone.now(), created_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert alerts() == {}


def test_a_memory_that_failed_for_long_raises_an_alert_though_it_is_due_later(owner: Owner) -> None:
    store(owner, draft("hopeless"))
    soon = timezone.now() + timedelta(minutes=30)
    Memory.objects.update(embed_after=soon, embed_attempts=12, created_at=datetime(2020, 1, 1, tzinfo=UTC))

    assert "embedding_backlog" in alerts()


def test_a_large_backlog_raises_an_alert_before_an_hour(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.services.operations.alerts.LARGE_BACKLOG", 2)
    store(owner, *(draft(name) for name in ("a", "b", "c")))

    assert ": 3; the first has waited for " in alerts()["embedding_backlog"].what


@pytest.mark.parametrize(("prefix", "noun"), QUEUES)
def test_a_conversation_due_for_over_an_hour_raises_an_alert(account: Account, prefix: str, noun: str) -> None:
    since = timezone.now() - timedelta(hours=3)
    conversation(account, **{DUE[prefix]: since})

    found = alerts()

    assert list(found) == [f"{noun}_lag"]
    assert found[f"{noun}_lag"].since == since
    assert f"Conversations waiting for {noun}: 1; the first has waited for 3 hours." in found[f"{noun}_lag"].text


@examples(20)
@given(attempts=some.integers(0, 30), waited=some.timedeltas(timedelta(0), timedelta(days=3)))
def test_failed_rows_count_as_waiting_since_first_due(attempts: int, waited: timedelta) -> None:
    now = timezone.now()
    pauses = sum((EXTRACTION.backoff(attempt) for attempt in range(1, attempts + 1)), timedelta(0))
    account = Account.objects.create(name=f"{attempts} {waited} {now}")
    row = conversation(account, extract_after=now - waited + pauses, extract_attempts=attempts)

    lags = [alert.since for alert in find_alerts_of_rows(now, jobs=[]) if alert.name == "extraction_lag"]

    row.delete()
    assert len(lags) == (waited > timedelta(hours=1))
    assert all(since is not None and abs(since - (now - waited)) < timedelta(milliseconds=1) for since in lags)


def test_a_running_attempt_has_postponed_nothing_yet(account: Account) -> None:
    now = timezone.now()
    lease = now + timedelta(minutes=1)
    conversation(account, extract_after=now, extract_attempts=7, extract_lease_until=lease)

    # the six before it: 30 s (2^6 - 1)
    assert alerts() == {}


@pytest.mark.parametrize(("prefix", "noun"), QUEUES)
def test_parked_conversations_raise_an_alert(account: Account, prefix: str, noun: str) -> None:
    conversation(account, **{f"{prefix}_parked_at": timezone.now(), f"{prefix}_attempts": 8})

    assert list(alerts()) == [f"{noun}_parked"]


def test_a_day_without_a_partition_raises_an_alert() -> None:
    day = timezone.now().astimezone(UTC).date() + timedelta(days=conf.AUDIT_PARTITIONS_AHEAD - 1)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE memory_audit_log_{day:%Y%m%d}")

    assert alerts()["audit_partition_missing"].what == f"The audit log has no partition for {day}."


def test_a_worker_never_seen_raises_an_alert_after_a_grace_period() -> None:
    now = read_installation().up_since

    assert "no_worker" not in alerts(now + timedelta(minutes=9))
    assert alerts(now + timedelta(days=1))["no_worker"].what.startswith("No worker has ever run a job")


def test_a_silent_worker_raises_an_alert_though_commands_run_jobs() -> None:
    later = timezone.now() + timedelta(hours=1)
    ended_run("embed", ago=timedelta(hours=2))
    JobRun.objects.create(job="expire", requested_by="command", status="completed", finished_at=later)

    assert alerts(later)["no_worker"].what.startswith("No worker has run a job for 3 hours")


def test_a_worker_may_be_silent_for_two_periods_of_the_most_frequent_job() -> None:
    now = read_installation().up_since
    hourly = [replace(JOBS["globalize_facts"], every=timedelta(hours=1))]

    for minutes, missed in ((40, False), (119, False), (125, True)):
        found = find_alerts_of_rows(now + timedelta(minutes=minutes), jobs=hourly)
        assert ("no_worker" in {alert.name for alert in found}) is missed


def test_a_worker_on_a_long_run_is_seen() -> None:
    later = timezone.now() + timedelta(hours=1)
    JobRun.objects.create(job="embed").begin(leased_by="somebody", lease=timedelta(hours=2))

    assert alerts(later) == {}


def test_a_run_without_a_worker_raises_an_alert() -> None:
    run = JobRun.objects.create(job="embed")
    JobRun.objects.filter(id=run.id).update(created_at=timezone.now() - timedelta(minutes=11))

    assert alerts()["jobs_waiting"].what == "Job runs waiting for a worker: 1; the first has waited for 11 minutes."


def job_alert_texts(now: datetime, job: Any) -> dict[str, str]:
    found = find_alerts_of_rows(now, jobs=[job])
    return {alert.name: alert.what for alert in found if alert.name.startswith("job_")}


def test_a_job_is_overdue_after_two_periods() -> None:
    now, daily = timezone.now(), JOBS["cleanup"]
    ended_run("cleanup", ago=timedelta(hours=1))

    assert job_alert_texts(now + timedelta(hours=46), daily) == {}
    assert "cleanup (" in job_alert_texts(now + timedelta(hours=48), daily)["job_overdue"]


def test_dry_runs_and_runs_of_one_account_do_not_count(account: Account) -> None:
    later = timezone.now() + timedelta(days=3)
    ended_run("cleanup", ago=timedelta(days=-3), dry_run=True)
    ended_run("cleanup", ago=timedelta(days=-3), account=account)

    assert "cleanup (never)" in job_alert_texts(later, JOBS["cleanup"])["job_overdue"]


@pytest.mark.parametrize("status", ["failed", "incomplete"])
def test_a_failed_job_raises_an_alert_until_it_succeeds(status: str) -> None:
    ended_run("embed", ago=timedelta(minutes=2), status=status)

    assert "embed (" in job_alert_texts(timezone.now(), JOBS["embed"])[f"job_{status}"]

    ended_run("embed", ago=timedelta(minutes=1))
    assert job_alert_texts(timezone.now(), JOBS["embed"]) == {}


def test_a_job_that_raises_an_exception_raises_an_alert() -> None:
    def explode(_batch: object) -> None:
        raise ZeroDivisionError

    job = describe_job(describing(explode))
    runner.run_at_once(job, JobRun(job="describe"), clock=timezone.now)

    assert "describe (" in job_alert_texts(timezone.now(), job)["job_failed"]


def test_the_last_runs_of_jobs_are_read_from_an_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {LAST_RUNS}", [list(JOBS)])
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert plan.count("Index Scan Backward using job_run_history") == 2
    assert "Sort Key: job_runs" not in plan


def test_a_redis_that_evicts_raises_an_alert() -> None:
    with own_redis():
        assert alerts() == {}
        redis.client().config_set("maxmemory-policy", "allkeys-lru")
        assert list(alerts()) == ["redis_evicts"]


def test_a_redis_that_is_nearly_full_raises_an_alert() -> None:
    with own_redis():
        used = redis.client().info("memory")["used_memory"]
        redis.client().config_set("maxmemory", used + 1_000)
        assert [alert.name for alert in find_alerts_of_redis()] == ["redis_nearly_full"]


def test_a_redis_that_cannot_write_to_its_disk_raises_an_alert() -> None:
    with own_redis():
        take_disk()
        [alert] = find_alerts_of_redis()

    assert alert.name == "redis_disk"
    assert alert.what == "Redis could not write its snapshot to its disk: until it can, it may refuse writes."


def test_a_redis_that_is_down_hides_nothing_of_the_database(account: Account) -> None:
    conversation(account, extract_parked_at=timezone.now())

    with redis_away():
        assert list(alerts()) == ["extraction_parked", "redis_unreachable"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 seconds"), (119, "119 seconds"), (120, "2 minutes"), (7_200, "2 hours"), (172_800, "2 days")],
)
def test_ages_are_given_in_the_largest_unit_that_fits_twice(seconds: int, expected: str) -> None:
    now = timezone.now()

    assert format_age(now - timedelta(seconds=seconds), now) == expected
