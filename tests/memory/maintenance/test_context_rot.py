"""The job that archives stale entries: entry by entry, in the order of accounts and contexts."""

from datetime import timedelta

import pytest

from memory.maintenance import Batch, BatchReport
from memory.maintenance.memory_jobs import context_rot
from memory.models import Account, AuditEntry, Memory
from memory.owner import Owner
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

DUE = NOW + timedelta(days=45)


@pytest.fixture
def entries(owner: Owner, stranger: Account) -> None:
    """Store two contexts of two entries, one of them important, in each of two accounts."""
    for each in (owner, Owner(account_id=stranger.id, agent_id="assistant")):
        for name in ("notes", "others"):
            keep(each, context_of(each, name), entry("plain"), entry("important", importance=1.0))
    Memory.objects.update(updated_at=NOW)


def reports(*, size: int = 3, account: Account | None = None, dry_run: bool = False) -> list[BatchReport]:
    """Return the reports of all batches of a whole run."""
    account_id, found = account.id if account else None, [BatchReport(examined=0, changed=0)]
    while not found[1:] or found[-1].cursor:
        batch = Batch(size=size, cursor=found[-1].cursor, account_id=account_id, dry_run=dry_run)
        found.append(context_rot(now=DUE, batch=batch))
    return found[1:]


def changes(found: list[BatchReport]) -> tuple[int, int, int]:
    """Examined, changed, and entries archived by the figures."""
    archived = sum(report.figures.get("entries_archived", 0) for report in found)
    return sum(report.examined for report in found), sum(report.changed for report in found), archived


@pytest.mark.usefixtures("entries")
def test_a_run_looks_at_every_entry_once_and_archives_the_stale_ones() -> None:
    found = reports()

    assert [report.examined for report in found] == [3, 3, 2]
    assert changes(found) == (8, 4, 4)
    assert list(Memory.objects.filter(archived=True).values_list("text", flat=True)) == ["plain"] * 4
    assert max(len(report.cursor) for report in found) <= 200
    assert changes(reports()) == (8, 0, 0)


@pytest.mark.usefixtures("entries")
def test_a_run_of_one_account_leaves_others_alone(stranger: Account) -> None:
    assert changes(reports(account=stranger)) == (4, 2, 2)
    assert set(Memory.objects.filter(archived=True).values_list("account_id", flat=True)) == {stranger.id}
    assert set(AuditEntry.objects.filter(operation="archive").values_list("account_id", flat=True)) == {stranger.id}


@pytest.mark.usefixtures("entries")
def test_a_dry_run_goes_the_same_way_and_archives_nothing() -> None:
    dry = reports(dry_run=True)

    assert not Memory.objects.filter(archived=True).exists()
    assert dry == reports()
