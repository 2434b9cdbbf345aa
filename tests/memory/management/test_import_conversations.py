"""`manage.py import_conversations`: turns and one episode per conversation, bad lines reported, resumable."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory import conf
from memory.extraction.imported import ImportedConversation, ImportedMessage
from memory.extraction.messages import ChatMessage
from memory.models import Account, Conversation, EpisodicMemory, Participant, Turn
from memory.owner import Owner
from memory.services.conversations import import_files as imports
from memory.services.conversations.import_files import draft_conversation, import_conversations
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation, find_conversation
from memory.services.conversations.staff_edits import delete_conversation
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.summaries.summarize import latest_summary, summarize_due
from memory.services.turns import get_conversation
from tests.memory.episodes import NOTHING
from tests.memory.management.imports import NOW, WriteLines, conversation, run, spoken
from tests.memory.management.imports import tiny_embedder as tiny_embedder
from tests.memory.management.imports import write_lines as write_lines
from tests.memory.turns import talk

pytestmark = pytest.mark.django_db


def test_a_conversation_becomes_one_episode(account: Account, write_lines: WriteLines) -> None:
    figures, errors, code = run(write_lines(conversation(user="ana", channel="farm")))

    episode = EpisodicMemory.objects.get(account=account)
    assert (figures["imported"], figures["bad"], figures["pending"], errors, code) == (1, 0, 0, "", 0)
    assert (episode.agent_id, episode.user_id, episode.channel) == ("assistant", "ana", "farm")
    row = find_conversation(Owner(account_id=account.id), "c1")
    assert (episode.identity, episode.conversation_id) == (f"import:{row.id}:assistant", "c1")
    assert episode.metadata["log"] == str(row.id)
    assert episode.text.splitlines()[0] == "Ana: The pump in the north field broke."
    assert episode.key_decisions == ["assistant: We will order a new seal.", "Ana: We agreed on the Grundfos seal."]
    assert episode.entities_mentioned == ["Ana", "Grundfos"]
    assert episode.event_time == datetime(2026, 3, 14, 9, 10, tzinfo=UTC)
    assert Participant.objects.filter(account=account, conversation_id="c1", agent_id="assistant").exists()


def test_a_conversation_is_stored_with_its_turns(account: Account, owner: Owner, write_lines: WriteLines) -> None:
    figures, _, _ = run(write_lines(conversation(user="ana", channel="farm", title="Pumps")))

    row, turns = find_conversation(owner, "c1"), get_conversation(owner, "c1")
    assert figures["turns"] == 3
    assert (row.agent_id, row.user_id, row.channel, row.title, row.turn_count) == (
        "assistant",
        "ana",
        "farm",
        "Pumps",
        3,
    )
    assert (row.started_at, row.last_turn_at) == (turns[1].event_time, turns[2].event_time)
    assert [(turn.index, turn.role, turn.name) for turn in turns] == [
        (0, "user", "Ana"),
        (1, "assistant", ""),
        (2, "user", "Ana"),
    ]
    assert {(turn.agent_id, turn.user_id, turn.channel, turn.source) for turn in turns} == {
        ("assistant", "ana", "farm", "import")
    }
    assert turns[1].event_time == datetime(2026, 3, 14, 8, 5, tzinfo=UTC)


@pytest.mark.parametrize(("count", "buffer_from"), [(3, 0), (10, 0), (60, 50)])
def test_an_imported_conversation_is_not_summarized_again(
    owner: Owner, write_lines: WriteLines, count: int, buffer_from: int
) -> None:
    run(write_lines(conversation(messages=[{"role": "user", "content": f"Bean {number}."} for number in range(count)])))

    row = find_conversation(owner, "c1")
    assert (row.turn_count, row.summarized_count, row.buffer_from) == (count, count, buffer_from)
    assert (row.summarize_after, row.summarize_to, row.ended_at) == (None, None, None)


def test_turns_added_after_an_import_are_summarized_at_the_usual_threshold(
    owner: Owner, write_lines: WriteLines
) -> None:
    run(write_lines(conversation(messages=[{"role": "user", "content": f"Bean {number}."} for number in range(60)])))

    early = talk(owner, conf.SUMMARY_THRESHOLD - 1, now=NOW).conversation
    due = talk(owner, 1, now=NOW).conversation

    assert early.summarize_after == NOW + timedelta(minutes=conf.SESSION_IDLE_MINUTES)
    assert (due.turn_count - due.summarized_count, due.summarize_after) == (conf.SUMMARY_THRESHOLD, NOW)


def test_an_imported_episode_is_included_in_the_next_summary_and_archived(
    owner: Owner, write_lines: WriteLines
) -> None:
    run(write_lines(conversation()))
    imported = latest_summary(owner, find_conversation(owner, "c1"))
    start = find_conversation(owner, "c1").turn_count

    talk(owner, conf.SUMMARY_THRESHOLD, start=start, now=timezone.now())
    summarize_due(now=timezone.now(), limit=1)

    latest = latest_summary(owner, find_conversation(owner, "c1"))
    assert imported is not None
    assert latest is not None
    assert imported.text.splitlines()[0] in latest.text
    assert EpisodicMemory.objects.get(id=imported.id).archived


def test_an_imported_conversation_keeps_its_outcome_and_has_no_live_state(
    owner: Owner, write_lines: WriteLines
) -> None:
    run(write_lines(conversation(outcome="success", ended_at="2026-03-14T10:00:00Z", metadata={"ticket": 7})))

    row = find_conversation(owner, "c1")
    assert (row.outcome, row.metadata) == ("success", {"ticket": 7})
    assert row.ended_at == datetime(2026, 3, 14, 10, tzinfo=UTC)
    assert not Conversation.objects.ended_uncleared().exists()


def test_a_turn_of_another_agent_belongs_to_that_agent(account: Account, owner: Owner, write_lines: WriteLines) -> None:
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello.", "agent": "second"}]

    run(write_lines(conversation(messages=[*messages, {"role": "user", "content": "Bye."}])))

    assert [turn.agent_id for turn in get_conversation(owner, "c1")] == ["assistant", "second", "assistant"]
    assert Participant.objects.filter(account=account, agent_id="second", conversation_id="c1").exists()


def test_every_agent_that_wrote_in_a_conversation_gets_its_episode(account: Account, write_lines: WriteLines) -> None:
    path = write_lines(conversation(messages=[said_by("y"), said_by("x"), said_by("y")]))
    run(path)
    run(path)

    episodes = EpisodicMemory.objects.filter(account=account).order_by("agent_id")
    assert [row.agent_id for row in episodes] == ["assistant", "x", "y"]
    assert len({row.text for row in episodes}) == 1


def test_a_conversation_without_an_agent_gives_its_writers_the_episode(account: Account) -> None:
    imported = ImportedConversation(
        number=1, size_bytes=1, conversation_id="c1", agent_id="", messages=tuple(message_by(each) for each in "yx")
    )

    list(import_conversations(account.id, [imported], now=NOW))

    episodes = EpisodicMemory.objects.order_by("agent_id")
    assert [row.agent_id for row in episodes] == ["x", "y"]


def said_by(agent_id: str) -> dict[str, str]:
    return {"role": "assistant", "content": "We agreed on the Grundfos seal.", "agent": agent_id}


def message_by(agent_id: str) -> ImportedMessage:
    message = ChatMessage(role="assistant", name="", text="We agreed on the seal.", payload=None)
    return ImportedMessage(message=message, agent_id=agent_id)


def test_a_message_without_a_time_gets_the_time_of_the_previous_one(owner: Owner, write_lines: WriteLines) -> None:
    times = [None, "2026-03-14T09:00:00Z", None, "2026-03-14T09:30:00Z"]
    messages = [{"role": "user", "content": "Hi.", "timestamp": moment} for moment in times]

    run(write_lines(conversation(messages=messages)))

    turns = get_conversation(owner, "c1")
    assert [turn.event_time.minute for turn in turns] == [0, 0, 0, 30]
    assert [turn.payload for turn in turns] == [{"timestamp": None}, None, {"timestamp": None}, None]


def test_tool_results_and_system_messages_are_not_quoted(account: Account, write_lines: WriteLines) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"part": "seal 7"}'}}
    messages = [
        {"role": "system", "content": "Always answer within 20 words."},
        {"role": "user", "content": "What does the seal cost?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "price 4 EUR, stock 17"},
        {"role": "assistant", "content": "The seal costs 4 EUR."},
    ]

    run(write_lines(conversation(messages=messages)))

    episode = EpisodicMemory.objects.get(account=account)
    assert set(episode.text.splitlines()) <= {"user: What does the seal cost?", "assistant: The seal costs 4 EUR."}
    assert episode.tools_called == ["look_up"]


def test_a_conversation_of_an_older_import_gets_its_turns(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    episode = draft_conversation(spoken("c1"), now=NOW).episode
    assert episode is not None
    older = replace(episode, identity="conversation:c1", metadata={"messages": 3})
    store_episodes(owner, drafts=[older], embedded=NOTHING, now=NOW)

    figures, _, _ = run(write_lines(conversation("c1")))

    row = find_conversation(owner, "c1")
    assert (figures["imported"], figures["turns"], row.summarized_count) == (1, 3, 3)
    (adopted,) = EpisodicMemory.objects.filter(account=account)
    assert (adopted.id, latest_summary(owner, row)) == (episode.id, adopted)
    assert adopted.metadata["last_index"] == 2


def test_the_episode_of_an_older_import_for_another_user_is_left_alone(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    episode = draft_conversation(spoken("c1"), now=NOW).episode
    assert episode is not None
    older = replace(episode, identity="conversation:c1", metadata={"messages": 3})
    store_episodes(replace(owner, user_id="bob"), drafts=[older], embedded=NOTHING, now=NOW)

    run(write_lines(conversation("c1", user="ana")))

    latest = latest_summary(owner, find_conversation(owner, "c1"))
    assert latest is not None
    assert (latest.id == episode.id, latest.user_id) == (False, "ana")


def test_importing_a_deleted_conversation_again_creates_a_new_episode(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    run(write_lines(conversation("c1")))
    delete_conversation(Owner(account_id=account.id), "c1")

    run(write_lines(conversation("c1", messages=[{"role": "user", "content": "Bake bread."}])))

    latest = latest_summary(owner, find_conversation(owner, "c1"))
    assert latest is not None
    assert latest.text == "user: Bake bread."
    assert EpisodicMemory.objects.count() == 2


def test_an_import_whose_episode_cannot_be_stored_is_a_bad_line(
    account: Account, owner: Owner, write_lines: WriteLines
) -> None:
    row = create_conversation(owner, "c1", defaults=ConversationDefaults(), now=NOW)
    taken = EpisodeDraft(conversation_id="c1", summary="Taken.", identity=f"import:{row.id}:assistant")
    store_episodes(owner, drafts=[taken], embedded=NOTHING, now=NOW)

    figures, errors, _ = run(write_lines(conversation("c1")))

    assert (figures["imported"], figures["bad"]) == (0, 1)
    assert errors.strip() == "line 1: conversation 'c1' has an imported episode already"
    assert not Turn.objects.exists()


def test_a_conversation_that_already_has_turns_is_not_imported(owner: Owner, write_lines: WriteLines) -> None:
    talk(owner, 2)

    figures, _, _ = run(write_lines(conversation("c1")))

    assert (figures["imported"], figures["already_there"]) == (0, 1)
    assert len(get_conversation(owner, "c1")) == 2
    assert not EpisodicMemory.objects.exists()


def test_a_conversation_may_continue_one_that_comes_later_or_never(owner: Owner, write_lines: WriteLines) -> None:
    path = write_lines(conversation("c1", continues="c2"), conversation("c2", continues="lost"))

    assert run(path)[2] == 0
    assert [find_conversation(owner, name).continues for name in ("c1", "c2")] == ["c2", "lost"]


def test_a_cycle_of_continued_conversations_is_a_bad_line(owner: Owner, write_lines: WriteLines) -> None:
    path = write_lines(
        conversation("c1", continues="c2"), conversation("c2", continues="c3"), conversation("c3", continues="c1")
    )

    figures, errors, _ = run(path)

    assert (figures["imported"], figures["bad"]) == (2, 1)
    assert errors.strip() == "line 3: conversation 'c3' continues one that continues it"
    assert not Conversation.objects.filter(conversation_id="c3").exists()


def test_an_import_is_refused_if_the_conversation_was_stored_meanwhile(account: Account, owner: Owner) -> None:
    drafted = draft_conversation(spoken("c1"), now=NOW)
    talk(owner, 1)

    with pytest.raises(imports.StoredMeanwhile):
        imports.store_conversation(account.id, drafted, embedded=NOTHING, now=NOW)

    assert len(get_conversation(owner, "c1")) == 1


def test_an_import_leaves_sessions_alone(
    owner: Owner, write_lines: WriteLines, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        run(write_lines(conversation()))

    assert callbacks == []
