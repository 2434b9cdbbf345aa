"""The in-process API: the documented calls, each behind the wall and with the clock read at the edge."""

import doctest
from datetime import datetime, timedelta

import pytest

from memory import agent_memory
from memory.agent_memory import AgentMemory
from memory.errors import NotFound
from memory.extraction.messages import MalformedMessage, read_message
from memory.models import Account, AuditEntry, Conversation
from memory.owner import Owner
from memory.services.conversations.lifecycle import ConversationDefaults
from memory.services.embedding.embed import embed_texts
from memory.services.prompt_context.layout import NOTICE
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.turns import TurnDraft
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]

USER = {"role": "user", "content": "Where is the key?"}
ASSISTANT = {"role": "assistant", "content": "Under the mat."}


@pytest.fixture
def memory(owner: Owner) -> AgentMemory:
    return AgentMemory(owner, clock=lambda: NOW)


@pytest.fixture
def colleague(account: Account) -> AgentMemory:
    return AgentMemory(Owner(account_id=account.id, agent_id="colleague"), clock=lambda: NOW)


def test_the_example_runs() -> None:
    Account.objects.create(name="default")

    ran = doctest.testmod(agent_memory)

    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_agent_memory_is_opened_by_names(account: Account) -> None:
    opened = AgentMemory.open(account.name, agent_id="assistant", user_id="ana", channel="roof")

    assert opened.owner == Owner(
        account_id=account.id, agent_id="assistant", user_id="ana", channel="roof", actor="python"
    )


def test_opening_an_unknown_account_does_not_create_it() -> None:
    with pytest.raises(NotFound):
        AgentMemory.open("nobody's", agent_id="assistant")

    assert not Account.objects.exists()


def test_stored_turns_are_read_again_in_order(memory: AgentMemory) -> None:
    memory.store_turn("c1", USER)
    stored = memory.store_turns("c1", [ASSISTANT, USER], opening=ConversationDefaults(title="The key"))

    assert [(turn.index, turn.text) for turn in memory.get_conversation("c1")] == [
        (0, "Where is the key?"),
        (1, "Under the mat."),
        (2, "Where is the key?"),
    ]
    assert (stored.conversation.title, [turn.index for turn in stored.new]) == ("The key", [1, 2])


def test_a_turn_draft_can_have_a_timestamp_and_a_client_id(memory: AgentMemory) -> None:
    draft = TurnDraft(message=read_message(USER), client_id="m1", timestamp=NOW - timedelta(hours=2))

    first, again = memory.store_turn("c1", draft), memory.store_turn("c1", draft)

    assert first.id == again.id
    assert first.event_time == NOW - timedelta(hours=2)


