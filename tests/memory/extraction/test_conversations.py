import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.conversations import bounded_lines, read_conversations
from memory.extraction.imported import BadLine, ImportedConversation, ImportedMessage, canonical_time
from memory.extraction.messages import ChatMessage
from memory.models.turns import ROLES

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
GOOD = '{"id": "c1", "agent": "planner", "messages": [{"role": "user", "content": "Hello."}]}'


def line(**changes: Any) -> str:
    return json.dumps({**json.loads(GOOD), **changes})


def line_with_turn(**changes: Any) -> str:
    return line(messages=[{"role": "user", "content": "Hello.", **changes}])


def reason(text: bytes | str) -> str:
    (item,) = read_conversations([text])
    assert isinstance(item, BadLine)
    return item.reason


def good(items: Iterable[ImportedConversation | BadLine]) -> list[ImportedConversation]:
    return [item for item in items if isinstance(item, ImportedConversation)]


def bad(items: Iterable[ImportedConversation | BadLine]) -> list[BadLine]:
    return [item for item in items if isinstance(item, BadLine)]


def test_a_full_line_becomes_a_conversation_with_times_in_utc() -> None:
    turn = {"role": "user", "name": "Ana", "content": "Hi.", "timestamp": "2026-03-02T09:30:00+01:00"}

    (conversation,) = good(read_conversations([line(user="ana", channel="garden", messages=[turn])]))

    moment = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
    message = ImportedMessage(
        message=ChatMessage(role="user", name="Ana", text="Hi."),
        timestamp=moment,
        timestamp_text="2026-03-02T09:30:00+01:00",
    )
    assert (conversation.conversation_id, conversation.agent_id) == ("c1", "planner")
    assert (conversation.user_id, conversation.channel, conversation.messages) == ("ana", "garden", (message,))


def test_the_fields_of_a_conversation_are_kept() -> None:
    fields = {"title": "Pumps", "continues": "c0", "metadata": {"b": 1}, "outcome": "success"}

    (conversation,) = good(read_conversations([line(**fields, ended_at="2026-03-02T09:30:00Z")]))

    assert (conversation.title, conversation.continues) == ("Pumps", "c0")
    assert (conversation.metadata, conversation.outcome) == ({"b": 1}, "success")
    assert conversation.ended_at == datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def test_the_fields_of_a_message_are_kept() -> None:
    fields = {"model": "some-model", "client_id": "m-1", "metadata": {"mood": "good"}, "agent": "second"}

    (conversation,) = good(read_conversations([line_with_turn(**fields)]))

    (message,) = conversation.messages
    assert (message.model, message.client_id) == ("some-model", "m-1")
    assert (message.metadata, message.agent_id) == ({"mood": "good"}, "second")


CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "look_up({})"),
        ({"role": "tool", "tool_call_id": "call_1", "content": "42"}, "42"),
        ({"role": "developer", "content": "Be brief."}, "Be brief."),
        ({"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image_url"}]}, "Look:\n[image_url]"),
        ({"role": "assistant", "content": "Hi.", "refusal": None, "annotations": [], "audio": None}, "Hi."),
    ],
)
def test_the_text_of_a_chat_message_is_read(message: dict[str, Any], text: str) -> None:
    (conversation,) = good(read_conversations([line(messages=[message])]))

    assert conversation.messages[0].message.text == text


@pytest.mark.parametrize(
    ("text", "is_canonical"),
    [
        ("2026-03-02T08:30:00Z", True),
        ("2026-03-02T08:30:00.250000Z", True),
        ("2026-03-02T08:30:00.25Z", False),
        ("2026-03-02T08:30:00+00:00", False),
        ("2026-03-02T09:30:00+01:00", False),
        ("20260302T0830Z", False),
    ],
)
def test_the_original_text_of_a_noncanonical_timestamp_is_kept(text: str, is_canonical: bool) -> None:
    (conversation,) = good(read_conversations([line_with_turn(timestamp=text)]))

    (message,) = conversation.messages
    assert message.timestamp_text == ("" if is_canonical else text)
    assert message.timestamp is not None
    assert (canonical_time(message.timestamp) == text) is is_canonical


def test_an_omitted_or_null_field_has_its_default() -> None:
    left_out, null = good(read_conversations([GOOD, line(user=None)]))

    assert left_out == null
    assert (left_out.user_id, left_out.channel) == ("", "_global")
    assert left_out.messages == (ImportedMessage(message=ChatMessage(role="user", text="Hello.")),)


@pytest.mark.parametrize("line_end", ["", "\n", "\r\n"])
def test_a_line_is_read_with_any_line_ending(line_end: str) -> None:
    assert len(good(read_conversations([GOOD + line_end, (GOOD + line_end).encode()]))) == 2


