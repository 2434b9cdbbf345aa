"""Chat messages as OpenAI's API takes and answers them: what becomes searchable text, and that nothing is lost."""

from typing import Any

import pytest

from memory.extraction.messages import MalformedMessage, message_of, read_message, tools_named

CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"b": 1}'}}
CUSTOM = {"id": "call_2", "type": "custom", "custom": {"name": "draw", "input": "a boat"}}
AUDIO = {"id": "audio_1", "data": "UklGRg==", "expires_at": 1, "transcript": "spoken words"}


def given_back(message: dict[str, Any]) -> dict[str, Any]:
    read = read_message(message)
    return message_of(role=read.role, name=read.name, text=read.text, payload=read.payload)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "content": "hello"}, "hello"),
        ({"role": "developer", "content": [{"type": "text", "text": "be brief"}]}, "be brief"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, "[image_url]"),
        ({"role": "assistant", "content": None, "tool_calls": [CALL, CUSTOM]}, 'look_up({"b": 1})\ndraw(a boat)'),
        ({"role": "assistant", "content": "Wait.", "function_call": CALL["function"]}, 'Wait.\nlook_up({"b": 1})'),
        ({"role": "assistant", "content": None, "refusal": "No."}, "No."),
        ({"role": "assistant", "content": None, "audio": AUDIO}, "spoken words"),
        ({"role": "assistant", "content": None, "audio": {"id": "audio_1"}}, "(empty)"),
        ({"role": "assistant", "content": ""}, "(empty)"),
        ({"role": "tool", "content": "", "tool_call_id": "call_1"}, "(empty)"),
        ({"role": "function", "name": "look_up", "content": None}, "(empty)"),
    ],
)
def test_a_message_is_searchable_by_its_text_and_returned_unchanged(message: dict[str, Any], text: str) -> None:
    assert read_message(message).text == text
    assert given_back(message) == message


def test_null_fields_of_a_message_are_left_out() -> None:
    answer = {"role": "assistant", "content": "Yes.", "refusal": None, "audio": None, "tool_calls": None}

    assert read_message(answer).payload is None
    assert given_back(answer) == {"role": "assistant", "content": "Yes."}


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"content": "hello"}, "role"),
        ({"role": "robot", "content": "hello"}, "role"),
        ({"role": "user", "content": " \n"}, "content"),
        ({"role": "user", "content": None}, "content"),
        ({"role": "assistant", "content": None}, "content"),
        ({"role": "user", "content": [{"text": "no type"}]}, "content"),
        ({"role": "user", "content": 7}, "content"),
        ({"role": "assistant", "content": None, "tool_calls": [{"type": "function"}]}, "tool_calls"),
        ({"role": "assistant", "content": None, "function_call": {}}, "function_call"),
        ({"role": "assistant", "content": None, "refusal": ["No."]}, "refusal"),
    ],
)
def test_the_error_for_a_malformed_message_names_the_field_to_correct(message: dict[str, Any], field: str) -> None:
    with pytest.raises(MalformedMessage) as refusal:
        read_message(message)

    assert refusal.value.field == field


def test_the_tools_of_messages_are_named_once_in_order() -> None:
    payloads = [{"tool_calls": [CALL, CUSTOM]}, None, {"function_call": {"name": "look_up"}}, {}]

    assert tools_named(payloads) == ["look_up", "draw"]
