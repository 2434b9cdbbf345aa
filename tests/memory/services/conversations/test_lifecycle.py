"""Conversations from their first write to their end, and when their summaries are due."""

from datetime import timedelta

import pytest

from ledger import store as ledger
from memory import conf
from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import Account, AuditEntry, Conversation
from memory.owner import Owner
from memory.services.conversations.end import end_conversation
from memory.services.conversations.lifecycle import (
    ConversationDefaults,
    change_conversation,
    create_conversation,
    find_conversation,
    join_conversation,
    read_continuations,
)
from memory.services.turns import store_turns
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import session_ref, session_store
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef
from tests.memory.episodes import NOTHING, NOW
from tests.memory.turns import say, talk, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

LATER = NOW + timedelta(hours=1)


def create(owner: Owner, conversation_id: str, *, continues: str = "") -> Conversation:
    return create_conversation(owner, conversation_id, defaults=ConversationDefaults(continues=continues), now=NOW)


def test_the_first_write_creates_a_conversation(owner: Owner) -> None:
    join_conversation(Owner(account_id=owner.account_id, agent_id="a", user_id="ana", channel="boats"), "c1", now=NOW)

    made = find_conversation(Owner(account_id=owner.account_id, agent_id="a"), "c1")
    assert (made.agent_id, made.user_id, made.channel, made.turn_count) == ("a", "ana", "boats", 0)
    assert AuditEntry.objects.filter(operation="create", memory_type="conversation").count() == 1


def test_a_conversation_is_created_once(owner: Owner) -> None:
    create(owner, "c1")

    with pytest.raises(Conflict):
        create(owner, "c1")
    join_conversation(owner, "c1", now=LATER)

    assert Conversation.objects.count() == 1


def test_an_agent_that_takes_no_part_finds_nothing(owner: Owner, stranger: Account) -> None:
    create(owner, "c1")

    for nobody in (Owner(account_id=owner.account_id, agent_id="second"), Owner(account_id=stranger.id)):
        with pytest.raises(NotFound):
            find_conversation(nobody, "c1")
    assert find_conversation(Owner(account_id=owner.account_id), "c1").conversation_id == "c1"


def test_a_conversation_continues_one_that_its_writer_can_see(owner: Owner, stranger: Account) -> None:
    create(owner, "monday")
    create(Owner(account_id=stranger.id), "theirs")

    create(owner, "tuesday", continues="monday")
    for unseen in ("theirs", "nothing"):
        with pytest.raises(Unprocessable):
            create(owner, "wednesday", continues=unseen)

    assert list(read_continuations(owner, "tuesday")) == ["tuesday", "monday"]
    assert not Conversation.objects.filter(conversation_id="wednesday").exists()


def test_a_conversation_never_continues_itself(owner: Owner) -> None:
    create(owner, "monday")
    create(owner, "tuesday", continues="monday")

    for continued in ("tuesday", "monday"):
        with pytest.raises(Unprocessable):
            say_continuing(owner, "monday", continued)


def say_continuing(owner: Owner, conversation_id: str, continues: str) -> None:
    opening = ConversationDefaults(continues=continues)
    store_turns(owner, conversation_id, drafts=[turn("hi")], embedded=NOTHING, now=NOW, defaults=opening)


def test_a_conversation_continues_only_one_other(owner: Owner) -> None:
    for name in ("monday", "sunday"):
        create(owner, name)
    create(owner, "tuesday", continues="monday")

    say_continuing(owner, "tuesday", "monday")
    with pytest.raises(Conflict):
        say_continuing(owner, "tuesday", "sunday")


def test_a_conversation_does_not_continue_itself_through_one_created_later(owner: Owner) -> None:
    create(owner, "monday")
    # as an import may leave it
    Conversation.objects.update(continues="tuesday")

    with pytest.raises(Unprocessable):
        create(owner, "tuesday", continues="monday")
    create(owner, "tuesday")
    with pytest.raises(Unprocessable):
        change_conversation(owner, "tuesday", changes={"continues": "monday"}, now=NOW)


def test_missing_values_are_set_by_repeated_turns_too(owner: Owner) -> None:
    create(owner, "sunday")
    hello = turn("hello", client_id="1")
    say(owner, hello, conversation_id="monday")

    opening = ConversationDefaults(title="A pump", continues="sunday", metadata={"ticket": 7})
    store_turns(owner, "monday", drafts=[hello], embedded=NOTHING, now=LATER, defaults=opening)

    row = find_conversation(owner, "monday")
    assert (row.title, row.continues, row.metadata) == ("A pump", "sunday", {"ticket": 7})
    assert (row.turn_count, row.updated_at) == (1, LATER)


def test_existing_values_are_not_replaced(owner: Owner) -> None:
    create_conversation(owner, "c1", defaults=ConversationDefaults(title="A pump", metadata={"ticket": 7}), now=NOW)

    opening = ConversationDefaults(title="A seal", metadata={"ticket": 8})
    store_turns(owner, "c1", drafts=[turn("hello")], embedded=NOTHING, now=NOW, defaults=opening)

    row = find_conversation(owner, "c1")
    assert (row.title, row.metadata) == ("A pump", {"ticket": 7})


