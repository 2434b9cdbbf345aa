"""The job that promotes: batch by batch, within its account, and nothing on a dry run."""

from dataclasses import replace

import pytest

from memory.maintenance import Batch
from memory.maintenance.memory_jobs import globalize_facts
from memory.models import Account, Fact
from memory.owner import Owner
from tests.memory.episodes import NOW
from tests.memory.services.facts.test_globalize import prominent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]


def run_to_the_end(batch: Batch) -> list[tuple[int, int]]:
    """Return how many facts each batch looked at and globalized."""
    figures, report = [], None
    while report is None or report.cursor:
        report = globalize_facts(now=NOW, batch=replace(batch, cursor=report.cursor if report else ""))
        figures.append((report.examined, report.changed))
    return figures


@pytest.fixture
def atlas(owner: Owner) -> Owner:
    return replace(owner, channel="atlas")


def copies() -> int:
    return Fact.objects.filter(channel="_global").count()


def test_globalizing_continues_at_its_cursor_and_can_be_repeated(atlas: Owner) -> None:
    for number in range(3):
        prominent(atlas, f"It is number {number}.")

    assert run_to_the_end(Batch(size=2, dry_run=True)) == [(2, 2), (1, 1)]
    assert copies() == 0
    assert run_to_the_end(Batch(size=2)) == [(2, 2), (1, 1)]
    assert run_to_the_end(Batch(size=2)) == [(0, 0)]
    assert copies() == 3


def test_a_run_of_an_account_promotes_only_its_own(atlas: Owner, stranger: Account) -> None:
    prominent(atlas)
    prominent(replace(atlas, account_id=stranger.id))

    assert run_to_the_end(Batch(size=10, account_id=stranger.id)) == [(1, 1)]

    assert Fact.objects.get(channel="_global").account_id == stranger.id
