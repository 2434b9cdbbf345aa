"""Claude's chats: their messages in order, uses of tools as calls, attachments as parts."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memory.extraction.claude import MAX_ATTACHMENT_CHARACTERS, read_chat
from memory.extraction.imported import ImportedMessage, NothingSaid
from tests.memory.extraction.archived import only, read_all, reason
from tests.memory.extraction.claude_chats import RESULT, USE, chat, said, text_block


def messages_of(*messages: dict[str, Any]) -> tuple[ImportedMessage, ...]:
    return only(read_all(read_chat, chat(*messages))).messages


def test_a_chat_becomes_a_conversation() -> None:
    conversation = only(read_all(read_chat, chat(said("human", "What broke?"), said("assistant", "A seal."))))

    assert (conversation.conversation_id, conversation.title) == ("chat-1", "Pumps")
    assert (conversation.agent_id, conversation.user_id) == ("helper", "ana")
    messages = [(each.message.role, each.message.text, each.client_id) for each in conversation.messages]
    assert messages == [("user", "What broke?", "m-What broke?"), ("assistant", "A seal.", "m-A seal.")]
    moment = datetime(2025, 3, 2, 8, 30, 0, 123_456, tzinfo=UTC)
    assert {(each.timestamp, each.message.payload) for each in conversation.messages} == {(moment, None)}


def test_an_older_message_has_only_its_text() -> None:
    (message,) = messages_of(said("human", "Hi.", content=[]))

    assert message.message.text == "Hi."


def test_tool_uses_become_tool_calls_and_other_blocks_stay_unchanged() -> None:
    blocks = (text_block("Let me look."), USE, RESULT, text_block("It costs 4 EUR."))

    (message,) = messages_of(said("assistant", "Let me look. It costs 4 EUR.", *blocks))

    payload = message.message.payload or {}
    assert payload["content"] == [blocks[0], RESULT, blocks[3]]
    assert payload["tool_calls"] == [
        {"id": "toolu_1", "type": "function", "function": {"name": "web_search", "arguments": '{"query": "seals"}'}}
    ]
    assert message.message.text.splitlines() == [
        "Let me look.",
        "[tool_result]",
        "It costs 4 EUR.",
        'web_search({"query": "seals"})',
    ]


def test_a_message_with_only_a_tool_use_is_not_empty() -> None:
    (message,) = messages_of(said("assistant", "", USE))

    assert (message.message.payload or {})["content"] is None


def test_a_text_with_citations_is_kept_as_a_content_part() -> None:
    cited = text_block("Seals wear.", citations=[{"uuid": "s-1"}])

    (message,) = messages_of(said("assistant", "Seals wear.", cited))

    assert message.message.payload == {"content": [cited]}


def test_the_text_of_an_attachment_is_searchable() -> None:
    attachment = {"file_name": "plan.txt", "file_size": 9, "file_type": "txt", "extracted_content": "Buy seals"}

    (message,) = messages_of(said("human", "Read it.", attachments=[attachment], files=[{"file_name": "a.png"}]))

    assert message.message.text == "Read it.\nBuy seals\n[file]"


def test_a_long_attachment_is_kept_and_not_searched() -> None:
    extracted = "x" * (MAX_ATTACHMENT_CHARACTERS + 1)

    (message,) = messages_of(said("human", "Read it.", attachments=[{"extracted_content": extracted}]))

    assert message.message.text == "Read it.\n[attachment]"
    assert (message.message.payload or {})["content"][1]["extracted_content"] == extracted


def test_empty_messages_are_left_out() -> None:
    assert [each.message.text for each in messages_of(said("human", "Hi."), said("assistant", ""))] == ["Hi."]


def test_of_several_answers_to_a_message_only_the_last_is_kept() -> None:
    root = "00000000-0000-4000-8000-000000000000"
    question = said("human", "Hi.", parent_message_uuid=root)
    answers = [said("assistant", text, parent_message_uuid="m-Hi.") for text in ("First.", "Second.")]

    assert [each.message.text for each in messages_of(question, *answers)] == ["Hi.", "Second."]


@pytest.mark.parametrize("messages", [[], [said("human", "")]])
def test_a_chat_without_a_message_is_empty(messages: list[Any]) -> None:
    assert read_all(read_chat, chat(*messages, name="")) == [NothingSaid(number=1)]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ([], "is not a JSON object"),
        ({}, "uuid is missing; chat_messages is missing"),
        (chat(chat_messages="Hi."), "chat_messages is not a list"),
        (chat(said("robot", "Hi.")), "chat_messages[0].sender"),
        (chat(said("human", "Hi."), said("human", "Hi.")), "client_id is that of messages[0]"),
        (chat(said("human", "Hi.", created_at="noon")), "chat_messages[0].created_at is no ISO 8601 time"),
        (chat(said("human", "a\x00b")), "holds a NUL character"),
        (chat(said("human", "Hi.", {"text": "no type"})), "every part must be an object with a type"),
        (chat(said("human", "Hi.", {"type": "text", "text": 5})), "must be a text"),
        (chat(said("assistant", "", {"type": "tool_use", "name": None})), "every call must name its function"),
        (chat(said("human", "a", parent_message_uuid="m-a")), "chat_messages form a cycle"),
    ],
)
def test_a_bad_entry_is_reported_and_the_next_one_is_read(entry: Any, expected: str) -> None:
    bad, good = read_all(read_chat, entry, chat(said("human", "Hi.")))

    assert expected in reason([bad])
    assert only([good]).number == 2
