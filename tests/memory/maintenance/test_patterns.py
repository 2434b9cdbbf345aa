"""The job that learns strategies: stage by stage, batch by batch, within its account, and nothing on a dry run."""

from dataclasses import replace

import pytest

from memory.maintenance import Batch, BatchReport
from memory.maintenance.conversation_jobs import patterns, run_sources
from memory.models import Account, Conversation, Strategy
from memory.owner import Owner
from memory.services.strategies.sources import next_conversation_sources
from tests.memory.goals import aim, finish
from tests.memory.services.strategies.test_patterns import LATER, work, work_for

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

TASKS = ("Write the weekly report.", "Invite everybody to the party.", "Book a table for lunch.")


def run_to_the_end(batch: Batch) -> list[BatchReport]:
    reports: list[BatchReport] = []
    while not reports or reports[-1].cursor:
        cursor = reports[-1].cursor if reports else ""
        reports.append(patterns(now=LATER, batch=replace(batch, cursor=cursor)))
    return reports


def figures(batch: Batch) -> list[tuple[int, int, int]]:
    """Return what each batch examined, marked and learned."""
    reports = run_to_the_end(batch)
    return [(each.examined, each.changed, each.figures.get("strategies_learnt", 0)) for each in reports]


def unmarked() -> int:
    return Conversation.objects.filter(patterns_extracted_at=None).count()


def test_learning_patterns_continues_at_its_cursor_and_can_be_repeated(owner: Owner) -> None:
    goal = aim(owner)
    work_for(owner, goal, "c0")
    finish(owner, goal)
    for number, task in enumerate(TASKS, 1):
        work(owner, f"c{number}", ask=task)

    assert figures(Batch(size=2, dry_run=True)) == [(1, 1, 0), (2, 2, 0), (1, 1, 0)]
    assert (Strategy.objects.count(), unmarked()) == (0, 4)
    first = patterns(now=LATER, batch=Batch(size=2))
    assert patterns(now=LATER, batch=replace(Batch(size=2), cursor=first.cursor)).changed == 2
    assert figures(Batch(size=2)) == [(0, 0, 0), (1, 1, 1)]
    assert figures(Batch(size=2)) == [(0, 0, 0), (0, 0, 0)]
    assert (Strategy.objects.count(), unmarked()) == (4, 1)


def test_a_run_of_an_account_learns_only_from_its_own(owner: Owner, stranger: Account) -> None:
    work(owner)
    work(replace(owner, account_id=stranger.id))

    assert figures(Batch(size=10, account_id=stranger.id))[-1] == (1, 1, 1)

    assert Strategy.objects.get().account_id == stranger.id


def test_a_conversation_that_ends_after_the_run_is_skipped(owner: Owner) -> None:
    work(owner)

    report = run_sources(next_conversation_sources, now=LATER.replace(year=2025), batch=Batch(size=10))

    assert report.examined == 0
