"""Large accounts get a vector index, keep it while they shrink a little, and their searches use it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Event

import numpy as np
import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from memory.maintenance import JOBS, Batch, BatchReport
from memory.maintenance.embedding_jobs import vector_indexes
from memory.maintenance.runner import run_at_once
from memory.models import Account, JobRun, Memory, Vector
from memory.owner import Owner
from memory.retrieval.queries import Mode
from memory.services.embedding import account_indexes
from memory.services.embedding.account_indexes import AccountVectors, find_index_changes
from memory.services.embedding.vector_index import BUILD_LOCK_ID, Hnsw, create_statement, drop_indexes
from tests.concurrency import PATIENCE_SECONDS, over_own_connection, wait_until
from tests.memory.crowds import analyze
from tests.memory.episodes import NOW
from tests.memory.maintenance.jobs import clock
from tests.memory.nested_vectors import (
    MODEL,
    PLAIN_MODEL,
    Nested,
    Shelf,
    fill_shelf,
    find_nearest,
    gather_nearest,
    indexes_of_accounts,
    share_found,
    tables_read_through,
)
from tests.memory.partitions import account_beside

pytestmark = pytest.mark.django_db(transaction=True)

WIDTH = 384
LARGE = 6_000
QUESTIONS = 20
BATCH = Batch(size=1)
BUILDING = """
SELECT EXISTS (
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'active' AND starts_with(query, 'CREATE INDEX')
)"""


@pytest.fixture
def shelf(large_from_100: None, owner: Owner) -> Shelf:
    """An agent with 120 memories."""
    return fill_shelf(owner, Nested(WIDTH).draw(120))


def vectors_of(owner: Owner, *, model: str = MODEL) -> AccountVectors:
    return AccountVectors(account_id=owner.account_id, model=model, width=WIDTH)


def test_a_large_account_gets_its_index_once(shelf: Shelf, stranger: Account) -> None:
    fill_shelf(Owner(account_id=stranger.id, agent_id="small"), Nested(WIDTH).draw(20))

    first, second = vector_indexes(now=NOW, batch=BATCH), vector_indexes(now=NOW, batch=BATCH)

    assert indexes_of_accounts() == [vectors_of(shelf.owner).name_prefix]
    assert (first.changed, first.cursor, second.changed) == (1, "", 0)


def test_the_index_of_an_account_links_each_vector_to_the_best_of_200(shelf: Shelf) -> None:
    """Some questions find none of their nearest among 85,000 texts with pgvector's default, 64."""
    vector_indexes(now=NOW, batch=BATCH)

    [name] = indexes_of_accounts()
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = %s", [name])
        assert cursor.fetchone() == (["m=16", "ef_construction=200"],)


def test_each_model_and_account_gets_its_own_index_in_one_batch(shelf: Shelf, stranger: Account) -> None:
    other = Owner(account_id=stranger.id, agent_id="assistant")
    fill_shelf(other, Nested(WIDTH).draw(120), model=PLAIN_MODEL)

    report = vector_indexes(now=NOW, batch=BATCH)

    assert (report.examined, report.changed, report.cursor) == (2, 2, "")
    assert set(indexes_of_accounts()) == {
        vectors_of(shelf.owner).name_prefix,
        vectors_of(other, model=PLAIN_MODEL).name_prefix,
    }


def test_a_run_without_an_index_to_build_reports_no_change(shelf: Shelf) -> None:
    vector_indexes(now=NOW, batch=BATCH)

    assert vector_indexes(now=NOW, batch=BATCH) == BatchReport(examined=0, changed=0)


