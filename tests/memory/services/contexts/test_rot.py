"""Tests of context rot: stale entries are archived as if removed, and can be restored in the same ways."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from memory import conf, scoring
from memory.models import AuditEntry, ContextAccessLog, ContextEntry, Link, Memory, PersistentContext, Vector
from memory.owner import Owner
from memory.services.contexts.entries import visible_entries
from memory.services.contexts.manage import archive_context
from memory.services.contexts.rot import EntryCursor, StaleScan, archive_stale_entries, find_stale_entries
from memory.services.contexts.snapshots import create_snapshot, restore_snapshot
from memory.services.memories.correct import mark_memories
from memory.services.memories.decay import reinforce
from memory.services.memories.links import SUPERSEDES
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW
from tests.properties import examples

pytestmark = pytest.mark.django_db

STALE_DAYS = scoring.days_until_stale(conf.STALE_FROM)


def day(number: float) -> datetime:
    """Return the time so many days after NOW, when everything here was written."""
    return NOW + timedelta(days=number)


DUE = day(45)
"""The time at which an unread entry of importance 0.5 is stale."""


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


@pytest.fixture
def row(owner: Owner, context: PersistentContext) -> ContextEntry:
    """Written at NOW, and never read."""
    return written(owner, context, "the pump is loud")


def written(owner: Owner, context: PersistentContext, content: str, **fields: Any) -> ContextEntry:
    """Store an entry at NOW that is never read."""
    [stored] = keep(owner, context, entry(content, **fields))
    Memory.objects.filter(id=stored.id).update(updated_at=NOW)
    return stored


def look(now: datetime, *, after: EntryCursor | None = None, limit: int = 100) -> StaleScan:
    return find_stale_entries(after=after, limit=limit, account_id=None, now=now)


def stale(now: datetime) -> set[UUID]:
    return {place.entry_id for place in look(now).stale}


def archive(now: datetime) -> int:
    return archive_stale_entries(look(now).stale, now=now)


def read(owner: Owner, now: datetime) -> Sequence[str]:
    return [found.text for found in visible_entries(owner, now=now).order_by("id")]


@examples(40, derandomize=True)
@given(
    age_days=st.one_of(st.floats(0, 3_000), st.sampled_from((11.3, 44.8, 44.95, 67.2, 67.4))),
    access_count=st.one_of(st.sampled_from((0, 3, 10)), st.integers(0, 2**31 - 1)),
    importance=st.one_of(st.sampled_from((0.0, 0.5, 1.0)), st.floats(0, 1)),
)
def test_an_entry_is_stale_when_the_formula_says_so(
    row: ContextEntry, age_days: float, access_count: int, importance: float
) -> None:
    Memory.objects.filter(id=row.id).update(access_count=access_count)
    entries = ContextEntry.objects
    entries.filter(pk=row.id).update(importance=importance)
    staleness = scoring.staleness(
        age_days=age_days, access_count=access_count, importance=importance, is_superseded=False
    )
    assume(abs(staleness - conf.STALE_FROM) > 1e-9)

    assert stale(day(age_days)) == ({row.id} if staleness >= conf.STALE_FROM else set())


def test_a_superseded_entry_is_stale_after_a_quarter_of_the_time(
    owner: Owner, context: PersistentContext, row: ContextEntry
) -> None:
    newer = written(owner, context, "the pump is quiet")
    Link.objects.create(account_id=owner.account_id, source_id=newer.id, target_id=row.id, type=SUPERSEDES)

    assert stale(day(STALE_DAYS / 4 - 0.01)) == set()
    assert stale(day(STALE_DAYS / 4 + 0.01)) == {row.id}


def test_gone_entries_and_those_of_other_contexts_supersede_nothing(
    owner: Owner, context: PersistentContext, row: ContextEntry
) -> None:
    removed = written(owner, context, "the pump is quiet")
    elsewhere = written(owner, context_of(owner, "others"), "the pump hums")
    mark_memories(owner, [removed.id], mark="archive", now=NOW)
    for newer in (removed, elsewhere):
        Link.objects.create(account_id=owner.account_id, source_id=newer.id, target_id=row.id, type=SUPERSEDES)

    assert stale(day(40)) == set()


def test_a_read_makes_an_entry_fresh(owner: Owner, row: ContextEntry) -> None:
    reinforce(owner, [row.id], now=day(40))

    assert stale(day(100)) == set()


@pytest.mark.parametrize("mark", ["pin", "archive", "quarantine"])
def test_pinned_archived_and_quarantined_entries_are_skipped(owner: Owner, row: ContextEntry, mark: str) -> None:
    mark_memories(owner, [row.id], mark=mark, now=NOW)

    assert stale(DUE) == set()


def test_expired_entries_and_archived_contexts_are_skipped(owner: Owner, row: ContextEntry) -> None:
    closed = context_of(owner, "closed")
    written(owner, closed, "said then")
    archive_context(owner, closed.id, expected=None, now=NOW)
    Memory.objects.filter(id=row.id).update(expires_at=day(3))

    assert stale(DUE) == set()


def test_nothing_is_stale_at_a_threshold_of_one(row: ContextEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "STALE_FROM", 1.0)

    assert stale(day(100_000)) == set()


def test_archiving_has_the_effects_of_removing(owner: Owner, context: PersistentContext) -> None:
    row = written(owner, context, "the pump is loud", angle=0.1)

    assert archive(DUE) == 1

    found = ContextEntry.objects.get(pk=row.id)
    assert (found.archived, found.version, found.updated_at, found.text) == (True, 2, DUE, "the pump is loud")
    assert read(owner, DUE) == []
    assert not Vector.objects.filter(live=True).exists()
    line = ContextAccessLog.objects.get(action="archive")
    assert (line.entry_id, line.context_id, line.actor, line.accessed_at) == (
        row.id, context.id, "job:context_rot", DUE,
    )  # fmt: skip
    audited = AuditEntry.objects.get(operation="archive")
    assert (audited.actor, audited.affected_ids, audited.result_count) == ("job:context_rot", [str(row.id)], 1)


def test_an_entry_read_since_the_scan_stays(owner: Owner, row: ContextEntry) -> None:
    found = look(DUE).stale
    reinforce(owner, [row.id], now=DUE)

    assert archive_stale_entries(found, now=DUE) == 0
    assert not AuditEntry.objects.filter(operation="archive").exists()


def test_many_entries_take_as_many_statements_as_one(
    owner: Owner, context: PersistentContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        written(owner, context, f"note {number}")
    # the account, its entries, no other account
    with django_assert_num_queries(3):
        found = look(DUE).stale

    # a savepoint and its end, two locks, the update, a line of each log
    with django_assert_num_queries(7):
        assert archive_stale_entries(found, now=DUE) == 5
    with django_assert_num_queries(0):
        archive_stale_entries([], now=DUE)


def test_staff_can_unarchive_an_entry(owner: Owner, row: ContextEntry) -> None:
    archive(DUE)

    mark_memories(owner, [row.id], mark="unarchive", now=DUE)

    assert read(owner, DUE) == ["the pump is loud"]
    assert stale(DUE + timedelta(days=44)) == set()


def test_writing_under_the_key_restores_the_entry(owner: Owner, context: PersistentContext) -> None:
    row = written(owner, context, "loud", key="pump")
    archive(DUE)

    [again] = keep(owner, context, entry("loud", key="pump"), now=DUE)

    assert again.id == row.id
    assert read(owner, DUE) == ["loud"]
    assert stale(DUE + timedelta(days=44)) == set()


def test_restoring_a_snapshot_restores_the_entry(owner: Owner, context: PersistentContext, row: ContextEntry) -> None:
    snapshot = create_snapshot(owner, context.id, name="then", now=NOW)
    archive(DUE)

    assert restore_snapshot(owner, context.id, snapshot.id, now=DUE).returned == 1

    assert read(owner, DUE) == ["the pump is loud"]
    assert stale(DUE + timedelta(days=44)) == set()
