import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.conversations import (
    MAX_LINE_BYTES,
    BadLine,
    ImportedConversation,
    bounded_lines,
    read_conversations,
    read_locomo,
)
from memory.providers.summaries import Message

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

    (conversation,) = read_conversations([line(user="ana", channel="garden", messages=[turn])])

    moment = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
    message = Message(role="user", name="Ana", content="Hi.", timestamp=moment)
    assert conversation == ImportedConversation(
        number=1, conversation_id="c1", agent_id="planner", user_id="ana", channel="garden", messages=(message,)
    )


def test_what_may_be_left_out_or_null_has_its_default() -> None:
    left_out, null = good(read_conversations([GOOD, line(user=None)]))

    assert left_out == null
    assert (left_out.user_id, left_out.channel) == ("", "_global")
    assert left_out.messages == (Message(role="user", content="Hello."),)


@pytest.mark.parametrize("line_end", ["", "\n", "\r\n"])
def test_a_line_end_is_no_matter(line_end: str) -> None:
    assert len(good(read_conversations([GOOD + line_end, (GOOD + line_end).encode()]))) == 2


def test_a_bad_line_is_numbered_and_does_not_stop_the_rest() -> None:
    items = list(read_conversations([GOOD, "oops", b"\xff\xfe", "", GOOD]))

    assert [item.number for item in bad(items)] == [2, 3, 4]
    assert len(good(items)) == 2


@pytest.mark.parametrize(
    ("text", "told"),
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
        (line(id=""), "id is blank"),
        (line(id="c" * 101), "id String should have at most 100 characters"),
        (line(id="a\x00b"), "id holds a NUL character"),
        (line(user=["ana"]), "user is not a text"),
        (line(channel=" "), "channel is blank"),
        (line(messages={}), "messages is not a list"),
        (line(messages=[]), "messages is empty"),
        (line(messages=["hi"]), "messages[0] is not a JSON object"),
        (line(mood="good"), "mood is no known field"),
        (line_with_turn(content=""), "messages[0].content is blank"),
        (line_with_turn(content="a\x00b"), "messages[0].content holds a NUL character"),
        (line_with_turn(role="r" * 21), "messages[0].role String should have at most 20 characters"),
        (line_with_turn(timestamp="2026-03-02T09:30:00"), "messages[0].timestamp has no time zone"),
        (line_with_turn(timestamp="yesterday"), "messages[0].timestamp is no ISO 8601 time"),
        (line_with_turn(timestamp=1_772_000_000), "messages[0].timestamp is not a text"),
        (line_with_turn(timestamp="0001-01-01T00:00:00+14:00"), "messages[0].timestamp is out of range"),
    ],
)
def test_a_reason_says_what_is_wrong_and_where(text: bytes | str, told: str) -> None:
    assert told in reason(text)


def test_a_reason_is_short_and_printable_whatever_the_field_is_called() -> None:
    told = reason(line(**{"\x1b[31m" + "x" * 10_000: 1, **{f"field{index}": 1 for index in range(50)}}))

    assert told.isascii()
    assert told.isprintable()
    assert len(told) < 300
    assert told.endswith("; and 48 more")


def test_a_reason_does_not_repeat_what_was_said() -> None:
    assert "hunter2" not in reason(line_with_turn(content=["hunter2"], timestamp="hunter2"))


@given(st.lists(st.one_of(ANY_TEXT, st.binary(max_size=60), st.just(GOOD))))
def test_every_line_yields_exactly_one_item(lines: list[str | bytes]) -> None:
    items = list(read_conversations(lines))

    assert len(items) == len(lines)
    assert len(good(items)) == lines.count(GOOD)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | ANY_TEXT, st.lists, max_leaves=5))
def test_a_turn_of_any_content_is_read_or_told(content: Any) -> None:
    (item,) = read_conversations([line_with_turn(content=content)])

    assert isinstance(item, BadLine) or item.messages[0].content == content


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
    assert reason(b" " * (MAX_LINE_BYTES + 1)) == "is longer than 8388608 bytes"


