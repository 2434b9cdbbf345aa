"""The job that lets memories fade: a stage a kind, account by account, batch by batch."""

from collections import Counter
from datetime import timedelta

import pytest

from memory.maintenance import Batch, BatchReport
from memory.maintenance.memory_jobs import decay
from memory.models import Account, Memory
from memory.owner import Owner
from tests.memory.entities import entities_of
from tests.memory.episodes import NOW, draft, store
from tests.memory.facts import know

pytestmark = pytest.mark.django_db

DUE = NOW + timedelta(days=10)


def remember(owner: Owner) -> None:
    """Three episodes, two entities and an inferred fact, written at NOW."""
    store(owner, *(draft(f"episode {number}") for number in range(3)))
    entities_of(owner, "Ana", "Bo")
    know(owner, certainty="inferred")
    Memory.objects.update(updated_at=NOW)


@pytest.fixture
def two_accounts(owner: Owner, stranger: Account) -> list[Owner]:
    owners = [owner, Owner(account_id=stranger.id, agent_id="assistant")]
    for each in owners:
        remember(each)
    return owners


def reports(*, size: int = 2, account: Account | None = None, dry_run: bool = False) -> list[BatchReport]:
    """Return the reports of all batches of a whole run."""
    account_id, found = account.id if account else None, [BatchReport(examined=0, changed=0)]
    while not found[1:] or found[-1].cursor:
        batch = Batch(size=size, cursor=found[-1].cursor, account_id=account_id, dry_run=dry_run)
        found.append(decay(now=DUE, batch=batch))
    return found[1:]


def figures(found: list[BatchReport]) -> Counter[str]:
    return sum((Counter(report.figures) for report in found), Counter())


def test_a_run_decays_all_kinds_and_accounts_and_reports_the_number(two_accounts: list[Owner]) -> None:
    found = reports()

    assert figures(found) == {"salience_episode": 6, "salience_entity": 4, "salience_fact": 2, "confidence": 2}
    assert max(report.examined for report in found) == 2
    assert max(len(report.cursor) for report in found) <= 200
    assert sum(report.changed for report in found) == 14


def test_another_run_changes_nothing(two_accounts: list[Owner]) -> None:
    reports()

    again = reports()

    assert (sum(report.examined for report in again), sum(report.changed for report in again)) == (14, 0)


def test_a_run_of_one_account_leaves_others_alone(two_accounts: list[Owner], stranger: Account) -> None:
    assert sum(reports_of.changed for reports_of in reports(account=stranger)) == 7
    assert not Memory.objects.exclude(account=stranger).filter(faded_salience__isnull=False).exists()


def test_a_dry_run_goes_the_same_way_and_changes_nothing(two_accounts: list[Owner]) -> None:
    dry = reports(dry_run=True)

    assert not Memory.objects.filter(faded_salience__isnull=False).exists()
    assert dry == reports()
