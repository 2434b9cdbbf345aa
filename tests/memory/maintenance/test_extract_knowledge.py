"""The job `extract_knowledge`: what a run does, and what a killed worker leaves to the next one."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from memory.maintenance import JOBS, Batch
from memory.maintenance.conversation_jobs import extract_knowledge
from memory.maintenance.runner import run_at_once
from memory.models import Account, Conversation, Fact, FactVersion, JobRun, Link, Memory
from memory.owner import Owner
from memory.services.conversations.queue import EXTRACTION
from memory.tasks import sweep_jobs
from memory_project.celery import app
from tests.concurrency import is_lock_awaited, wait_until
from tests.embedding_server import MODEL as EMBEDDING_MODEL
from tests.embedding_server import WIDTH
from tests.language_model_server import KEY, MODEL, Asked, LanguageModelServer
from tests.memory.episodes import NOW
from tests.memory.knowledge import answer_with, claims, entities, extracted, fact_json, links, person, say_sentences
from tests.memory.maintenance.jobs import clock
from tests.memory.maintenance.workers import Worker, worker_started

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

LISBON = answer_with(
    entities=[person("Ana", 0)],
    facts=[fact_json("Ana lives in Lisbon", 0, entities=["Ana"])],
    preferences=[{"topic": "Lisbon", "value": "lives there", "fact": 1, "evidence": [0]}],
)


def test_a_dry_run_counts_and_changes_nothing(owner: Owner, stranger: Account) -> None:
    say_sentences(owner, "I live in Lisbon.")
    say_sentences(Owner(account_id=stranger.id), "I live in Lisbon.")

    report = extract_knowledge(now=NOW, batch=Batch(size=10, dry_run=True))

    assert (report.examined, report.changed, claims()) == (2, 2, [])


@pytest.mark.usefixtures("language_model_server")
def test_a_run_for_an_account_leaves_the_others(owner: Owner, stranger: Account) -> None:
    say_sentences(owner, "I live in Lisbon.")
    say_sentences(Owner(account_id=stranger.id), "I live in Lisbon.")

    extract_knowledge(now=NOW, batch=Batch(size=10, account_id=stranger.id))

    done = Conversation.objects.filter(extracted_count=1)
    assert [conversation.account_id for conversation in done] == [stranger.id]


def test_a_run_with_an_item_that_failed_is_incomplete_and_accounts_for_all_of_them(owner: Owner) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memories ADD CHECK (kind <> 'entity' OR text NOT LIKE '%Poison%') NOT VALID")
    say_sentences(owner, "I live in Poison.", "I work for Grundfos.")
    say_sentences(owner, "I live in Lisbon.", conversation_id="c2")

    run = run_at_once(JOBS["extract_knowledge"], JobRun(job="extract_knowledge"), clock=clock)

    assert (run.status, run.examined, run.changed, run.failed) == ("incomplete", 2, 1, 1)
    fates = [run.figures[fate] for fate in ("learnt", "merged", "failed")]
    # of Ana, three things and what she has to do with them: one of the things, and its two, failed
    assert (run.figures["in"], fates) == (11, [7, 1, 3])
    assert run.figures["facts_learnt"] == Fact.objects.count() == 2


@pytest.fixture
def _empty_queue() -> Iterator[None]:
    app.control.purge()
    yield
    app.control.purge()


def start_worker(stack: ExitStack, folder: Path, name: str) -> Worker:
    """Start a worker on the servers of this test, with short leases."""
    variables = {
        "EXTRACTION_MODEL": MODEL,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": str(settings.OPENAI_BASE_URL),
        "EMBEDDING_PROVIDER": "openai",
        "EMBEDDING_MODEL": EMBEDDING_MODEL,
        "EMBEDDING_DIMENSIONS": str(WIDTH),
        "MEMORY_EXTRACTION_LEASE_SECONDS": "15",
        "MEMORY_JOB_LEASE_SECONDS": "2",
    }
    return stack.enter_context(worker_started(folder, name, **variables))


def let_the_lease_run_out() -> None:
    Conversation.objects.update(extract_lease_until=timezone.now())


def is_due() -> bool:
    return EXTRACTION.due_rows(timezone.now()).exists()


def known() -> tuple[list[str], dict[str, str], int, int, int]:
    """Claims, entities, evidence, beliefs and what is queued for an embedding."""
    return claims(), entities(), len(links("DERIVED_FROM")), FactVersion.objects.count(), Memory.objects.count()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_empty_queue")
def test_a_worker_killed_while_the_model_thinks_leaves_the_turns_to_another(
    owner: Owner, language_model_server: LanguageModelServer, tmp_path: Path
) -> None:
    killed = Event()
    language_model_server.write = LISBON

    def think(asked: Asked) -> Any:
        killed.wait(30)
        return language_model_server.answer_well(asked)

    language_model_server.answer = think
    say_sentences(owner, "Ana here, I live in Lisbon.")
    with ExitStack() as stack:
        doomed = start_worker(stack, tmp_path, "doomed")
        app.send_task("memory.tasks.run_scheduled_job", ("extract_knowledge",))
        wait_until(lambda: language_model_server.requests)
        doomed.kill()
        killed.set()

        assert (extracted(), claims()) == ((1, 0), [])
        wait_until(JobRun.objects.abandoned().exists)
        let_the_lease_run_out()
        wait_until(is_due)
        start_worker(stack, tmp_path, "heir")
        sweep_jobs()
        wait_until(lambda: extracted() == (1, 1))

    assert known() == (["Ana lives in Lisbon"], {"Ana": "person"}, 1, 1, 3)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_empty_queue")
def test_a_worker_killed_while_it_stores_leaves_nothing_half_stored(
    owner: Owner, language_model_server: LanguageModelServer, tmp_path: Path
) -> None:
    language_model_server.write = LISBON
    say_sentences(owner, "Ana here, I live in Lisbon.")
    with ExitStack() as stack:
        with transaction.atomic(), connection.cursor() as cursor:
            # entities are stored by then, and what they are linked to is not
            cursor.execute(f"LOCK TABLE {Link._meta.db_table} IN ACCESS EXCLUSIVE MODE")
            doomed = start_worker(stack, tmp_path, "doomed")
            app.send_task("memory.tasks.run_scheduled_job", ("extract_knowledge",))
            wait_until(is_lock_awaited)
            doomed.kill()

        assert (extracted(), claims(), entities()) == ((1, 0), [], {})
        let_the_lease_run_out()
        wait_until(is_due)
        extract_knowledge(now=timezone.now(), batch=Batch(size=4))

    assert known() == (["Ana lives in Lisbon"], {"Ana": "person"}, 1, 1, 3)