SESSION = [
    {"speaker": "Iris", "dia_id": "D1:1", "text": "The kiln cracked."},
    {"speaker": "Omar", "dia_id": "D1:2", "text": "Look.", "blip_caption": "a cracked kiln", "query": "kiln"},
    {"speaker": "Omar", "dia_id": "D1:3", "text": "", "blip_caption": "a new kiln"},
]


def sample(**changes: Any) -> dict[str, Any]:
    conversation = {"speaker_a": "Iris", "session_1": SESSION, "session_1_date_time": "12:05 am on 29 February, 2024"}
    return {"sample_id": "pots", "conversation": {**conversation, **changes}, "qa": []}


def locomo(*samples: Any) -> list[ImportedConversation | BadLine]:
    return list(read_locomo(json.dumps(samples)))


def test_a_locomo_session_is_a_conversation_of_its_sample() -> None:
    (conversation,) = good(locomo(sample()))

    assert (conversation.conversation_id, conversation.agent_id, conversation.user_id) == ("pots-1", "pots", "")
    assert {message.timestamp for message in conversation.messages} == {datetime(2024, 2, 29, 0, 5, tzinfo=UTC)}
    assert [(message.name, message.content) for message in conversation.messages] == [
        ("Iris", "The kiln cracked."),
        ("Omar", "Look. [shares a cracked kiln]"),
        ("Omar", "[shares a new kiln]"),
    ]


def test_locomo_sessions_come_in_the_order_of_their_numbers() -> None:
    time = "1:56 pm on 8 May, 2023"
    later = {"session_10": SESSION, "session_10_date_time": time, "session_2": SESSION, "session_2_date_time": time}

    assert [item.conversation_id for item in good(locomo(sample(**later)))] == ["pots-1", "pots-2", "pots-10"]


def test_a_locomo_date_without_a_session_is_no_conversation() -> None:
    assert len(locomo(sample(session_2_date_time="1:56 pm on 8 May, 2023"))) == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"session_2": SESSION}, "session_2: date_time is missing or not a text"),
        ({"session_2": SESSION, "session_2_date_time": "soon"}, "session_2: date_time is no time like"),
        ({"session_1": []}, "session_1: turns is empty"),
        ({"session_1": "hello"}, "session_1: turns is not a list"),
        ({"session_1": [{"speaker": "Iris"}]}, "session_1: turns[0].text is missing"),
        ({"session_1": [{"speaker": "Iris", "text": " "}]}, "session_1: turns[0] is blank"),
        ({"session_1": [{"speaker": "Iris", "text": "\x00"}]}, "session_1: turns[0].text holds a NUL character"),
    ],
)
def test_a_bad_locomo_session_is_told_with_its_sample_and_the_next_sample_is_read(
    changes: dict[str, Any], told: str
) -> None:
    items = locomo(sample(), sample(**changes), sample())

    (complaint,) = bad(items)
    assert complaint.number == 2
    assert complaint.reason.startswith(told)
    assert items[-1] == items[0]


@pytest.mark.parametrize("value", [5, None, [], {}, {"sample_id": "x"}, {"sample_id": "x" * 101, "conversation": {}}])
def test_a_bad_locomo_sample_is_told_by_its_place(value: Any) -> None:
    items = locomo(value, sample())

    assert [item.number for item in bad(items)] == [1]
    assert len(good(items)) == 1


@pytest.mark.parametrize("document", ["", "{}", "oops", b"\xff", "\ud800", "[" * 100_000, "NaN", '["\\ud800"]'])
def test_a_document_that_is_no_list_is_one_bad_line(document: bytes | str) -> None:
    assert list(read_locomo(document)) == [BadLine(number=1, reason="the file is no JSON list of samples")]


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
