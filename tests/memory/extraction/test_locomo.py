"""LoCoMo's layout: a sample's sessions become conversations, unreadable ones are reported with their sample."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from memory.extraction.imported import BadLine, ImportedConversation
from memory.extraction.locomo import read_locomo


def good(items: Iterable[ImportedConversation | BadLine]) -> list[ImportedConversation]:
    return [item for item in items if isinstance(item, ImportedConversation)]


def bad(items: Iterable[ImportedConversation | BadLine]) -> list[BadLine]:
    return [item for item in items if isinstance(item, BadLine)]


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
    assert [(each.message.name, each.message.text) for each in conversation.messages] == [
        ("Iris", "The kiln cracked."),
        ("Omar", "Look. [shares a cracked kiln]"),
        ("Omar", "[shares a new kiln]"),
    ]


def test_a_turn_is_named_by_its_dia_id() -> None:
    (conversation,) = good(locomo(sample()))

    assert [message.client_id for message in conversation.messages] == ["D1:1", "D1:2", "D1:3"]


@pytest.mark.parametrize("dia_id", [None, 5, "", "D1:1", "x" * 101, "a\x00b"])
def test_a_dia_id_that_names_no_turn_is_left_out(dia_id: Any) -> None:
    turns = [SESSION[0], {"speaker": "Omar", "text": "Look.", "dia_id": dia_id}]

    (conversation,) = good(locomo(sample(session_1=turns)))

    assert [message.client_id for message in conversation.messages] == ["D1:1", ""]


def test_locomo_sessions_come_in_the_order_of_their_numbers() -> None:
    time = "1:56 pm on 8 May, 2023"
    later = {"session_10": SESSION, "session_10_date_time": time, "session_2": SESSION, "session_2_date_time": time}

    assert [item.conversation_id for item in good(locomo(sample(**later)))] == ["pots-1", "pots-2", "pots-10"]


def test_a_locomo_date_without_a_session_is_no_conversation() -> None:
    assert len(locomo(sample(session_2_date_time="1:56 pm on 8 May, 2023"))) == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
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
def test_a_bad_locomo_session_is_reported_and_the_next_sample_is_read(changes: dict[str, Any], expected: str) -> None:
    items = locomo(sample(), sample(**changes), sample())

    (complaint,) = bad(items)
    assert complaint.number == 2
    assert complaint.reason.startswith(expected)
    assert items[-1] == items[0]


@pytest.mark.parametrize("value", [5, None, [], {}, {"sample_id": "x"}, {"sample_id": "x" * 101, "conversation": {}}])
def test_a_bad_locomo_sample_is_reported_by_its_position(value: Any) -> None:
    items = locomo(value, sample())

    assert [item.number for item in bad(items)] == [1]
    assert len(good(items)) == 1


@pytest.mark.parametrize("document", ["", "{}", "oops", b"\xff", "\ud800", "[" * 100_000, "NaN", '["\\ud800"]'])
def test_a_document_that_is_no_list_is_one_bad_line(document: bytes | str) -> None:
    assert list(read_locomo(document)) == [BadLine(number=1, reason="the file is no JSON list of samples")]
