"""The job deletes what ended conversations left in Redis when their end was cut short."""

from datetime import timedelta

import pytest

from memory.maintenance import Batch
from memory.maintenance.ledger_jobs import clear_ended
from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation
from memory.tiers.working import WorkingMemory
from tests.memory.episodes import NOW
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


def end_without_clearing(owner: Owner, conversation_id: str) -> None:
    """Leave what a worker leaves that is killed right after its commit."""
    talk(owner, 1, conversation_id=conversation_id)
    WorkingMemory(owner).set(conversation_id, {"scratchpad": "x"})
    Conversation.objects.filter(conversation_id=conversation_id).update(ended_at=NOW)


def test_working_memory_left_by_an_ended_conversation_is_cleared(owner: Owner) -> None:
    end_without_clearing(owner, "c1")

    report = clear_ended(now=NOW + timedelta(minutes=1), batch=Batch(size=10))

    assert (report.examined, report.changed, report.cursor) == (1, 1, "")
    assert WorkingMemory(owner).get("c1") == {}
    assert clear_ended(now=NOW, batch=Batch(size=10)).examined == 0


def test_a_reopened_conversation_keeps_its_working_memory(owner: Owner) -> None:
    end_without_clearing(owner, "c1")
    talk(owner, 1, start=1)

    assert clear_ended(now=NOW, batch=Batch(size=10)).examined == 0
    assert WorkingMemory(owner).get("c1") == {"scratchpad": "x"}


def test_a_dry_run_counts_and_clears_nothing(owner: Owner) -> None:
    end_without_clearing(owner, "c1")

    report = clear_ended(now=NOW, batch=Batch(size=10, dry_run=True))

    assert report.changed == 1
    assert find_conversation(owner, "c1").cleared_at is None


def test_a_batch_continues_at_the_cursor_of_the_previous_one(owner: Owner) -> None:
    for name in ("c1", "c2", "c3"):
        end_without_clearing(owner, name)

    first = clear_ended(now=NOW, batch=Batch(size=2))
    second = clear_ended(now=NOW, batch=Batch(size=2, cursor=first.cursor))

    assert (first.changed, bool(first.cursor), second.changed, second.cursor) == (2, True, 1, "")