@pytest.fixture
def one_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for the index of one account in each partition."""
    monkeypatch.setattr(account_indexes, "MAX_INDEXES", 1)


@pytest.mark.usefixtures("one_index")
@pytest.mark.parametrize(("rows", "moves"), [(140, False), (160, True)])
def test_the_last_index_slot_moves_to_an_account_that_is_a_quarter_larger(
    shelf: Shelf, account: Account, rows: int, moves: bool
) -> None:
    vector_indexes(now=NOW, batch=BATCH)
    other = Owner(account_id=account_beside(account, in_same_partition=True).id, agent_id="assistant")
    fill_shelf(other, Nested(WIDTH).draw(rows))

    vector_indexes(now=NOW, batch=BATCH)

    assert indexes_of_accounts() == [vectors_of(other if moves else shelf.owner).name_prefix]


@pytest.mark.usefixtures("one_index")
def test_the_limit_is_that_of_each_partition(shelf: Shelf, account: Account) -> None:
    other = Owner(account_id=account_beside(account, in_same_partition=False).id, agent_id="assistant")
    fill_shelf(other, Nested(WIDTH).draw(150))

    vector_indexes(now=NOW, batch=BATCH)

    assert set(indexes_of_accounts()) == {vectors_of(shelf.owner).name_prefix, vectors_of(other).name_prefix}


@pytest.mark.usefixtures("one_index")
def test_a_run_for_one_account_builds_no_index_beyond_the_limit(shelf: Shelf, account: Account) -> None:
    other = account_beside(account, in_same_partition=True)
    fill_shelf(Owner(account_id=other.id, agent_id="assistant"), Nested(WIDTH).draw(150))

    report = vector_indexes(now=NOW, batch=replace(BATCH, account_id=shelf.owner.account_id))

    assert (report.examined, indexes_of_accounts()) == (0, [])


def test_a_run_for_one_account_leaves_others_alone(shelf: Shelf, stranger: Account) -> None:
    vector_indexes(now=NOW, batch=BATCH)
    Vector.objects.all().delete()

    vector_indexes(now=NOW, batch=replace(BATCH, account_id=stranger.id))
    kept = indexes_of_accounts()
    vector_indexes(now=NOW, batch=replace(BATCH, account_id=shelf.owner.account_id))

    assert (len(kept), indexes_of_accounts()) == (1, [])


@pytest.mark.parametrize(("left", "indexes"), [(60, 1), (40, 0)])
def test_an_index_is_dropped_after_its_account_shrinks_by_half(shelf: Shelf, left: int, indexes: int) -> None:
    vector_indexes(now=NOW, batch=BATCH)
    Memory.objects.filter(id__in=[memory.id for memory in shelf.memories[left:]]).update(archived=True)

    vector_indexes(now=NOW, batch=BATCH)

    assert len(indexes_of_accounts()) == indexes


def test_a_dry_run_counts_the_indexes_to_build_and_builds_none(shelf: Shelf) -> None:
    report = vector_indexes(now=NOW, batch=replace(BATCH, dry_run=True))

    assert (report.examined, report.changed, indexes_of_accounts()) == (1, 1, [])


def test_an_invalid_index_of_a_killed_build_is_rebuilt_or_dropped(shelf: Shelf, stranger: Account) -> None:
    leave_invalid(vectors_of(shelf.owner))
    leave_invalid(vectors_of(Owner(account_id=stranger.id)))
    invalid = gather_nearest(shelf.owner, shelf.vectors[0]).candidates

    vector_indexes(now=NOW, batch=BATCH)

    assert invalid
    assert indexes_of_accounts() == [vectors_of(shelf.owner).name_prefix]
    assert find_index_changes() == []


def leave_invalid(vectors: AccountVectors) -> None:
    with connection.cursor() as cursor:
        [partition] = vectors.partitions()
        cursor.execute(create_statement(vectors.name_prefix, partition, vectors, Hnsw()).as_string(cursor.connection))
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [vectors.name_prefix])


def test_a_run_builds_no_index_while_another_build_is_running(shelf: Shelf) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [BUILD_LOCK_ID])
        try:
            waited = vector_indexes(now=NOW, batch=BATCH)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [BUILD_LOCK_ID])

    assert (waited.changed, waited.failed, indexes_of_accounts()) == (0, 0, [])


def test_a_build_that_lost_its_lease_is_cancelled_and_left_to_the_next_run(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_indexes, "RENEW_SECONDS", 0.0)
    lost = Event()

    def lose() -> None:
        if is_building():
            lost.set()
            raise InterruptedError

    with ThreadPoolExecutor(1) as others:
        with transaction.atomic():
            write_nothing()
            running = others.submit(
                over_own_connection, lambda: vector_indexes(now=NOW, batch=replace(BATCH, renew=lose))
            )
            assert lost.wait(PATIENCE_SECONDS)
            # the build waits for this transaction: it ends by being cancelled, or not at all
            wait_until(lambda: not is_building())
        with pytest.raises(InterruptedError):
            running.result(PATIENCE_SECONDS)

    given_up = indexes_of_accounts()
    vector_indexes(now=NOW, batch=BATCH)
    assert (given_up, len(indexes_of_accounts()), find_index_changes()) == ([], 1, [])


def is_building() -> bool:
    with connection.cursor() as cursor:
        # else a transaction sees one state of it
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(BUILDING)
        return bool(cursor.fetchone()[0])


def write_nothing() -> None:
    """Lock all partitions as a writer does: builds have to wait for the end of this transaction."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE memory_vectors IN ROW EXCLUSIVE MODE")


def test_the_runner_renews_the_lease_of_a_batch_that_asks_it_to(account: Account) -> None:
    leases = []

    def slow(*, now: object, batch: Batch) -> object:
        JobRun.objects.update(lease_until=Now() + timedelta(milliseconds=1))
        batch.renew()
        leases.append(JobRun.objects.filter(lease_until__gt=Now() + timedelta(seconds=5)).count())
        return vector_indexes(now=NOW, batch=replace(batch, dry_run=True))

    done = run_at_once(replace(JOBS["vector_indexes"], run=slow), JobRun(job="vector_indexes"), clock=clock)  # type: ignore[arg-type]

    assert (leases, done.status) == ([1], JobRun.Status.COMPLETED)


@pytest.fixture
def large(owner: Owner) -> Iterator[Shelf]:
    """An indexed owner of 6,000 memories."""
    shelf = fill_shelf(owner, Nested(WIDTH).draw(LARGE))
    analyze()
    vector_indexes(now=NOW, batch=BATCH)
    yield shelf
    drop_indexes(indexes_of_accounts())


@pytest.mark.slow
def test_a_search_of_an_indexed_owner_returns_the_nearest_memories(large: Shelf) -> None:
    [name], questions = indexes_of_accounts(), Nested(WIDTH, seed=9).draw(QUESTIONS)

    for mode in Mode:
        shares = [share_found(find_nearest(large.owner, each, mode=mode), large.nearest(each)) for each in questions]
        assert np.mean(shares) >= (0.9 if mode is Mode.BROAD else 0.98), mode
    for kind, kept in (("goal", 0.01), ("episode", 0.1)):
        wanted = {memory.id for memory in large.memories if memory.kind == kind}
        assert len(wanted) == kept * LARGE
        for each in questions[:3]:
            found = find_nearest(large.owner, each, kinds=(kind,))
            assert set(found) == large.nearest(each, lambda memory, kind=kind: memory.kind == kind)  # type: ignore[misc]
    assert scans_of(name) >= QUESTIONS * len(Mode)
    assert "memory_vectors" not in tables_read_through(large.owner, questions[0])


def scans_of(index: str) -> int:
    """Return how often the index has been read."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
        cursor.execute("SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = %s", [index])
        return int(cursor.fetchone()[0])
