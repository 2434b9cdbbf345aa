"""Corrected turns: the former text is nowhere, and the turn is still a chat message."""

from typing import Any

import pytest
from redis.exceptions import RedisError

from memory.errors import Unprocessable
from memory.extraction.messages import message_of, read_message
from memory.models import AuditEntry, Conversation, Turn
from memory.owner import Owner
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from memory.services.turns import strip_payload_text
from memory.tiers.session_stores import session_store, session_turn
from memory_project import redis
from tests.memory.episodes import NOW
from tests.memory.turns import numbered_texts, say, talk, turn
from tests.round_trips import counted_commands

pytestmark = pytest.mark.usefixtures("empty_redis")

FUNCTION = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"secret": 1}'}}
CUSTOM = {"id": "c2", "type": "custom", "custom": {"name": "write", "input": "secret"}}


@pytest.mark.parametrize(
    ("payload", "left"),
    [
        (None, None),
        ({"content": [{"type": "text", "text": "secret"}]}, None),
        ({"refusal": "secret", "annotations": [{"url": "secret"}], "audio": {"id": "secret"}}, None),
        ({"tool_call_id": "c1", "content": "secret"}, {"tool_call_id": "c1"}),
        (
            {"content": None, "tool_calls": [FUNCTION, CUSTOM]},
            {
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}},
                    {"id": "c2", "type": "custom", "custom": {"name": "write", "input": ""}},
                ]
            },
        ),
        (
            {"function_call": {"name": "search", "arguments": "secret"}},
            {"function_call": {"name": "search", "arguments": "{}"}},
        ),
    ],
)
def test_a_stripped_payload_keeps_only_the_ids_linking_calls_to_results(payload: Any, left: Any) -> None:
    assert strip_payload_text(payload) == left


def test_a_corrected_turn_is_a_message_that_could_be_sent_again(owner: Owner) -> None:
    message = read_message({"role": "assistant", "content": None, "tool_calls": [FUNCTION, CUSTOM]})

    left = message_of(role="assistant", name="", text="[taken out]", payload=strip_payload_text(message.payload))

    assert read_message(left).role == "assistant"
    assert "secret" not in str(left)


@pytest.mark.django_db(transaction=True)
def test_the_buffer_has_the_corrected_text_after_the_commit(owner: Owner) -> None:
    stored = say(owner, turn("secret"), turn("two"))

    correct_memory(owner, stored.turns[0].pk, changes={"text": "[taken out]"}, version=1, now=NOW)

    buffered = session_store().recent(Conversation.objects.get(), 10)
    assert [each.text for each in buffered] == ["[taken out]", "two"]


@pytest.mark.django_db(transaction=True)
def test_a_quarantined_turn_stays_in_the_buffer_without_its_text(owner: Owner) -> None:
    secret = turn([{"type": "text", "text": "secret"}], role="tool")
    stored = say(owner, turn("one"), secret, turn("three"))

    mark_memories(owner, [stored.turns[1].pk], mark="quarantine", now=NOW)

    for _ in ("read from the log", "read from the buffer"):
        buffered = session_store().recent(Conversation.objects.get(), 10)
        assert [(each.index, each.text) for each in buffered] == [(0, "one"), (1, "(withheld)"), (2, "three")]
        assert (buffered[1].content, buffered[1].payload, buffered[1].name) == ("(withheld)", None, "")


@pytest.mark.django_db(transaction=True)
def test_a_released_turn_has_its_text_in_the_buffer_again(owner: Owner) -> None:
    stored = say(owner, turn("one"), turn([{"type": "text", "text": "two"}]))
    mark_memories(owner, [stored.turns[1].pk], mark="quarantine", now=NOW)
    before = session_store().recent(Conversation.objects.get(), 10)

    mark_memories(owner, [stored.turns[1].pk], mark="release", now=NOW)

    assert [each.text for each in before] == ["one", "(withheld)"]
    assert session_store().recent(Conversation.objects.get(), 10) == [session_turn(row) for row in stored.turns]


@pytest.mark.django_db(transaction=True)
def test_turns_are_quarantined_in_several_conversations_together(owner: Owner) -> None:
    rows = [*talk(owner, 2).turns, *talk(owner, 2, conversation_id="c2").turns]

    mark_memories(owner, [row.pk for row in rows], mark="quarantine", now=NOW)

    buffers = [session_store().recent(each, 10) for each in Conversation.objects.all()]
    assert [[each.text for each in buffer] for buffer in buffers] == [["(withheld)", "(withheld)"]] * 2


@pytest.mark.parametrize("mark", ["archive", "pin"])
def test_other_marks_leave_the_buffer_alone(owner: Owner, mark: str) -> None:
    stored = talk(owner, 2)
    session_store().append(stored.conversation, [session_turn(row) for row in stored.turns])

    with counted_commands() as commands:
        mark_memories(owner, [row.pk for row in stored.turns], mark=mark, now=NOW)

    assert commands == []


def test_without_redis_a_turn_is_neither_corrected_nor_quarantined(
    owner: Owner, settings: Any, request: pytest.FixtureRequest
) -> None:
    (row,) = say(owner, turn("secret")).turns
    entries = AuditEntry.objects.count()
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    forget_clients()
    request.addfinalizer(forget_clients)

    with pytest.raises(RedisError):
        correct_memory(owner, row.pk, changes={"text": "[taken out]"}, version=1, now=NOW)
    with pytest.raises(RedisError):
        mark_memories(owner, [row.pk], mark="quarantine", now=NOW)

    assert (Turn.objects.get().text, Turn.objects.get().quarantined) == ("secret", False)
    assert AuditEntry.objects.count() == entries


def test_a_turn_is_not_deleted_out_of_its_conversation(owner: Owner) -> None:
    stored = talk(owner, 3)
    session_store().append(stored.conversation, [session_turn(row) for row in stored.turns])

    with pytest.raises(Unprocessable):
        delete_memories(owner, [stored.turns[1].pk], now=NOW)

    turns = list(Turn.objects.order_by("index"))
    assert numbered_texts(turns) == [(0, "message 0"), (1, "message 1"), (2, "message 2")]


def forget_clients() -> None:
    redis.client.cache_clear()
    redis.script.cache_clear()