@pytest.mark.parametrize("conversation_id", ["", "c" * 101, "c\x00", "c\ud800"], ids=ascii)
def test_an_invalid_id_is_refused_and_not_found(owner: Owner, conversation_id: str) -> None:
    create(owner, "c1")

    with pytest.raises(Unprocessable, match="a conversation id has"):
        create(owner, conversation_id)
    with pytest.raises(Unprocessable, match="a conversation id has"):
        join_conversation(owner, conversation_id, now=NOW)
    with pytest.raises(Unprocessable, match="a conversation id has"):
        talk(owner, 1, conversation_id=conversation_id)
    with pytest.raises(NotFound):
        end_conversation(owner, conversation_id, outcome="", now=NOW)
    assert Conversation.objects.count() == 1


@pytest.mark.parametrize("continues", ["c" * 101, "c\x00", "c\ud800"], ids=ascii)
def test_continuing_an_invalid_id_is_refused(owner: Owner, continues: str) -> None:
    create(owner, "c1")

    with pytest.raises(Unprocessable):
        change_conversation(owner, "c1", changes={"continues": continues}, now=NOW)
    with pytest.raises(Unprocessable):
        say_continuing(owner, "c1", continues)


def test_an_unknown_outcome_is_refused(owner: Owner) -> None:
    talk(owner, 1)

    with pytest.raises(Unprocessable):
        end_conversation(owner, "c1", outcome="banana", now=NOW)

    assert find_conversation(owner, "c1").ended_at is None


@pytest.mark.parametrize(
    ("count", "wait"),
    [
        (29, None),
        (30, timedelta(minutes=conf.SESSION_IDLE_MINUTES)),
        (49, timedelta(minutes=conf.SESSION_IDLE_MINUTES)),
        (50, timedelta(0)),
    ],
)
def test_a_summary_is_due_at_the_threshold_and_from_thirty_on_when_idle(
    owner: Owner, count: int, wait: timedelta | None
) -> None:
    talk(owner, count)

    due = find_conversation(owner, "c1").summarize_after
    assert due == (None if wait is None else NOW + wait)


def test_every_turn_puts_off_the_summary_of_an_idle_conversation(owner: Owner) -> None:
    talk(owner, 30)
    talk(owner, 1, start=30, now=LATER)

    assert find_conversation(owner, "c1").summarize_after == LATER + timedelta(minutes=conf.SESSION_IDLE_MINUTES)


def test_a_turn_does_not_hurry_a_summary_that_failed(owner: Owner) -> None:
    talk(owner, 50)
    Conversation.objects.update(summary_attempts=3, summarize_after=LATER)

    talk(owner, 1, start=50)

    assert find_conversation(owner, "c1").summarize_after == LATER


@pytest.mark.parametrize(("count", "target"), [(29, None), (30, 30), (45, 45)])
def test_ending_a_session_of_thirty_messages_queues_the_summary_of_all(
    owner: Owner, count: int, target: int | None
) -> None:
    talk(owner, count)

    ended = end_conversation(owner, "c1", outcome="success", now=LATER)

    assert (ended.summarize_to, ended.ended_at, ended.outcome) == (target, LATER, "success")
    assert ended.summarize_after == (LATER if target else None)


def test_ending_clears_session_working_memory_and_ledger(owner: Owner) -> None:
    talk(owner, 3)
    place = ConversationRef(account_id=owner.account_id, conversation_id="c1")
    WorkingMemory(owner).set("c1", {"scratchpad": "x"})
    ledger.mark(place, "skill:one")
    session = SessionMemory(session_ref(find_conversation(owner, "c1")))
    session.push_thought("hm", agent_id="assistant", now=NOW)

    ended = end_conversation(owner, "c1", outcome="", now=LATER)

    assert ended.cleared_at == LATER
    assert (WorkingMemory(owner).get("c1"), ledger.get_all(place), session.get_thoughts(10)) == ({}, {}, [])


def test_ending_leaves_other_conversations_alone(owner: Owner) -> None:
    talk(owner, 1)
    talk(owner, 1, conversation_id="c2")
    WorkingMemory(owner).set("c2", {"scratchpad": "x"})

    end_conversation(owner, "c1", outcome="", now=LATER)

    assert WorkingMemory(owner).get("c2") == {"scratchpad": "x"}
    assert find_conversation(owner, "c2").ended_at is None


def test_ending_twice_changes_only_the_outcome(owner: Owner) -> None:
    talk(owner, 1)
    end_conversation(owner, "c1", outcome="failure", now=NOW)

    again = end_conversation(owner, "c1", outcome="success", now=LATER)

    assert (again.ended_at, again.outcome) == (NOW, "success")


def test_a_missing_conversation_cannot_be_ended(owner: Owner) -> None:
    talk(owner, 1)

    with pytest.raises(NotFound):
        end_conversation(Owner(account_id=owner.account_id, agent_id="second"), "c1", outcome="", now=LATER)

    assert find_conversation(owner, "c1").ended_at is None


def test_a_reopened_session_reads_its_latest_messages_from_the_log(owner: Owner) -> None:
    talk(owner, 3)
    end_conversation(owner, "c1", outcome="", now=LATER)

    talk(owner, 1, start=3, now=LATER)

    recent = session_store().recent(find_conversation(owner, "c1"), 10)
    assert [each.text for each in recent] == ["message 0", "message 1", "message 2", "message 3"]
