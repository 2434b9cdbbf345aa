"""Concurrent writes to conversations: locks are taken in one order, and nobody waits forever."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from memory import conf
from memory.errors import Unprocessable
from memory.extraction.conversations import read_conversations
from memory.maintenance import Batch
from memory.maintenance.retention_jobs import cleanup
from memory.models import Account, Conversation, Memory, Turn
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.services.conversations.end import clear_live_side
from memory.services.conversations.import_files import import_conversations
from memory.services.conversations.lifecycle import (
    ConversationDefaults,
    change_conversation,
    create_conversation,
    find_conversation,
)
from memory.services.conversations.staff_edits import archive_conversation, delete_conversation, unarchive_conversation
from memory.services.memories import correct as corrections
from memory.services.turns import store_turns
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import session_ref, session_store
from tests.concurrency import PATIENCE_SECONDS, Start, run_in_thread
from tests.memory.episodes import NOTHING, NOW
from tests.memory.turns import talk, turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

DUE = NOW + timedelta(days=conf.RETENTION_DAYS, seconds=1)
Act = Callable[[Owner], Any]


@pytest.mark.parametrize(
    ("act", "archived"),
    [
        (lambda staff: archive_conversation(staff, "c1", now=NOW), False),
        (lambda staff: unarchive_conversation(staff, "c1", now=NOW), True),
        (lambda staff: delete_conversation(staff, "c1"), False),
        (lambda staff: cleanup(now=DUE, batch=Batch(size=10)), False),
    ],
    ids=["archive", "unarchive", "delete", "job"],
)
def test_turns_are_locked_in_the_order_of_their_ids(
    owner: Owner, start_concurrently: Start, monkeypatch: pytest.MonkeyPatch, act: Act, archived: bool
) -> None:
    monkeypatch.setattr(corrections, "ROWS_PER_TRANSACTION", 1)
    talk(owner, 2)
    low, high = Memory.objects.order_by("id").values_list("id", flat=True)
    Memory.objects.update(archived=archived)
    # after the rewrite, its row lies behind the other one
    Memory.objects.filter(id=low).update(salience=0.9)

    with transaction.atomic():
        Memory.objects.select_for_update().get(id=low)
        acting = start_concurrently(lambda: act(Owner(account_id=owner.account_id)))
        Memory.objects.select_for_update().get(id=high)

    acting.result(PATIENCE_SECONDS)


def test_an_import_makes_its_agents_in_the_order_of_their_names(account: Account, start_concurrently: Start) -> None:
    messages = [{"role": "assistant", "content": "Agreed.", "agent": agent_id} for agent_id in ("zoe", "ana")]
    line = json.dumps({"id": "c1", "agent": "zoe", "messages": messages}).encode()
    ana, zoe = (Owner(account_id=account.id, agent_id=agent_id) for agent_id in ("ana", "zoe"))

    with transaction.atomic():
        insert_participants(ana, conversation_ids=["another"])
        importing = start_concurrently(
            lambda: list(import_conversations(account.id, read_conversations([line]), now=NOW, embed_seconds=0))
        )
        insert_participants(zoe, conversation_ids=["another"])

    importing.result(PATIENCE_SECONDS)
    assert Turn.objects.count() == 2


def test_of_two_conversations_that_should_continue_each_other_one_does(owner: Owner, start_concurrently: Start) -> None:
    for conversation_id in ("monday", "tuesday"):
        talk(owner, 1, conversation_id=conversation_id)

    with transaction.atomic():
        change_conversation(owner, "monday", changes={"continues": "tuesday"}, now=NOW)
        changing = start_concurrently(
            lambda: change_conversation(owner, "tuesday", changes={"continues": "monday"}, now=NOW)
        )

    with pytest.raises(Unprocessable):
        changing.result(PATIENCE_SECONDS)


def test_a_conversation_cannot_continue_one_that_is_being_erased(owner: Owner, start_concurrently: Start) -> None:
    talk(owner, 1, conversation_id="monday")

    with transaction.atomic():
        delete_conversation(Owner(account_id=owner.account_id), "monday")
        continuing = start_concurrently(
            lambda: create_conversation(owner, "tuesday", defaults=ConversationDefaults(continues="monday"), now=NOW)
        )

    with pytest.raises(Unprocessable):
        continuing.result(PATIENCE_SECONDS)


def test_a_turn_that_repeats_its_continuation_waits_for_no_other_conversation(owner: Owner) -> None:
    for conversation_id in ("sunday", "monday", "tuesday"):
        talk(owner, 1, conversation_id=conversation_id)
    say = partial(
        store_turns, owner, "monday", embedded=NOTHING, now=NOW, defaults=ConversationDefaults(continues="sunday")
    )
    say(drafts=[turn("first")])

    with transaction.atomic():
        change_conversation(owner, "tuesday", changes={"continues": "sunday"}, now=NOW)
        stored = run_in_thread(lambda: say(drafts=[turn("second")]))

    assert stored.conversation.turn_count == 3


def test_a_turn_that_reopens_while_the_live_side_is_cleared_keeps_its_session(
    owner: Owner, start_concurrently: Start
) -> None:
    talk(owner, 3)
    Conversation.objects.update(ended_at=NOW)
    ended = find_conversation(owner, "c1")

    with transaction.atomic():
        talk(owner, 1, start=3)
        SessionMemory(session_ref(ended)).push_thought("new", agent_id="assistant", now=NOW)
        clearing = start_concurrently(lambda: clear_live_side(ended, now=NOW))

    assert clearing.result(PATIENCE_SECONDS)
    assert [thought["thought"] for thought in SessionMemory(session_ref(ended)).get_thoughts(10)] == ["new"]
    assert find_conversation(owner, "c1").cleared_at is None


def test_a_turn_that_reopens_waits_until_the_live_side_is_cleared(owner: Owner, start_concurrently: Start) -> None:
    talk(owner, 3)
    Conversation.objects.update(ended_at=NOW)
    ended = find_conversation(owner, "c1")

    with transaction.atomic():
        clear_live_side(ended, now=NOW)
        reopening = start_concurrently(lambda: talk(owner, 1, start=3))

    reopening.result(PATIENCE_SECONDS)
    assert (find_conversation(owner, "c1").ended_at, find_conversation(owner, "c1").cleared_at) == (None, None)
    assert len(session_store().recent(find_conversation(owner, "c1"), 10)) == 4
