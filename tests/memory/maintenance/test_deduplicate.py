"""The job that merges duplicates: what is new since it ran, all accounts, dry runs, what fails, a killed worker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.db.models.functions import Now

from memory.maintenance import Batch, find_job
from memory.maintenance.memory_jobs import deduplicate
from memory.maintenance.runner import run_at_once
from memory.models import Account, Fact, JobRun, Kind, Link, Memory, Vector
from memory.models.statements import binary_cursor
from memory.owner import Owner
from memory.services.duplicates.deduplicate import (
    find_similar_pairs,
    read_fresh_memories,
    store_missing_hashes,
)
from memory.services.memories.store import ClientVector, store_memories
from tests.memory.duplicates import live, merged, run
from tests.memory.duplicates import test_model as test_model
from tests.memory.episodes import MODEL, NOTHING, NOW, direction
from tests.memory.facts import know
from tests.memory.gatherings import Sent, rows_read
from tests.memory.maintenance.jobs import clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("test_model")]

CLAIMS = ("Ana lives in Berlin.", "Ana resides in Berlin.", "Ana also lives in Berlin.", "Ana just lives in Berlin.")


def know_all(owner: Owner) -> None:
    for claim in CLAIMS:
        know(owner, claim, angle=0.0)


def run_job(account: Account | None = None, **fields: Any) -> JobRun:
    return run_at_once(find_job("deduplicate"), JobRun(job="deduplicate", account=account, **fields), clock=clock)


@contextmanager
def merges_failing_after(number: int) -> Iterator[None]:
    """Links that say who was merged are refused by the database, but the first ones."""
    made = 0

    def refuse(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        nonlocal made
        if "INSERT INTO memory_links" in sql:
            made += 1
            if made > number:
                raise DatabaseError("the disk is full")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        yield


def test_a_run_records_what_it_merged(owner: Owner, account: Account) -> None:
    know_all(owner)

    done = run_job()

    assert (done.status, done.examined, done.changed) == (JobRun.Status.COMPLETED, 4, 3)
    assert done.figures == {"fact_merged": 3, "links_made": 3}
    assert live() == [CLAIMS[0]]


def test_only_facts_newer_than_the_last_run_are_examined(owner: Owner) -> None:
    know(owner, CLAIMS[0], angle=0.0)
    know(owner, "The mat is red.", angle=1.5)
    Vector.objects.update(created_at=Now() - timedelta(days=2))
    run_job()
    know(owner, CLAIMS[1], angle=0.0)

    done = run_job()

    assert (done.examined, done.changed) == (1, 1)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"dry_run": True}, id="a dry run"),
        pytest.param({"status": JobRun.Status.INCOMPLETE}, id="one that failed in part"),
        pytest.param({"account": True}, id="one of an account alone"),
    ],
)
def test_runs_of_other_scopes_do_not_limit_the_facts_examined(
    owner: Owner, account: Account, fields: dict[str, Any]
) -> None:
    former = {"status": JobRun.Status.COMPLETED, "dry_run": False, **fields}
    former |= {"account": account} if "account" in fields else {}
    JobRun.objects.create(job="deduplicate", started_at=NOW + timedelta(days=365), **former)
    know_all(owner)

    assert run_job().examined == 4


def test_a_dry_run_counts_and_changes_nothing(owner: Owner) -> None:
    know_all(owner)

    reports = run(size=2, dry_run=True)

    assert (sum(report.examined for report in reports), sum(report.changed for report in reports)) == (4, 3)
    assert live() == list(CLAIMS)
    assert not Link.objects.exists()


def test_a_run_of_an_account_leaves_the_others(owner: Owner, account: Account, stranger: Account) -> None:
    for each in (owner, replace(owner, account_id=stranger.id)):
        know_all(each)

    assert merged(account_id=account.id, size=3) == 3
    assert Memory.objects.filter(account=stranger, archived=True).count() == 0
    assert merged(size=3) == 3


def test_small_batches_go_through_all_accounts(owner: Owner, stranger: Account) -> None:
    for each in (owner, replace(owner, account_id=stranger.id)):
        know_all(each)

    reports = run(size=1)

    # what was merged before its turn is not looked at
    assert sum(report.examined for report in reports) < 8
    assert sum(report.changed for report in reports) == 6


def test_a_failed_merge_changes_nothing_and_leaves_the_run_incomplete(owner: Owner) -> None:
    know_all(owner)

    with merges_failing_after(1):
        done = run_job()

    assert done.status == JobRun.Status.INCOMPLETE
    assert done.changed == 1
    assert done.failed > 0
    assert len(live()) == 3
    assert run_job().changed == 2


def test_a_killed_batch_is_done_again_without_doubling(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    know_all(owner)

    def kill() -> None:
        if Link.objects.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deduplicate(now=NOW, batch=Batch(size=10, renew=kill))

    assert len(live()) == 3
    assert merged() == 2
    assert Link.objects.count() == 3


def test_a_duplicate_is_found_among_many_facts_by_one_statement(owner: Owner, django_assert_num_queries: Any) -> None:
    for number in range(12):
        know(owner, f"Room {number} is red.", angle=0.5 * number)

    # former runs, rows without a text hash, rows, the search
    with django_assert_num_queries(4):
        deduplicate(now=NOW, batch=Batch(size=50, account_id=owner.account_id))
    know(owner, "Room 7 is really red.", angle=3.5)

    assert merged() == 1


def test_duplicates_stored_before_text_hashes_are_found(owner: Owner) -> None:
    know_all(owner)
    Memory.objects.update(wording=None)

    assert (run_job(dry_run=True).changed, run_job().changed) == (3, 3)
    assert not Memory.objects.filter(wording=None).exists()


@pytest.mark.slow
def test_a_search_reads_only_similarly_phrased_memories_among_thousands(owner: Owner) -> None:
    """All memories belong to one agent, so that only their texts tell them apart. Their vectors are compared."""
    claims = [f"Room {number} is red." for number in range(3_000)] + ["Room 7 is really red."]
    rows = [Fact(kind=Kind.FACT, text=claim, event_time=NOW, recorded_at=NOW) for claim in claims]
    own = {row.id: ClientVector(model=MODEL, vector=direction(0.0)) for row in rows}
    store_memories(owner, rows, embedded=NOTHING, own=own, now=NOW)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories, memory_vectors")
    asked = read_fresh_memories(Batch(size=5), since=None)

    with Sent() as sent:
        find_similar_pairs(asked)

    # itself when it is asked for, then itself again among those with similar texts
    assert rows_read(sent, of=("memories",), cursor_for=binary_cursor) <= 2 * len(asked)

    with Sent() as sent:
        assert store_missing_hashes(5, account_id=None) == 0
    assert rows_read(sent, of=("memories",), cursor_for=connection.cursor) == 0
