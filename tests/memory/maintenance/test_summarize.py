"""The job that summarizes: batch by batch to the end of what is due, killed in the middle, and without a model."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from memory import conf
from memory.maintenance import JOBS, Batch
from memory.maintenance.conversation_jobs import summarize
from memory.maintenance.runner import run_at_once
from memory.models import Account, Conversation, JobRun, Link, Memory
from memory.owner import Owner
from memory.services.conversations.queue import SUMMARIES
from memory.services.summaries.summarize import request_summary
from memory.tasks import sweep_jobs
from memory_project.celery import app
from tests.concurrency import is_lock_awaited, wait_until
from tests.embedding_server import MODEL as EMBEDDING_MODEL
from tests.embedding_server import WIDTH
from tests.language_model_server import KEY, MODEL, Asked, LanguageModelServer
from tests.memory.episodes import NOW
from tests.memory.maintenance.jobs import clock
from tests.memory.maintenance.workers import Worker, worker_started
from tests.memory.summaries import conversation, covered, progress, summaries, superseding
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

LEASE_SECONDS = 15


def run_summarize(account: Account | None = None) -> JobRun:
    return run_at_once(JOBS["summarize"], JobRun(job="summarize", account=account), clock=clock)


def test_all_due_conversations_are_summarized_in_one_run(owner: Owner) -> None:
    for number in range(2 * conf.SUMMARY_BATCH + 1):
        talk(owner, 50, conversation_id=f"c{number}")

    run = run_summarize()

    due = 2 * conf.SUMMARY_BATCH + 1
    assert (run.status, run.examined, run.changed, run.failed) == ("completed", due, due, 0)
    assert not Conversation.objects.filter(summarize_after__isnull=False).exists()


def test_a_run_continues_until_all_parts_are_summarized(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 1_000)
    talk(owner, 100)
    request_summary(owner, "c1", now=NOW)

    run = run_summarize()

    assert (run.status, run.examined) == ("completed", len(summaries()))
    assert covered(summaries()[-1]) == (0, 99, 100)


def test_a_dry_run_counts_and_changes_nothing(owner: Owner, stranger: Account) -> None:
    talk(owner, 50)
    talk(Owner(account_id=stranger.id), 50)

    report = summarize(now=NOW, batch=Batch(size=10, dry_run=True))

    assert (report.examined, report.changed, report.cursor) == (2, 2, "")
    assert conversation_counts() == [0, 0]


def conversation_counts() -> list[int]:
    return list(Conversation.objects.order_by("id").values_list("summarized_count", flat=True))


def test_a_run_for_an_account_leaves_the_others(owner: Owner, stranger: Account) -> None:
    talk(owner, 50)
    talk(Owner(account_id=stranger.id), 50)

    run_summarize(stranger)

    assert conversation_counts() == [0, 40]


def test_a_run_stops_when_the_model_is_down(owner: Owner, language_model_server: LanguageModelServer) -> None:
    for number in range(2 * conf.SUMMARY_BATCH):
        talk(owner, 50, conversation_id=f"c{number}")
    language_model_server.fail(401)

    run = run_summarize()

    assert (run.status, run.examined, run.changed, run.failed) == ("incomplete", conf.SUMMARY_BATCH, 0, 4)
    assert len(language_model_server.requests) == conf.SUMMARY_BATCH


@pytest.fixture
def _empty_queue() -> Iterator[None]:
    app.control.purge()
    yield
    app.control.purge()


def start_worker(stack: ExitStack, folder: Path, name: str) -> Worker:
    """Start a worker on the servers of this test, with short leases."""
    variables = {
        "SUMMARY_MODEL": MODEL,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": str(settings.OPENAI_BASE_URL),
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_MODEL": EMBEDDING_MODEL,
        "EMBEDDING_DIMENSIONS": str(WIDTH),
        "MEMORY_SUMMARY_LEASE_SECONDS": str(LEASE_SECONDS),
        "MEMORY_JOB_LEASE_SECONDS": "2",
    }
    return stack.enter_context(worker_started(folder, name, **variables))


def let_the_lease_run_out() -> None:
    Conversation.objects.update(summary_lease_until=timezone.now())


def is_due() -> bool:
    return SUMMARIES.due_rows(timezone.now()).exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_empty_queue")
def test_turns_of_a_worker_killed_during_a_model_call_are_summarized_by_another(
    owner: Owner, language_model_server: LanguageModelServer, tmp_path: Path
) -> None:
    killed = Event()

    def think(asked: Asked) -> Any:
        killed.wait(30)
        return language_model_server.answer_well(asked)

    language_model_server.answer = think
    talk(owner, 50, now=timezone.now())
    with ExitStack() as stack:
        doomed = start_worker(stack, tmp_path, "doomed")
        app.send_task("memory.tasks.run_scheduled_job", ("summarize",))
        wait_until(lambda: language_model_server.requests)
        talk(owner, 3, start=50, now=timezone.now())
        doomed.kill()
        killed.set()

        assert (progress(), summaries(), conversation().summary_attempts) == ((53, 0, 0), [], 1)
        wait_until(JobRun.objects.abandoned().exists)
        let_the_lease_run_out()
        wait_until(is_due)
        start_worker(stack, tmp_path, "heir")
        sweep_jobs()
        wait_until(lambda: progress() == (53, 43, 43))

    assert [covered(row) for row in summaries()] == [(0, 42, 43)]
    assert (conversation().summary_attempts, conversation().summary_lease_until) == (0, None)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_empty_queue", "language_model_server")
def test_a_worker_killed_while_it_stores_leaves_nothing_half_stored(owner: Owner, tmp_path: Path) -> None:
    talk(owner, 50, now=timezone.now())
    run_job_here()
    (first,) = summaries()
    talk(owner, 50, start=50, now=timezone.now())
    with ExitStack() as stack:
        with transaction.atomic(), connection.cursor() as cursor:
            # what links the new summary to the old one, after all else is written
            cursor.execute(f"LOCK TABLE {Link._meta.db_table} IN ACCESS EXCLUSIVE MODE")
            doomed = start_worker(stack, tmp_path, "doomed")
            app.send_task("memory.tasks.run_scheduled_job", ("summarize",))
            wait_until(is_lock_awaited)
            doomed.kill()

        assert progress() == (100, 40, 40)
        assert [(row.id, row.archived) for row in summaries()] == [(first.id, False)]
        assert not Memory.objects.filter(embed_after__isnull=False, kind="episode").exists()
        let_the_lease_run_out()
        wait_until(is_due)
        run_job_here()

    assert progress() == (100, 90, 90)
    assert [covered(row) for row in summaries()] == [(0, 39, 40), (0, 89, 90)]
    assert superseding() == [(summaries()[1].id, first.id)]


def run_job_here() -> None:
    summarize(now=timezone.now(), batch=Batch(size=4))
