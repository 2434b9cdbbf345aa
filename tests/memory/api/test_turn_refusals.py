"""Refusals of `/conversations/{id}/turns`: errors by position, and nothing stored."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.models import Conversation
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of
from tests.hostile import HOSTILE_IDS
from tests.memory.api.turn_requests import TURNS, contents, log, say, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(api_key: str, embedding_server: EmbeddingServer, empty_redis: None) -> ServiceClient:
    return ServiceClient(api_key)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"role": "narrator"}, "role"),
    ({"role": []}, "role"),
    ({"colour": "red"}, "colour"),
    ({"content": "x" * 1_048_577}, "content"),
    ({"content": "é" * 600_000}, "content"),
    ({"content": [{"type": "text", "text": "x" * 1_048_577}]}, "content"),
    ({"content": " \n\t "}, "content"),
    ({"content": ""}, "content"),
    ({"content": None}, "content"),
    ({"content": 7}, "content"),
    ({"content": []}, "content"),
    ({"content": ["hello"]}, "content"),
    ({"content": [{"text": "hello"}]}, "content"),
    ({"timestamp": "2026-05-04T12:00:00"}, "timestamp"),
    ({"timestamp": "yesterday"}, "timestamp"),
    ({"timestamp": 1_777_777_777}, "timestamp"),
    ({"timestamp": "0001-01-01T00:00:00+14:00"}, "timestamp"),
    ({"event_time": "yesterday"}, "event_time"),
    ({"event_time": "9000-01-01T00:00:00Z"}, "event_time"),
    ({"event_time": "2026-05-04T12:00:00Z", "timestamp": "2026-05-04T12:00:01Z"}, "event_time"),
    ({"metadata": "none"}, "metadata"),
    ({"metadata": {"x": "y" * 16_384}}, "metadata"),
    ({"index": -1}, "index"),
    ({"index": "0"}, "index"),
    ({"index": 0.5}, "index"),
    ({"index": True}, "index"),
    ({"index": 10**30}, "index"),
    ({"name": "a\nb"}, "name"),
    ({"model": "x" * 101}, "model"),
    ({"tool_calls": "none"}, "tool_calls"),
    ({"tool_calls": [{"type": []}]}, "tool_calls"),
    ({"tool_calls": [{"type": "function"}]}, "tool_calls"),
    ({"tool_call_id": 7}, "tool_call_id"),
    ({"refusal": {}}, "refusal"),
    ({"audio": "loud"}, "audio"),
    ({"embedding": "none"}, "embedding"),
    ({"embedding_model": ""}, "embedding_model"),
]


@pytest.mark.parametrize(("change", "field"), REFUSED, ids=lambda value: str(value)[:40])
def test_an_error_names_the_position_and_field_of_the_turn(
    client: ServiceClient, change: dict[str, Any], field: str
) -> None:
    refused = say(client, turn(), turn() | change)

    assert (refused.status_code, list(refused.json()["errors"])) == (400, [f"turns.1.{field}"])
    assert not Conversation.objects.exists()


def test_an_error_names_the_field_that_was_sent(client: ServiceClient) -> None:
    blank, foreign = {"role": "user", "text": " "}, {"role": "user", "content": "hello", "index": 7}
    of_agent, learn = {"agent_id": "assistant"}, {"agent_id": "assistant", "infer": True}

    errors = [
        say(client, turn(), blank).json()["errors"],
        client.post(TURNS, of_agent | blank).json()["errors"],
        client.post("/memories", learn | {"messages": [blank]}).json()["errors"],
        client.post("/facts", of_agent | {"text": ""}).json()["errors"],
        client.post("/facts", of_agent | {"claim": ""}).json()["errors"],
    ]
    details = [
        say(client, turn(), foreign).json()["detail"],
        client.post(TURNS, of_agent | foreign).json()["detail"],
        client.post("/memories", learn | {"messages": [turn(), foreign]}).json()["detail"],
    ]

    assert [list(each) for each in errors] == [["turns.1.text"], ["text"], ["messages.0.text"], ["text"], ["claim"]]
    gap = "index 7 leaves a gap, the next is"
    assert details == [f"turns[1]: {gap} 1.", f"The turn: {gap} 0.", f"messages[1]: {gap} 1."]


def test_a_conflict_names_the_message_that_was_sent(client: ServiceClient) -> None:
    learn: dict[str, Any] = {"agent_id": "assistant", "infer": True, "conversation_id": "c1"}
    say(client, turn("first", client_id="m1"))

    named = client.post("/memories", learn | {"messages": [turn("other", client_id="m1")]})
    placed = client.post("/memories", learn | {"messages": [turn("other", index=0)]})

    assert [each.status_code for each in (named, placed)] == [409, 409]
    assert [each.json()["detail"].split(":")[0] for each in (named, placed)] == ["messages[0]", "messages[0]"]


@pytest.mark.parametrize("client_id", HOSTILE_IDS, ids=repr)
def test_an_invalid_client_id_is_refused(client: ServiceClient, client_id: Any) -> None:
    assert say(client, turn(client_id=client_id)).status_code == 400


def test_a_turn_with_oversized_tool_calls_is_refused(client: ServiceClient) -> None:
    calls = [{"type": "function", "function": {"name": "f", "arguments": "x" * 1_048_576}}]

    refused = say(client, turn(tool_calls=calls))

    assert list(refused.json()["errors"]) == ["turns.0"]


def test_a_time_five_minutes_ahead_is_the_latest_accepted(client: ServiceClient) -> None:
    answers = [
        say(client, turn(timestamp=(datetime.now(UTC) + timedelta(seconds=each)).isoformat())) for each in (290, 310)
    ]

    assert [answer.status_code for answer in answers] == [201, 400]
    assert list(answers[1].json()["errors"]) == ["turns.0.timestamp"]


def test_content_of_exactly_the_maximum_size_is_accepted(client: ServiceClient) -> None:
    assert say(client, turn("é" * 524_288)).status_code == 201


def test_more_than_a_thousand_turns_are_refused_before_any_is_validated(client: ServiceClient) -> None:
    refused = say(client, *[None] * 1_001)

    assert (refused.status_code, refused.json()["code"], refused.json()["limit"]) == (413, "too_many_turns", 1_000)


@pytest.mark.parametrize("turns", [[], None, "hello", {"role": "user"}], ids=repr)
def test_an_invalid_list_of_turns_is_refused(client: ServiceClient, turns: Any) -> None:
    refused = client.post(TURNS, {"agent_id": "assistant", "turns": turns})

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["turns"])


def test_only_the_first_errors_are_reported(client: ServiceClient) -> None:
    refused = say(client, *[None] * 1_000)

    assert list(refused.json()["errors"]) == [f"turns.{at}" for at in range(20)]


def test_only_the_first_unknown_fields_are_reported(client: ServiceClient) -> None:
    refused = say(client, turn() | {f"field {at}": at for at in range(1_000)})

    assert len(refused.json()["errors"]) == 20


def test_query_parameters_of_a_stream_are_refused_with_a_json_body(client: ServiceClient) -> None:
    refused = client.post(f"{TURNS}?agent_id=assistant", {"agent_id": "assistant", "turns": [turn()]})

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["agent_id"])


def test_an_index_that_leaves_a_gap_or_is_in_use_is_refused_and_stores_nothing(client: ServiceClient) -> None:
    say(client, turn("first"))

    jumps = say(client, turn("second"), turn("far", index=5))
    taken = say(client, turn("second"), turn("other", index=0))

    assert (jumps.status_code, taken.status_code) == (422, 409)
    assert contents(log(client)) == ["first"]


def test_a_client_id_used_for_another_message_is_a_conflict(client: ServiceClient) -> None:
    say(client, turn("first", client_id="m-1"))

    assert say(client, turn("other", client_id="m-1")).status_code == 409


def test_vectors_sent_by_the_client_are_stored_if_their_width_matches(
    client: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    vector = vector_of("hello").tolist()

    stored = say(client, turn(embedding=vector), turn(embedding=vector, embedding_model=MODEL))
    refused = say(client, turn(embedding=[0.5] * (WIDTH + 1)))

    assert [each["embedding"] for each in stored.json()["turns"]] == ["stored", "stored"]
    assert (refused.status_code, refused.json()["code"]) == (422, "wrong_vector_width")
    assert embedding_server.texts == []


def test_vectors_of_a_new_model_must_have_one_width(client: ServiceClient) -> None:
    vectors = [{"embedding": [0.5] * width, "embedding_model": "theirs"} for width in (3, 4)]

    assert say(client, *[turn() | each for each in vectors]).status_code == 422