def test_a_bad_line_is_numbered_and_does_not_stop_the_rest() -> None:
    items = list(read_conversations([GOOD, "oops", b"\xff\xfe", "", GOOD]))

    assert [item.number for item in bad(items)] == [2, 3, 4]
    assert len(good(items)) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n", "is blank"),
        ("oops", "JSON"),
        (GOOD + GOOD, "JSON"),
        ("[" * 100_000, "recursion limit"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        ("\ud800", "is not UTF-8"),
        ("\ufeff" + GOOD, "byte order mark"),
        ("[]", "is not a JSON object"),
        ("{}", "id is missing; agent is missing; messages is missing"),
        (GOOD.replace('"c1"', '"\\ud800"'), "JSON"),
        (GOOD.replace('"c1"', "NaN"), "id is not a text"),
        (GOOD.replace('"c1"', "1" + "0" * 100_000), "number out of range"),
        (line(id=5), "id is not a text"),
        (line(id=""), "id is empty"),
        (line(id="c" * 101), "id String should have at most 100 characters"),
        (line(id="a\x00b"), "id holds a NUL character"),
        (line_with_turn(timestamp="2026-03-02T09:30:00." + "0" * 60 + "Z"), "messages[0].timestamp is no ISO 8601"),
        (line(user=["ana"]), "user is not a text"),
        (line(channel=""), "channel is empty"),
        (line(messages={}), "messages is not a list"),
        (line(messages=[]), "messages is empty"),
        (line(messages=["hi"]), "messages[0] is not a JSON object"),
        (line(mood="good"), "mood is no known field"),
        (line(continues="c1"), "continues names the conversation itself"),
        (line(outcome="fine"), "outcome Input should be"),
        (line(metadata=[]), "metadata is not a JSON object"),
        (line(metadata={"a\x00": 1}), "metadata holds a NUL character"),
        (line(metadata={"a": [0]}).replace("[0]", "[1e999]"), "metadata holds a number that is out of range"),
        (line(messages=[{"role": "user", "content": "Hi.", "client_id": "m"}] * 2), "messages[1].client_id is that of"),
        (line_with_turn(role="robot"), f"messages[0].role must be one of {', '.join(ROLES)}"),
        (line_with_turn(content=[{"type": "x", "y": ["\x00"]}]), "messages[0].content holds a NUL character"),
        (line_with_turn(content="x" * 2_097_153), "messages[0].content is longer than 2097152 bytes"),
        (line_with_turn(tool_calls=[{}]), "messages[0].tool_calls every call must name its function"),
        (line_with_turn(content=""), "messages[0].content must say something"),
        (line_with_turn(content="a\x00b"), "messages[0].content holds a NUL character"),
        (line_with_turn(timestamp="2026-03-02T09:30:00"), "messages[0].timestamp has no time zone"),
        (line_with_turn(timestamp="yesterday"), "messages[0].timestamp is no ISO 8601 time"),
        (line_with_turn(timestamp=1_772_000_000), "messages[0].timestamp is not a text"),
        (line_with_turn(timestamp="0001-01-01T00:00:00+14:00"), "messages[0].timestamp is out of range"),
    ],
)
def test_the_reason_for_a_bad_line_names_the_field_and_the_error(text: bytes | str, expected: str) -> None:
    assert expected in reason(text)


def test_the_reason_for_a_bad_line_is_short_and_printable() -> None:
    text = reason(line(**{"\x1b[31m" + "x" * 10_000: 1, **{f"field{index}": 1 for index in range(50)}}))

    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 300
    assert text.endswith("; and 48 more")


def test_the_reason_for_a_bad_line_does_not_quote_its_content() -> None:
    assert "hunter2" not in reason(line_with_turn(content=["hunter2"], timestamp="hunter2"))


@given(st.lists(st.one_of(ANY_TEXT, st.binary(max_size=60), st.just(GOOD))))
def test_every_line_yields_exactly_one_item(lines: list[str | bytes]) -> None:
    items = list(read_conversations(lines))

    assert len(items) == len(lines)
    assert len(good(items)) == lines.count(GOOD)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | ANY_TEXT, st.lists, max_leaves=5))
def test_a_turn_with_any_content_is_read_or_reported_as_bad(content: Any) -> None:
    (item,) = read_conversations([line_with_turn(content=content)])

    assert isinstance(item, BadLine) or item.messages[0].message.text.strip()


def test_lines_are_read_one_at_a_time() -> None:
    def endless() -> Iterable[str]:
        while True:
            yield GOOD

    items = read_conversations(endless())

    assert isinstance(next(iter(items)), ImportedConversation)


@pytest.mark.parametrize("size_bytes", [100, 101, 102, 201, 202, 203, 1_000])
def test_a_line_over_the_limit_is_cut_and_the_next_one_whole(size_bytes: int) -> None:
    stream = io.BytesIO(b"x" * size_bytes + b"\nshort\n" + b"y" * size_bytes)

    long_line, short_line, last_line = bounded_lines(stream, max_bytes=100)

    assert len(long_line) == 101
    assert short_line == b"short\n"
    assert last_line == b"y" * min(size_bytes, 101)


def test_a_line_over_the_limit_is_refused() -> None:
    (item,) = read_conversations([" " * 101], max_bytes=100)

    assert item == BadLine(number=1, reason="is longer than 100 bytes")


SAMPLE = Path(__file__).parents[3] / "docs" / "sample"


def test_the_sample_that_the_project_ships_is_read_whole() -> None:
    with (SAMPLE / "conversations.jsonl").open("rb") as stream:
        items = list(read_conversations(bounded_lines(stream)))

    assert bad(items) == []
    assert [len(item.messages) > 30 for item in good(items)] == [True] * 3


def test_every_sample_question_names_a_sample_conversation_and_its_agent() -> None:
    questions = json.loads((SAMPLE / "questions.json").read_text("utf-8"))
    with (SAMPLE / "conversations.jsonl").open("rb") as stream:
        agents = {item.conversation_id: item.agent_id for item in good(read_conversations(stream))}

    assert len(questions) >= 10
    assert all(agents[each["conversation"]] == each["agent"] for each in questions)
