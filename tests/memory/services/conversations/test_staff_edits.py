"""Staff archive and erase conversations of their account, whole or not at all."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from ledger import store as ledger
from memory.errors import NotFound, Unprocessable
from memory.models import (
    Account,
    AuditEntry,
    Conversation,
    EpisodicMemory,
    Memory,
    Tool,
    ToolInvocation,
    Turn,
)
from memory.owner import Owner
from memory.services.conversations.staff_edits import (
    archive_conversation,
    delete_conversation,
    delete_conversation_and_episodes,
    request_summary_as_staff,
    retry_summary,
    unarchive_conversation,
)
from memory.services.memories import correct as corrections
from memory.services.memories.correct import mark_memories
from memory.services.sessions import MemoryManager, join_session
from memory.services.tools import visible_invocations
from memory.services.turns import get_conversation
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef, client
from tests.concurrency import PATIENCE_SECONDS, Start, run_in_thread
from tests.memory.episodes import NOW, draft, store
from tests.memory.procedures import invoke
from tests.memory.turns import talk

pytestmark = pytest.mark.usefixtures("empty_redis")

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def staff(account: Account) -> Owner:
    return Owner(account_id=account.id, actor="staff:chief")


@pytest.mark.parametrize(
    "act",
    [
        lambda owner, conversation_id: archive_conversation(owner, conversation_id, now=NOW),
        delete_conversation,
        delete_conversation_and_episodes,
        lambda owner, conversation_id: unarchive_conversation(owner, conversation_id, now=NOW),
        lambda owner, conversation_id: retry_summary(owner, conversation_id, now=NOW),
        lambda owner, conversation_id: request_summary_as_staff(owner, conversation_id, now=NOW),
    ],
)
def test_nothing_reaches_across_to_another_account(
    owner: Owner, stranger: Account, act: Callable[[Owner, str], Any]
) -> None:
    talk(owner, 2)
    entries = AuditEntry.objects.count()

    with pytest.raises(NotFound):
        act(Owner(account_id=stranger.id, actor="staff:chief"), "c1")

    assert (Turn.objects.count(), AuditEntry.objects.count()) == (2, entries)


def test_a_conversation_longer_than_a_batch_is_erased_completely(
    staff: Owner, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrections, "ROWS_PER_TRANSACTION", 3)
    talk(owner, 8)
    talk(owner, 2, conversation_id="c2")
    store(owner, draft("They talked."))

    assert delete_conversation(staff, "c1") == 8

    assert (Turn.objects.count(), EpisodicMemory.objects.count()) == (2, 1)
    counts = AuditEntry.objects.filter(operation="delete").order_by("id").values_list("result_count", flat=True)
    assert list(counts) == [3, 3, 2, 8]


def test_erasing_takes_as_many_queries_for_many_turns_as_for_few(staff: Owner, owner: Owner) -> None:
    for conversation_id, count in (("few", 2), ("many", 50)):
        talk(owner, count, conversation_id=conversation_id)
        store(owner, draft("They talked.", conversation_id=conversation_id))
    counts = []

    for conversation_id in ("few", "many"):
        with CaptureQueriesContext(connection) as captured:
            delete_conversation_and_episodes(staff, conversation_id)
        counts.append(len(captured))

    assert counts[0] == counts[1] < 40
    assert not Memory.objects.exists()


def test_an_erased_conversation_id_starts_again_from_zero(staff: Owner, owner: Owner) -> None:
    talk(owner, 3)
    delete_conversation_and_episodes(staff, "c1")

    again = talk(owner, 1, start=7)

    assert (again.conversation.turn_count, again.turns[0].index) == (1, 0)
    assert Memory.objects.count() == 1


def test_its_tool_invocations_are_erased_and_the_next_one_has_none(
    staff: Owner, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrections, "ROWS_PER_TRANSACTION", 2)
    recorded = [invoke(owner, tool_input="hunter2") for _ in range(3)]
    invoke(owner, "read", conversation_id="c2")

    assert delete_conversation(staff, "c1") == 0

    newcomer = replace(owner, agent_id="newcomer")
    talk(newcomer, 1)
    assert not visible_invocations(newcomer).exists()
    assert [row.tool_name for row in visible_invocations(owner)] == ["read"]
    deletions = AuditEntry.objects.filter(operation="delete", memory_type="procedural").order_by("id")
    assert [entry.affected_ids for entry in deletions] == [
        [str(row.id) for row in rows] for rows in (recorded[:2], recorded[2:])
    ]
    # the tool keeps its counts
    assert Tool.objects.get(name="search").usage_count == 3


def test_a_namesake_of_another_account_keeps_its_tool_invocations(
    staff: Owner, owner: Owner, stranger: Account
) -> None:
    for account in (owner, Owner(account_id=stranger.id, agent_id="assistant")):
        invoke(account)

    delete_conversation_and_episodes(staff, "c1")

    assert ToolInvocation.objects.get().account_id == stranger.id


@pytest.mark.django_db(transaction=True)
def test_an_invocation_that_is_being_recorded_is_erased_with_its_conversation(
    staff: Owner, owner: Owner, start_concurrently: Start
) -> None:
    invoke(owner)

    with transaction.atomic():
        invoke(owner)
        erasing = start_concurrently(lambda: delete_conversation(staff, "c1"))

    erasing.result(PATIENCE_SECONDS)
    assert not ToolInvocation.objects.exists()
    assert not Conversation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_invocation_recorded_during_an_erasure_begins_the_next_conversation(
    staff: Owner, owner: Owner, start_concurrently: Start
) -> None:
    invoke(owner)

    with transaction.atomic():
        delete_conversation(staff, "c1")
        recording = start_concurrently(lambda: invoke(owner, "read"))

    recording.result(PATIENCE_SECONDS)
    assert [row.tool_name for row in visible_invocations(owner)] == ["read"]
    assert Conversation.objects.count() == 1


def test_a_conversation_in_a_cycle_can_be_erased(staff: Owner, owner: Owner) -> None:
    for conversation_id, continues in (("c1", "c2"), ("c2", "c1")):
        talk(owner, 1, conversation_id=conversation_id)
        Conversation.objects.filter(conversation_id=conversation_id).update(continues=continues)

    delete_conversation(staff, "c1")

    assert Conversation.objects.get().continues == ""


@pytest.mark.django_db(transaction=True)
def test_a_turn_stored_during_an_erasure_is_not_in_the_next_conversation(staff: Owner, owner: Owner) -> None:
    talk(owner, 1)
    place = ConversationRef(account_id=owner.account_id, conversation_id="c1")

    with transaction.atomic():
        delete_conversation(staff, "c1")
        run_in_thread(lambda: join_session(owner, "c1", now=NOW).push_thought("secret", "assistant", NOW))
        run_in_thread(lambda: MemoryManager(owner).find_memory("c1").get_messages())
        WorkingMemory(owner).set("c1", {"scratchpad": "secret"})
        ledger.mark(place, "skill:secret")

    session = join_session(owner, "c1", now=NOW)
    assert (session.get_thoughts(10), WorkingMemory(owner).get("c1"), ledger.get_all(place)) == ([], {}, {})
    assert not client().keys("*:turns")


def test_archiving_changes_the_version_of_archived_turns_only(staff: Owner, owner: Owner) -> None:
    talk(owner, 3)
    marked = Turn.objects.get(index=0)
    mark_memories(staff, [marked.id], mark="archive", now=NOW)

    archive_conversation(staff, "c1", now=LATER)
    archived = [(row.archived, row.version, row.updated_at) for row in get_conversation(owner, "c1")]
    unarchive_conversation(staff, "c1", now=LATER)

    assert archived == [(True, 2, NOW), (True, 2, LATER), (True, 2, LATER)]
    assert [(row.archived, row.version) for row in get_conversation(owner, "c1")] == [(False, 3)] * 3


def test_a_conversation_longer_than_a_batch_is_archived_completely(
    staff: Owner, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrections, "ROWS_PER_TRANSACTION", 3)
    talk(owner, 8)

    archive_conversation(staff, "c1", now=LATER)

    assert Turn.objects.filter(archived=True).count() == 8


def test_only_a_failing_summary_is_retried(staff: Owner, owner: Owner) -> None:
    talk(owner, 2)
    Conversation.objects.update(summarize_after=NOW)

    with pytest.raises(Unprocessable):
        retry_summary(staff, "c1", now=NOW)
