"""Rows of one term are merged into one while other processes append rows, and their sum never changes."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest

from memory.maintenance import JOBS, Batch, BatchReport
from memory.maintenance.memory_jobs import recall_statistics
from memory.models import Account, Memory, TermCount
from memory.models.writer import delete_memory_rows
from memory.owner import Owner
from memory.services.accounts.register import reindex_texts, set_language
from tests.concurrency import PATIENCE_SECONDS, over_own_connection
from tests.memory.episodes import NOW, draft, store
from tests.memory.words import RECOUNT, SUMS, found_by_words, read_rows

pytestmark = pytest.mark.django_db

LONG = "w" * 300


def fold(*, size: int = 3, **asked: Any) -> list[BatchReport]:
    """The reports of all batches of a run."""
    reports = [recall_statistics(now=NOW, batch=Batch(size=size, **asked))]
    while reports[-1].cursor:
        assert len(reports[-1].cursor) <= 200
        reports.append(recall_statistics(now=NOW, batch=Batch(size=size, **asked | {"cursor": reports[-1].cursor})))
    return reports


def store_each(owner: Owner, *texts: str) -> list[UUID]:
    """Store each text by a statement of its own."""
    return [store(owner, draft(text))[0].id for text in texts]


def rows_of(account_id: UUID) -> dict[str, int]:
    """Return how many rows each term has."""
    terms = TermCount.objects.filter(account_id=account_id).values_list("term", flat=True)
    return {term[6:]: list(terms).count(term) for term in terms}


def total(reports: Sequence[BatchReport]) -> int:
    return sum(report.changed for report in reports)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_folding_leaves_one_row_per_term_with_the_same_sum(owner: Owner, size: int) -> None:
    store_each(owner, "pump seal", "pump roof", "pump", "roof bean")
    before = read_rows(SUMS)

    reports = fold(size=size)

    assert rows_of(owner.account_id) == {"": 1, "pump": 1, "seal": 1, "roof": 1, "bean": 1}
    assert read_rows(SUMS) == before == read_rows(RECOUNT)
    # three rows of the memories themselves, two of pump, one of roof
    assert total(reports) == 6


def test_terms_with_a_count_of_zero_are_deleted(owner: Owner) -> None:
    gone, archived, _ = store_each(owner, "pump seal", "roof", "bean")
    delete_memory_rows(owner.account_id, [gone])
    Memory.objects.filter(id=archived).update(archived=True)

    fold()

    assert rows_of(owner.account_id) == {"": 1, "bean": 1}


def test_an_account_without_memories_has_no_statistics(owner: Owner) -> None:
    delete_memory_rows(owner.account_id, store_each(owner, "pump seal", "roof"))

    fold()

    assert not TermCount.objects.exists()


def test_folding_again_changes_nothing(owner: Owner) -> None:
    store_each(owner, "pump seal", "pump roof")
    fold()
    ids = set(TermCount.objects.values_list("id", flat=True))

    [report] = fold()

    assert (report.examined, report.changed) == (0, 0)
    assert set(TermCount.objects.values_list("id", flat=True)) == ids


def test_statistics_of_edited_or_reindexed_texts_are_folded(owner: Owner) -> None:
    edited, _ = store_each(owner, "pump seal", "pump roof")
    fold()
    for text in ("pump bean", "seal bean", "pump seal"):
        Memory.objects.filter(id=edited).update(text=text)
    set_language(owner, "german")
    reread = list(reindex_texts(owner, "german"))

    assert (reread, total(fold()) > 0) == ([2], True)
    assert set(rows_of(owner.account_id).values()) == {1}
    assert read_rows(SUMS) == read_rows(RECOUNT)
    assert [(each.examined, each.changed) for each in fold()] == [(0, 0)]


def test_folding_does_not_change_lexical_search_results(owner: Owner) -> None:
    store_each(owner, "pump seal", "pump roof", "pump pump", "roof bean")
    before = found_by_words(owner, "pump roof")

    fold()

    assert before
    assert found_by_words(owner, "pump roof") == before


def test_a_dry_run_counts_the_changes_and_makes_none(owner: Owner, stranger: Account) -> None:
    store_each(owner, "pump seal", "pump roof", "pump")
    store_each(Owner(account_id=stranger.id, agent_id="assistant"), "pump", "pump")
    rows = read_rows("SELECT id, term, docs, tokens FROM memory_terms")

    counted = total(fold(dry_run=True))

    assert read_rows("SELECT id, term, docs, tokens FROM memory_terms") == rows
    assert counted == total(fold()) > 0


def test_one_account_is_folded_on_demand(owner: Owner, stranger: Account) -> None:
    for account_id in (owner.account_id, stranger.id):
        store_each(Owner(account_id=account_id, agent_id="assistant"), "pump", "pump")

    fold(account_id=stranger.id)

    assert rows_of(stranger.id) == {"": 1, "pump": 1}
    assert rows_of(owner.account_id) == {"": 2, "pump": 2}


def test_a_killed_run_continues_where_it_stopped(owner: Owner) -> None:
    store_each(owner, "bean pump", "bean pump", "pump roof", "seal roof")
    first = recall_statistics(now=NOW, batch=Batch(size=3))

    # killed after its batch, before its progress was saved: the same batch again
    again = recall_statistics(now=NOW, batch=Batch(size=3))
    fold(cursor=again.cursor)

    assert first.cursor
    assert set(rows_of(owner.account_id).values()) == {1}
    assert read_rows(SUMS) == read_rows(RECOUNT)


def test_a_run_finishes_after_its_account_is_deleted(owner: Owner, stranger: Account) -> None:
    store_each(owner, "bean pump roof seal", "bean pump roof seal")
    first = recall_statistics(now=NOW, batch=Batch(size=3))
    Account.objects.get(id=owner.account_id).delete()

    assert fold(cursor=first.cursor)[-1].cursor == ""
    assert not TermCount.objects.exists()


def test_a_cursor_whose_row_is_gone_leaves_the_rest_to_the_next_run(owner: Owner) -> None:
    store_each(owner, "bean pump", "bean pump", "pump roof", "seal roof")
    first = recall_statistics(now=NOW, batch=Batch(size=3))
    store_each(owner, "pump")
    recall_statistics(now=NOW, batch=Batch(size=3))

    [left] = fold(cursor=first.cursor)
    fold()

    assert (left.examined, left.changed) == (0, 0)
    assert set(rows_of(owner.account_id).values()) == {1}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_terms_that_all_have_a_count_of_zero_do_not_stop_the_run(owner: Owner, size: int) -> None:
    delete_memory_rows(owner.account_id, store_each(owner, "bean pump", "roof seal pump"))
    store_each(owner, "zebra", "zebra")

    counted = total(fold(size=size, dry_run=True))

    assert counted == total(fold(size=size))
    assert rows_of(owner.account_id) == {"": 1, "zebra": 1}


def test_a_cursor_contains_no_remembered_words(owner: Owner) -> None:
    store_each(owner, "bean pump", "bean pump", f"roof {LONG}")

    cursors = [report.cursor for dry_run in (True, False) for report in fold(size=1, dry_run=dry_run)]

    assert len(cursors) > 8
    assert {cursor.partition(":")[2].isdecimal() for cursor in cursors if cursor} == {True}


def test_the_job_is_scheduled_every_few_minutes() -> None:
    assert timedelta(minutes=1) <= JOBS["recall_statistics"].every <= timedelta(minutes=5)  # type: ignore[operator]


@pytest.mark.django_db(transaction=True)
def test_rows_appended_during_folding_are_not_lost(owner: Owner) -> None:
    together = Barrier(4)

    def write(number: int) -> None:
        together.wait(PATIENCE_SECONDS)
        for place in range(15):
            [stored] = store_each(owner, f"pump word{number}x{place}")
            if place % 3 == 0:
                delete_memory_rows(owner.account_id, [stored])

    def keep_folding(_number: int) -> None:
        together.wait(PATIENCE_SECONDS)
        for _ in range(10):
            fold(size=5)

    with ThreadPoolExecutor(4) as others:
        acts = [write, write, keep_folding, keep_folding]
        list(others.map(lambda each: over_own_connection(lambda: each[1](each[0])), enumerate(acts)))

    assert read_rows(SUMS) == read_rows(RECOUNT)
    fold()
    assert set(rows_of(owner.account_id).values()) == {1}
