"""ChatGPT's chats: the path to the current message, what it hides left out, what is no text kept as a part."""

from typing import Any

import pytest

from memory.extraction.chatgpt import read_chat
from memory.extraction.imported import NothingSaid
from tests.memory.extraction.archived import only, read_all, reason
from tests.memory.extraction.chatgpt_chats import IMAGE, SAID_AT, chat, node, said


def texts(*messages: dict[str, Any]) -> list[str]:
    return [each.message.text for each in only(read_all(read_chat, chat(*messages))).messages]


def test_a_chat_becomes_a_conversation() -> None:
    answer = said("assistant", "A seal.", metadata={"model_slug": "gpt-4o"})

    conversation = only(read_all(read_chat, chat(said("user", "What broke?"), answer)))

    assert (conversation.conversation_id, conversation.title) == ("chat-1", "Pumps")
    assert (conversation.agent_id, conversation.user_id) == ("helper", "ana")
    messages = [(each.message.role, each.message.text, each.client_id, each.model) for each in conversation.messages]
    assert messages == [("user", "What broke?", "m-0", ""), ("assistant", "A seal.", "m-1", "gpt-4o")]
    assert {each.timestamp for each in conversation.messages} == {SAID_AT}
    assert {each.message.payload is None for each in conversation.messages} == {True}


def test_the_id_of_an_older_chat_is_read_from_its_former_field() -> None:
    conversation = only(read_all(read_chat, chat(said("user", "Hi."), conversation_id=None, id="old-1")))

    assert conversation.conversation_id == "old-1"


def test_branches_off_the_current_path_are_left_out() -> None:
    mapping = chat(said("user", "Hi."), said("assistant", "First answer."))["mapping"]
    mapping |= node("again", "m-0", said("assistant", "Second answer."))

    conversation = only(read_all(read_chat, chat(mapping=mapping, current_node="again")))

    assert [each.message.text for each in conversation.messages] == ["Hi.", "Second answer."]


def test_hidden_and_empty_messages_are_left_out() -> None:
    hidden = {"is_visually_hidden_from_conversation": True}

    kept = texts(said("system", ""), said("system", "Be kind.", metadata=hidden), said("user", "Hi."), said("tool"))

    assert kept == ["Hi."]


def test_a_chat_without_a_message_is_empty() -> None:
    assert read_all(read_chat, chat()) == [NothingSaid(number=1)]


def test_a_picture_becomes_a_part() -> None:
    content = {"content_type": "multimodal_text", "parts": [IMAGE, "What is this?"]}

    conversation = only(read_all(read_chat, chat(said("user", content=content))))

    (message,) = conversation.messages
    parts = [{"type": "image_asset_pointer"} | IMAGE, {"type": "text", "text": "What is this?"}]
    assert message.message.payload == {"content": parts}
    assert message.message.text == "[image_asset_pointer]\nWhat is this?"


def test_the_text_of_an_audio_transcription_is_searchable() -> None:
    spoken = {"content_type": "audio_transcription", "text": "Water the beans.", "direction": "in"}

    assert texts(said("user", spoken)) == ["Water the beans."]


def test_an_assistant_message_to_a_tool_becomes_a_tool_call() -> None:
    code = {"content_type": "code", "language": "unknown", "text": "print(2 + 2)"}
    output = {"content_type": "execution_output", "text": "4"}
    result = said("tool", content=output, author={"role": "tool", "name": "python", "metadata": {}})

    conversation = only(read_all(read_chat, chat(said("assistant", content=code, recipient="python"), result)))

    call, answer = (each.message for each in conversation.messages)
    function = {"name": "python", "arguments": "print(2 + 2)"}
    tool_calls = [{"id": "m-0", "type": "function", "function": function}]
    assert call.payload == {"content": None, "tool_calls": tool_calls}
    assert (answer.role, answer.name, answer.text) == ("tool", "python", "4")


def test_content_of_an_unknown_type_is_kept_as_a_part() -> None:
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Seals", "content": "Old ones leak."}]}

    conversation = only(read_all(read_chat, chat(said("assistant", content=thoughts))))

    (message,) = conversation.messages
    assert message.message.payload == {"content": [{"type": "thoughts", "thoughts": thoughts["thoughts"]}]}


def test_attachments_are_kept_in_the_metadata_of_the_message() -> None:
    attachments = [{"id": "file-1", "name": "plan.pdf", "mimeType": "application/pdf"}]

    conversation = only(read_all(read_chat, chat(said("user", "Read it.", metadata={"attachments": attachments}))))

    assert conversation.messages[0].metadata == {"attachments": attachments}


def test_a_title_may_be_missing_or_long() -> None:
    missing, long = read_all(
        read_chat, chat(said("user", "Hi."), title=None), chat(said("user", "Hi."), title="x" * 999)
    )

    assert (only([missing]).title, only([long]).title) == ("", "x" * 200)


def test_a_message_may_have_no_time() -> None:
    conversation = only(read_all(read_chat, chat(said("user", "Hi.", create_time=None))))

    assert conversation.messages[0].timestamp is None


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (5, "is not a JSON object"),
        ({}, "current_node is missing; mapping is missing"),
        (chat(said("user", "Hi."), conversation_id=None, id=None), "conversation_id is missing"),
        (chat(said("user", "Hi."), conversation_id="x" * 101), "at most 100 characters"),
        (chat(said("user", "Hi."), current_node="lost"), "mapping lacks a node of the path"),
        (chat(mapping=node("a", "a", None), current_node="a"), "mapping has a cycle"),
        (chat(mapping={"a": 5}, current_node="a"), "is not a JSON object"),
        (chat(said("robot", "Hi.")), "messages[0].role must be one of"),
        (chat(said("user", "a\x00b")), "holds a NUL character"),
        (chat(said("user", "Hi.", create_time=1e300)), "messages[0].create_time is out of range"),
        (chat(said("user", "Hi.", create_time="noon")), "create_time"),
        (chat(said("user", "Hi.", content=["Hi."])), "content is not a JSON object"),
    ],
)
def test_a_bad_entry_is_reported_and_the_next_one_is_read(entry: Any, expected: str) -> None:
    bad, good = read_all(read_chat, entry, chat(said("user", "Hi.")))

    assert expected in reason([bad])
    assert only([good]).number == 2
