"""The job that compresses structured turns: stage by stage, batch by batch, killed in the middle, without a model."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from memory import conf
from memory.extraction.turn_slots import Action, Observation, Slots
from memory.maintenance import Batch
from memory.maintenance.conversation_jobs import compress
from memory.models import Account, JobRun, Link, Memory, TurnRecord
from memory.owner import Owner
from memory_project.celery import app
from tests.api_client import ServiceClient
from tests.concurrency import is_lock_awaited, wait_until
from tests.embedding_server import MODEL as EMBEDDING_MODEL
from tests.embedding_server import WIDTH
from tests.language_model_server import LanguageModelServer
from tests.memory import compressed
from tests.memory.compressed import LATER, MUCH_LATER, WEEK, episodes, levels, work
from tests.memory.maintenance.workers import Worker, worker_started
from tests.memory.records import add_record

EVENING = "The lamps in the hall were lit, and it was a fine evening with a little wind from the sea."
LEFT = Action(text="Went home.")
"""Nothing to ask a model about."""

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


def run_batches(size: int, *, now: datetime = LATER) -> list[str]:
    """The cursors of a whole run."""
    cursors = [""]
    while following := compress(now=now, batch=Batch(size=size, cursor=cursors[-1])).cursor:
        cursors.append(following)
    return cursors


def test_a_run_goes_through_all_stages_batch_by_batch(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)
    for chat in range(3):
        work(owner, 1, conversation_id=f"chat-{chat}")

    cursors = run_batches(2)

    assert [cursor.partition(":")[0] for cursor in cursors] == ["", "slots", "merge", "merge", "archive"]
    assert len(episodes()) == 3


def test_the_latest_records_are_not_compressed(owner: Owner) -> None:
    work(owner, conf.COMPRESS_KEEP_RECORDS + 2)

    compressed.compress(MUCH_LATER)

    assert levels() == [3, 3] + [0] * conf.COMPRESS_KEEP_RECORDS


def test_a_run_for_an_account_leaves_the_others(
    owner: Owner, stranger: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)
    work(owner, 1)
    work(Owner(account_id=stranger.id, agent_id="assistant"), 1, conversation_id="theirs")

    compressed.compress(MUCH_LATER, account=stranger)

    assert (levels(), levels("theirs")) == ([0], [3])


def test_episodes_are_archived_even_if_the_model_is_down(
    owner: Owner, language_model_server: LanguageModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)
    for _ in range(2):
        add_record(owner, "short", slots=Slots(observation=Observation(text=EVENING), action=LEFT))
    compressed.compress()
    work(owner, 25)
    language_model_server.fail(401)

    run = compressed.compress(MUCH_LATER)

    assert (run.status, run.failed, run.figures["archived"]) == ("incomplete", 20, 1)
    assert (levels("short"), set(levels())) == ([3, 3], {0})


def test_figures_of_a_run_are_returned_over_http(api: ServiceClient, account: Account) -> None:
    run = JobRun.objects.create(account=account, job="compress", figures={"merged": 3})

    assert api.get(f"/jobs/{run.id}").json()["figures"] == {"merged": 3}


@pytest.fixture
def _empty_queue() -> Iterator[None]:
    app.control.purge()
    yield
    app.control.purge()


def start_worker(stack: ExitStack, folder: Path, name: str) -> Worker:
    """Start a worker on the servers of this test, with a short lease, for which no record is too fresh."""
    variables = {
        "OPENAI_API_KEY": str(settings.OPENAI_API_KEY),
        "OPENAI_BASE_URL": str(settings.OPENAI_BASE_URL),
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_MODEL": EMBEDDING_MODEL,
        "EMBEDDING_DIMENSIONS": str(WIDTH),
        "MEMORY_COMPRESS_KEEP_RECORDS": "0",
        "MEMORY_JOB_LEASE_SECONDS": "2",
    }
    return stack.enter_context(worker_started(folder, name, **variables))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_empty_queue")
def test_a_worker_killed_while_storing_leaves_no_partial_rows_and_another_continues(
    owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)
    work(owner, 2, now=timezone.now() - 4 * WEEK)
    before = Memory.objects.count()
    with ExitStack() as stack:
        with transaction.atomic(), connection.cursor() as cursor:
            # what links the new rows to the old ones, after they are written
            cursor.execute(f"LOCK TABLE {Link._meta.db_table} IN ACCESS EXCLUSIVE MODE")
            doomed = start_worker(stack, tmp_path, "doomed")
            app.send_task("memory.tasks.run_scheduled_job", ("compress",))
            wait_until(is_lock_awaited)
            doomed.kill()

        assert (levels(), Memory.objects.count(), Memory.objects.filter(archived=True).count()) == ([0, 0], before, 0)
    run_batches(2, now=timezone.now())

    assert levels() == [2, 2]
    assert [(episode.first_number, episode.last_number) for episode in episodes()] == [(0, 1)]
    # six shorter slots, and an episode
    assert Memory.objects.count() == before + 7
    assert set(TurnRecord.objects.values_list("compress_attempts", flat=True)) == {0}