@pytest.mark.parametrize("said", [pytest.param(NOW - timedelta(hours=2), id="time"), "2026-03-02T08:30:00+01:00"])
def test_a_message_may_have_a_timestamp_and_a_client_id(memory: AgentMemory, said: object) -> None:
    message = {**USER, "timestamp": said, "client_id": "m1"}

    first, again = memory.store_turn("c1", message), memory.store_turn("c1", message)

    assert first.id == again.id
    assert first.event_time == (said if isinstance(said, datetime) else datetime.fromisoformat(str(said)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timestamp", "yesterday"),
        ("timestamp", "2026-03-02T08:30:00"),
        ("timestamp", 1_700_000_000),
        ("timestamp", 0),
        pytest.param("timestamp", datetime(2026, 3, 2, 8, 30), id="no zone"),  # noqa: DTZ001 - that is the mistake
        ("client_id", 7),
        ("client_id", 0),
        pytest.param("client_id", ["x"], id="list"),
        ("name", 7),
        pytest.param("role", ["user"], id="roles"),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_stored(memory: AgentMemory, field: str, value: object) -> None:
    with pytest.raises(MalformedMessage) as refused:
        memory.store_turn("c1", {**USER, field: value})

    assert refused.value.field == field
    assert not Conversation.objects.exists()


def test_the_time_of_a_message_may_be_its_event_time(memory: AgentMemory) -> None:
    said = "2026-03-02T08:30:00Z"

    assert memory.store_turn("c1", {**USER, "event_time": said}).event_time.isoformat() == "2026-03-02T08:30:00+00:00"
    with pytest.raises(MalformedMessage, match="send one of them"):
        memory.store_turn("c1", {**USER, "event_time": said, "timestamp": "2026-03-02T09:30:00Z"})


def test_a_timestamp_a_client_id_and_a_name_may_be_none(memory: AgentMemory) -> None:
    stored = memory.store_turn("c1", {**USER, "timestamp": None, "client_id": None, "name": None})

    assert (stored.event_time, stored.client_id, stored.name) == (NOW, "", "")


def test_a_malformed_message_is_refused_before_any_turn_is_stored(memory: AgentMemory) -> None:
    with pytest.raises(MalformedMessage):
        memory.store_turns("c1", [USER, {"role": "nobody", "content": "hm"}])

    assert not Conversation.objects.exists()


def test_recent_turns_are_those_of_all_conversations_newest_first(memory: AgentMemory) -> None:
    for hours, conversation_id in ((30, "old"), (2, "c1"), (1, "c2")):
        memory.store_turn(conversation_id, USER, now=NOW - timedelta(hours=hours))

    assert [turn.conversation_id for turn in memory.get_recent_turns()] == ["c2", "c1"]
    assert [turn.conversation_id for turn in memory.get_recent_turns(hours=48, limit=1)] == ["c2"]
    assert memory.get_recent_turns(now=NOW + timedelta(days=3)) == []


def test_turns_are_searched_in_a_window(memory: AgentMemory) -> None:
    memory.store_turn("old", ASSISTANT, now=NOW - timedelta(hours=30))
    memory.store_turn("c1", USER)

    assert [hit.conversation_id for hit in memory.search_turns("Under the mat.").hits] == ["old", "c1"]
    assert [hit.conversation_id for hit in memory.search_turns("mat", time_window_hours=24).hits] == ["c1"]


def test_a_session_is_made_by_writing_and_not_by_reading(memory: AgentMemory) -> None:
    with pytest.raises(NotFound):
        memory.session("c1").get_active_goal()

    memory.session("c1").set_active_goal("g1", "find the key")

    assert memory.session("c1").get_active_goal() == {"goal_id": "g1", "goal_description": "find the key"}


def test_a_session_keeps_turns_thoughts_and_values(memory: AgentMemory) -> None:
    session = memory.session("c1")

    turn = session.add_turn(USER)
    session.push_thought("perhaps the mat")
    session.set("tries", 1, ttl_seconds=60)

    assert [message.id for message in session.get_recent_turns()] == [turn.id]
    assert session.get_thoughts() == [
        {"thought": "perhaps the mat", "agent_id": "assistant", "timestamp": NOW.isoformat()}
    ]
    assert (session.get("tries"), session.get_context()) == (1, {"tries": 1})
    assert (session.delete("tries"), session.get("tries")) == (True, None)


def test_clearing_a_session_leaves_the_log(memory: AgentMemory) -> None:
    session = memory.session("c1")
    session.add_turn(USER)
    session.push_thought("perhaps the mat")

    session.clear_session()

    assert session.get_thoughts() == []
    assert len(memory.get_conversation("c1")) == 1


def test_an_agent_outside_a_conversation_sees_neither_session_nor_log(
    memory: AgentMemory, colleague: AgentMemory
) -> None:
    memory.session("c1").set("secret", 1)
    session = colleague.session("c1")

    reads = (session.get_context, session.get_thoughts, session.get_recent_turns, session.clear_session)
    for read in (*reads, lambda: session.get("secret"), lambda: colleague.get_conversation("c1")):
        with pytest.raises(NotFound):
            read()


def test_agents_share_the_session_of_a_conversation_in_which_both_take_part(
    memory: AgentMemory, colleague: AgentMemory
) -> None:
    memory.session("c1").push_thought("perhaps the mat")

    colleague.session("c1").push_thought("or the pot")

    assert [thought["agent_id"] for thought in memory.session("c1").get_thoughts()] == ["assistant", "colleague"]


def test_the_ledger_reports_which_agent_marked_an_item_first(memory: AgentMemory, colleague: AgentMemory) -> None:
    assert memory.ledger("c1").mark("skill:keys").first
    assert not colleague.ledger("c1").mark("skill:keys").first

    assert memory.ledger("c1").get_all() == {"skill:keys": "injected"}
    assert (memory.ledger("c1").evict("skill:keys"), memory.ledger("c1").check("skill:keys")) == (True, None)


def test_a_context_is_gathered_and_marked(memory: AgentMemory) -> None:
    memory.working_memory.set_scratchpad("c1", "ask Ana")
    episode = EpisodeDraft(conversation_id="c0", summary="The key is under the mat.")
    store_episodes(memory.owner, drafts=[episode], embedded=embed_texts([episode.summary]), now=NOW)
    memory.store_turn("c1", USER)

    shown = memory.context("c1", mark_injected=True)
    again = memory.context("c1", "where?", suppress_injected=True)

    assert shown.context.startswith(f"{NOTICE}\n\n[Working Memory]\nScratchpad: ask Ana\n\n[Episodic Memory")
    assert list(memory.ledger("c1").get_all()) == [shown.items[0].item_key]
    assert [item.text for item in again.items] == ["Where is the key?"]


def test_the_memory_manager_returns_hybrid_memories(memory: AgentMemory) -> None:
    memory.memory_manager.get_memory("c1", now=NOW).add(USER, now=NOW)

    assert [turn.text for turn in memory.get_conversation("c1")] == ["Where is the key?"]


def test_ending_a_conversation_clears_its_session_ledger_and_working_memory(memory: AgentMemory) -> None:
    memory.session("c1").push_thought("perhaps the mat")
    memory.ledger("c1").mark("skill:keys")
    memory.working_memory.set_scratchpad("c1", "ask Ana")

    ended = memory.end_conversation("c1", outcome="success")

    assert (ended.outcome, ended.ended_at, ended.cleared_at) == ("success", NOW, NOW)
    assert (memory.session("c1").get_thoughts(), memory.ledger("c1").get_all()) == ([], {})
    assert memory.working_memory.get("c1") == {}


def test_agent_memory_without_a_clock_uses_the_current_time(owner: Owner) -> None:
    before = datetime.now(NOW.tzinfo)

    turn = AgentMemory(owner).store_turn("c1", USER)

    assert before <= turn.event_time <= datetime.now(NOW.tzinfo)


def test_its_writes_are_audited_under_its_name(account: Account) -> None:
    AgentMemory.open(account.name, agent_id="assistant").store_turn("c1", USER)

    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {"python"}
