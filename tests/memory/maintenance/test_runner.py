"""Runs: batch by batch, one at a time, under a lease that a dead worker loses."""

import logging
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import UUID

import pytest
from django.db import IntegrityError

from memory import conf
from memory.errors import Conflict, Unprocessable
from memory.maintenance import Batch, BatchReport
from memory.maintenance.runner import run_at_once, run_waiting
from memory.models import Account, JobRun
from memory.models.jobs import SCHEDULE
from memory.services.operations.jobs import schedule_overdue_run, schedule_run
from tests.memory.maintenance.jobs import (
    NOW,
    clock,
    describe_job,
    describing,
    descriptions,
    make_agents,
    queue_run,
    running_run,
    steal,
)

pytestmark = pytest.mark.django_db

EXPIRED, LIVE = timedelta(seconds=-1), timedelta(minutes=1)


def test_a_run_processes_batches_until_nothing_is_left(account: Account) -> None:
    make_agents(account, "abcde")
    run = queue_run()

    run_waiting(describe_job(), clock=clock)

    run.refresh_from_db()
    assert descriptions() == dict.fromkeys("abcde", "x")
    assert (run.status, run.examined, run.changed, run.failed, run.cursor) == ("completed", 5, 5, 0, "")
    assert run.started_at is not None
    assert run.finished_at is not None


def test_a_dry_run_counts_and_changes_nothing(account: Account) -> None:
    make_agents(account, "abc")
    run = queue_run(dry_run=True)

    run_waiting(describe_job(), clock=clock)

    run.refresh_from_db()
    assert (run.status, run.changed) == ("completed", 3)
    assert descriptions() == dict.fromkeys("abc", "")


def test_a_run_of_an_account_leaves_other_accounts_alone(account: Account, stranger: Account) -> None:
    make_agents(account, "ac")
    make_agents(stranger, "bd")
    queue_run(account)

    run_waiting(describe_job(), clock=clock)

    assert descriptions() == {"a": "x", "b": "", "c": "x", "d": ""}


def test_every_queued_run_is_done_the_oldest_first(account: Account) -> None:
    make_agents(account, "a")
    younger, older = queue_run(), queue_run(account)
    JobRun.objects.filter(id=older.id).update(created_at=younger.created_at - timedelta(seconds=1))
    seen: list[UUID | None] = []

    run_waiting(describe_job(describing(lambda batch: seen.append(batch.account_id))), clock=clock)

    assert seen == [account.id, None]


def test_a_run_waits_while_another_of_its_job_is_running() -> None:
    running_run(lease=LIVE)
    run = queue_run()

    run_waiting(describe_job(), clock=clock)

    run.refresh_from_db()
    assert run.status == "queued"


def test_a_run_of_an_account_does_not_wait_for_that_of_another(account: Account, stranger: Account) -> None:
    make_agents(account, "a")
    make_agents(stranger, "b")
    busy = queue_run(stranger)
    busy.begin(leased_by="another worker", lease=LIVE)
    again, run = queue_run(stranger), queue_run(account)

    run_waiting(describe_job(), clock=clock)

    assert [JobRun.objects.get(id=each.id).status for each in (busy, again, run)] == ["running", "queued", "completed"]
    assert descriptions() == {"a": "x", "b": ""}


def test_the_database_refuses_a_second_running_run_of_a_job() -> None:
    running_run(lease=LIVE)

    with pytest.raises(IntegrityError, match="job_runs_once_at_a_time"):
        running_run(lease=LIVE)


def test_a_run_abandoned_by_a_killed_worker_continues_at_its_cursor(account: Account) -> None:
    make_agents(account, "abcd")
    left = running_run(lease=EXPIRED, cursor="b")

    run_waiting(describe_job(), clock=clock)

    left.refresh_from_db()
    assert descriptions() == {"a": "", "b": "", "c": "x", "d": "x"}
    assert (left.status, left.examined) == ("completed", 2)
    assert left.leased_by != "another worker"


def test_a_restarted_batch_counts_as_another_attempt(account: Account) -> None:
    make_agents(account, "a")
    left = running_run(lease=EXPIRED, attempts=2)

    run_waiting(describe_job(), clock=clock)

    left.refresh_from_db()
    assert left.attempts == 3


def test_the_attempts_are_reset_after_a_completed_batch(account: Account) -> None:
    make_agents(account, "abc")
    left = running_run(lease=EXPIRED, attempts=conf.JOB_ATTEMPTS - 1)

    run_waiting(describe_job(), clock=clock)

    left.refresh_from_db()
    assert (left.status, left.attempts) == ("completed", 1)


def test_a_run_that_kills_every_worker_is_given_up() -> None:
    hopeless = running_run(lease=EXPIRED, attempts=conf.JOB_ATTEMPTS)

    run_waiting(describe_job(), clock=clock)

    hopeless.refresh_from_db()
    assert hopeless.status == "failed"
    assert hopeless.error == "Given up: 5 workers in a row were killed, or hung, on the same batch."


