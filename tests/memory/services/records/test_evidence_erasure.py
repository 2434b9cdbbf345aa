"""Erasure of what evidence depends on, and what it leaves of structured turns, work episodes and raw traces."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from memory.extraction.turn_slots import Action, Reasoning, Slots
from memory.maintenance.base import Batch
from memory.maintenance.embedding_jobs import queue_unembedded
from memory.maintenance.retention_jobs import cleanup
from memory.models import (
    Account,
    Artifact,
    Kind,
    Link,
    Memory,
    ReasoningTrace,
    ToolInvocation,
    TurnRecord,
    TurnSlot,
    WorkEpisode,
)
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.conversations.staff_edits import delete_conversation, unarchive_conversation
from memory.services.goals.plan import erase_goal
from memory.services.records.record import RecordedTurn
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.graphs import store_node
from tests.memory.procedures import invoke
from tests.memory.records import add_record
from tests.memory.turns import say, turn
from tests.memory.works import ids_where, merge, reduce, shorten, texts_left

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

LATER = NOW + timedelta(hours=1)
EVIDENCE = (TurnRecord, TurnSlot, WorkEpisode, ReasoningTrace)
SLOTS = Slots(
    reasoning=Reasoning(tier=ReasoningTier.RAW_TRACE, trace="Roses want water.", summary="Water them."),
    action=Action(text="Watered the roses."),
)


@pytest.fixture
def goal_id(owner: Owner) -> UUID:
    return aim(owner).id


@pytest.fixture
def recorded(owner: Owner, goal_id: UUID) -> RecordedTurn:
    """Return a record of the goal, with a raw trace, at all levels of compression."""
    Account.objects.filter(id=owner.account_id).update(reasoning_tier=ReasoningTier.RAW_TRACE.value)
    recorded = add_record(owner, slots=SLOTS, goal_id=goal_id)
    reduce(owner, recorded.record, merge(owner, recorded.record, list(shorten(owner, recorded).values())))
    return recorded


def artifact_of(owner: Owner, record: TurnRecord, goal_id: UUID) -> Artifact:
    row = Artifact(kind=Kind.ARTIFACT, text="roses.md", uri="roses.md", source_record_id=record.id, for_goal_id=goal_id)
    return store_node(owner, row)


def counts() -> dict[str, int]:
    return {model.__name__: model._default_manager.count() for model in EVIDENCE}


def test_a_deleted_conversation_leaves_nothing_of_its_evidence(
    staff: Owner, owner: Owner, recorded: RecordedTurn, goal_id: UUID
) -> None:
    artifact = artifact_of(owner, recorded.record, goal_id)
    assert all(counts().values())

    delete_conversation(staff, "chat-1")

    assert not any(counts().values())
    assert not ids_where(kind__in=(Kind.TURN_SLOT, Kind.WORK_EPISODE))
    assert Artifact.objects.get(pk=artifact.pk).source_record_id is None


def test_a_deleted_conversation_leaves_the_evidence_of_others(
    staff: Owner, owner: Owner, recorded: RecordedTurn
) -> None:
    other = add_record(owner, "chat-2", slots=SLOTS)

    delete_conversation(staff, "chat-1")

    assert [record.id for record in TurnRecord.objects.all()] == [other.record.id]
    assert texts_left("chat-2") == {slot.text for slot in other.slots}
    assert ReasoningTrace.objects.get().record_id == other.record.id


def test_evidence_outlives_its_goal(staff: Owner, owner: Owner, recorded: RecordedTurn, goal_id: UUID) -> None:
    artifact, before = artifact_of(owner, recorded.record, goal_id), counts()
    WorkEpisode.objects.update(for_goal_id=goal_id)

    erase_goal(staff, goal_id, now=LATER)

    assert counts() == before
    assert TurnRecord.objects.get(id=recorded.record.id).goal_id is None
    rows: list[Any] = [*WorkEpisode.objects.all(), Artifact.objects.get(pk=artifact.pk)]
    assert {row.for_goal_id for row in rows} == {None}
    assert not Link.objects.filter(type="WORKS_ON").exists()


def test_tool_invocations_go_with_their_conversation_and_records_lose_them(staff: Owner, owner: Owner) -> None:
    used = invoke(owner, conversation_id="chat-1")
    add_record(owner, invocations=[used.id])

    delete_conversation(staff, "chat-1")

    assert (ToolInvocation.objects.count(), TurnRecord.objects.count()) == (0, 0)


def test_an_erased_account_leaves_nothing(account: Account, stranger: Account, recorded: RecordedTurn) -> None:
    theirs = add_record(Owner(account_id=stranger.id, agent_id="assistant"))

    account.delete()

    assert [record.id for record in TurnRecord.objects.all()] == [theirs.record.id]
    assert set(TurnSlot.objects.values_list("record_id", flat=True)) == {theirs.record.id}
    assert (WorkEpisode.objects.count(), ReasoningTrace.objects.count()) == (0, 0)


def test_unarchiving_a_conversation_leaves_compressed_levels_archived(
    staff: Owner, owner: Owner, recorded: RecordedTurn
) -> None:
    say(owner, turn("The roses again."), conversation_id="chat-1")
    archived = ids_where(archived=True)

    cleanup(now=NOW + timedelta(days=4_000), batch=Batch(size=10))
    assert Memory.objects.get(kind=Kind.TURN).archived
    unarchive_conversation(staff, "chat-1", now=LATER)

    assert ids_where(archived=True) == archived != set()


def test_archived_levels_are_not_embedded_again(recorded: RecordedTurn) -> None:
    Memory.objects.update(embed_after=None)

    queue_unembedded(now=LATER, batch=Batch(size=100))

    queued = Memory.objects.filter(embed_after=LATER)
    assert sorted(queued.values_list("kind", flat=True)) == [Kind.GOAL, Kind.WORK_EPISODE]