def test_a_run_that_lost_its_lease_stops_immediately_and_logs_it(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    make_agents(account, "abcd")
    run = queue_run()

    run_waiting(describe_job(describing(lambda batch: steal(run))), clock=clock)

    run.refresh_from_db()
    assert (run.status, run.leased_by, run.examined) == ("running", "a thief", 0)
    assert descriptions() == {"a": "x", "b": "x", "c": "", "d": ""}
    assert f"run {run.id} stops: it lost its lease" in caplog.text


def test_the_lease_is_renewed_with_each_batch(account: Account) -> None:
    make_agents(account, "abcd")
    run = queue_run()
    held = JobRun.objects.filter(id=run.id)

    def run_out_once(batch: Batch) -> None:
        if not batch.cursor:
            held.update(lease_until=NOW - timedelta(days=10_000))
        else:
            assert not held.abandoned().exists()

    run_waiting(describe_job(describing(run_out_once)), clock=clock)

    run.refresh_from_db()
    assert run.status == "completed"


def test_each_batch_receives_its_start_time(account: Account) -> None:
    times: list[datetime] = []
    minutes = count()

    def ask_again_meanwhile(*, now: datetime, batch: Batch) -> BatchReport:
        times.append(now)
        if len(times) == 1:
            queue_run()
        return BatchReport(examined=1, changed=1, cursor="" if batch.cursor else "half")

    queue_run()
    run_waiting(describe_job(ask_again_meanwhile), clock=lambda: NOW + timedelta(minutes=next(minutes)))

    assert times == [NOW + timedelta(minutes=passed) for passed in range(4)]


def test_an_exception_in_a_job_fails_its_run_without_disclosing_contents(
    account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    make_agents(account, "abcd")
    run, contents = queue_run(), "the safe's code is 1234"

    def raise_contents(batch: Batch) -> None:
        if batch.cursor:
            raise KeyError(contents)

    run_waiting(describe_job(describing(raise_contents)), clock=clock)

    run.refresh_from_db()
    assert run.status == "failed"
    assert run.error.startswith("KeyError in test_runner.py, line ")
    assert (run.examined, run.cursor) == (2, "b")
    assert descriptions() == {"a": "x", "b": "x", "c": "", "d": ""}
    assert "1234" not in run.error + caplog.text
    assert "raise_contents" in caplog.text


def test_an_application_error_is_recorded_with_its_message(account: Account) -> None:
    make_agents(account, "a")
    run = queue_run()

    def refuse(batch: Batch) -> None:
        raise Unprocessable("the model is not there")

    run_waiting(describe_job(describing(refuse)), clock=clock)

    run.refresh_from_db()
    assert run.error == "Unprocessable: the model is not there"


def test_a_job_whose_cursor_does_not_advance_fails() -> None:
    run = queue_run()

    def stand_still(*, now: datetime, batch: Batch) -> BatchReport:
        return BatchReport(examined=1, changed=1, cursor="here")

    run_waiting(describe_job(stand_still), clock=clock)

    run.refresh_from_db()
    assert run.error == "CursorStuck: describe did not move its cursor"


def test_an_immediate_run_first_finishes_an_abandoned_one(account: Account) -> None:
    make_agents(account, "ab")
    left = running_run(lease=EXPIRED, cursor="a")

    run = run_at_once(describe_job(), JobRun(job="describe"), clock=clock)

    left.refresh_from_db()
    assert (left.status, run.status) == ("completed", "completed")
    assert descriptions() == {"a": "x", "b": "xx"}


def test_an_immediate_run_is_refused_while_another_is_running() -> None:
    running_run(lease=LIVE)

    with pytest.raises(Conflict, match="another run of describe is on"):
        run_at_once(describe_job(), JobRun(job="describe"), clock=clock)

    assert JobRun.objects.count() == 1


def test_a_run_reports_each_of_its_batches(account: Account) -> None:
    make_agents(account, "abc")
    reports: list[BatchReport] = []

    run_at_once(describe_job(), JobRun(job="describe"), clock=clock, on_progress=reports.append)

    assert [report.examined for report in reports] == [2, 1]


def test_only_one_scheduled_run_of_a_job_waits() -> None:
    schedule_run("describe")
    schedule_run("describe")

    assert JobRun.objects.scheduled("describe").queued().count() == 1


def test_a_scheduled_run_that_found_nothing_replaces_the_one_before(account: Account) -> None:
    for agents in ("", "a", ""):
        make_agents(account, agents)
        schedule_run("describe")
        run_waiting(describe_job(), clock=clock)

    idle, busy = JobRun.objects.scheduled("describe").found_nothing(), JobRun.objects.filter(examined__gt=0)
    assert (idle.count(), busy.count()) == (1, 2)


def test_a_requested_run_is_kept_even_if_it_found_nothing() -> None:
    for _ in range(2):
        queue_run()
        run_waiting(describe_job(), clock=clock)

    assert JobRun.objects.found_nothing().count() == 2


@pytest.mark.parametrize(
    ("last_status", "last_age", "is_queued"),
    [
        ("completed", timedelta(minutes=30), False),
        ("completed", timedelta(minutes=90), True),
        ("failed", timedelta(minutes=5), False),
        ("failed", timedelta(minutes=30), True),
        ("queued", timedelta(minutes=90), False),
    ],
)
def test_an_overdue_job_is_queued_unless_a_run_is_recent_or_waiting(
    last_status: str, last_age: timedelta, is_queued: bool
) -> None:
    now = datetime.now(UTC)
    last = JobRun.objects.create(job="describe", requested_by=SCHEDULE, status=last_status)
    JobRun.objects.filter(id=last.id).update(created_at=now - last_age)

    schedule_overdue_run("describe", due=now - timedelta(hours=1), now=now)

    assert JobRun.objects.exclude(id=last.id).queued().exists() == is_queued


def test_a_run_is_logged_with_its_figures(account: Account, caplog: pytest.LogCaptureFixture) -> None:
    make_agents(account, "abc")
    queue_run()

    with caplog.at_level(logging.INFO):
        run_waiting(describe_job(), clock=clock)

    assert "done: 3 examined, 3 changed, 0 failed" in caplog.text
