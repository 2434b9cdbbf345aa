"""`/conversations/{id}/turns` as NDJSON: bodies of any length, stored as a whole or not at all."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from memory import conf
from memory.models import Conversation, JobRun, Turn
from memory_project.http.problems import Problem
from memory_project.http.streams import report_full_disk, split_body_lines, write_json_array
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.hostile import HOSTILE_BODIES, HostileBody
from tests.memory.turn_lines import FOR_AGENT, NDJSON, TURNS, body_of, line

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(api_key: str, embedding_server: EmbeddingServer, empty_redis: None) -> ServiceClient:
    return ServiceClient(api_key)


def stream(client: ServiceClient, body: bytes, target: str = FOR_AGENT, **headers: str) -> Any:
    return client.generic("POST", target, body, NDJSON, **headers)


def placed(answer: Any) -> list[dict[str, Any]]:
    """Return the turns of a streamed answer. Reading it closes it."""
    turns: list[dict[str, Any]] = json.loads(answer.getvalue())["turns"]
    return turns


def test_each_line_is_stored_as_a_turn_and_answered_in_json(client: ServiceClient) -> None:
    answer = stream(client, body_of(line(number) for number in range(3)))

    turns = placed(answer)
    assert (answer.status_code, answer["Content-Type"]) == (201, "application/json")
    assert [(each["index"], each["embedding"]) for each in turns] == [(at, "stored") for at in range(3)]
    assert list(Turn.objects.order_by("index").values_list("text", flat=True)) == [f"message {at}" for at in range(3)]


def test_more_than_a_thousand_lines_are_stored_in_order(client: ServiceClient) -> None:
    turns = placed(stream(client, body_of(line(number) for number in range(2_500))))

    assert [each["index"] for each in turns] == list(range(2_500))
    assert [each["embedding"] for each in turns] == ["stored"] * 200 + ["pending"] * 2_300
    assert [str(found) for found in Turn.objects.order_by("index").values_list("id", flat=True)] == [
        each["id"] for each in turns
    ]


def test_query_parameters_name_the_agent_user_and_channel_of_a_stream(client: ServiceClient) -> None:
    placed(stream(client, body_of([line(0)])))

    placed(stream(client, body_of([line(1)]), FOR_AGENT.replace("c1", "c2") + "&user_id=ana&channel=p&continues=c1"))

    stored = Turn.objects.get(conversation_id="c2")
    assert stored.log.continues == "c1"
    assert (stored.agent_id, stored.user_id, stored.channel) == ("assistant", "ana", "p")


def test_a_stream_repeated_with_the_same_client_ids_is_stored_once(client: ServiceClient) -> None:
    body = body_of(line(number, client_id=f"m-{number}") for number in range(1_500))

    first, again = (placed(stream(client, body)) for _ in range(2))

    assert [each["id"] for each in first] == [each["id"] for each in again]
    assert Turn.objects.count() == 1_500


def test_a_long_stream_is_queued_for_a_summary(client: ServiceClient) -> None:
    placed(stream(client, body_of(line(number) for number in range(conf.SUMMARY_THRESHOLD))))

    assert JobRun.objects.filter(job="summarize").count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_session_contains_the_latest_turns_of_a_stream(client: ServiceClient) -> None:
    placed(stream(client, body_of(line(number) for number in range(1_001))))

    messages = client.get("/conversations/c1/messages?agent_id=assistant&limit=100").json()["messages"]

    assert [each["index"] for each in messages] == list(range(901, 1_001))


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"role": "user", "content": "x"}', 1),
        (body_of([line(0)]) + b"\n \r\n", 1),
        (b"\r\n".join([b'{"role":"user","content":"x"}'] * 2), 2),
    ],
    ids=["no line feed at the end", "blank lines at the end", "carriage returns"],
)
def test_all_usual_line_endings_are_accepted(client: ServiceClient, body: bytes, count: int) -> None:
    assert len(placed(stream(client, body))) == count
    assert Turn.objects.count() == count


HOSTILE_LINES = [hostile for hostile in HOSTILE_BODIES if hostile.status == 400]


@pytest.mark.parametrize("hostile", HOSTILE_LINES, ids=lambda hostile: hostile.name)
def test_a_hostile_line_is_refused_by_its_number_and_nothing_is_stored(
    client: ServiceClient, hostile: HostileBody
) -> None:
    refused = stream(client, body_of([line(0), line(1)]) + hostile.body + b"\n" + body_of([line(3)]))

    assert (refused.status_code, refused.json()["code"], refused.json()["line"]) == (400, "invalid_line", 3)
    assert not Conversation.objects.exists()


def test_an_invalid_line_is_refused_with_its_number_and_fields(client: ServiceClient) -> None:
    refused = stream(client, body_of([*map(line, range(2_000)), line(2_000, role="narrator", colour="red")]))

    assert (refused.json()["line"], list(refused.json()["errors"])) == (2_001, ["role", "colour"])
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(("change", "status"), [({"index": 5}, 409), ({"index": 5_000}, 422)], ids=["taken", "jumps"])
def test_a_rule_broken_by_a_late_line_leaves_nothing_stored(
    client: ServiceClient, change: dict[str, int], status: int
) -> None:
    refused = stream(client, body_of([*map(line, range(1_500)), line(1_500, **change)]))

    assert (refused.status_code, "turns[1500]" in refused.json()["detail"]) == (status, True)
    assert not Conversation.objects.exists()


def test_a_blank_line_between_others_is_refused(client: ServiceClient) -> None:
    refused = stream(client, body_of([line(0)]) + b"\n" + body_of([line(1)]))

    assert (refused.status_code, refused.json()["line"]) == (400, 2)


@pytest.mark.parametrize("body", [b"", b"\n", b" \n\n"], ids=repr)
def test_an_empty_stream_is_refused(client: ServiceClient, body: bytes) -> None:
    refused = stream(client, body)

    assert (refused.status_code, refused.json()["detail"]) == (400, "The stream is empty. Send at least one turn.")


def test_a_line_over_the_limit_is_refused_by_its_number(client: ServiceClient, settings: Settings) -> None:
    settings.BODY_LIMIT_BYTES = 1_000

    refused = stream(client, body_of([line(0), line(1, content="x" * 1_000)]))

    assert (refused.status_code, refused.json()["code"]) == (413, "line_too_long")
    assert (refused.json()["line"], refused.json()["limit_bytes"]) == (2, 1_000)


def test_a_stream_repeated_with_its_idempotency_key_is_stored_once(client: ServiceClient) -> None:
    first = stream(client, body_of([line(0), line(1)]), HTTP_IDEMPOTENCY_KEY="k1")
    again = stream(client, body_of([line(0), line(1)]), HTTP_IDEMPOTENCY_KEY="k1")
    other = stream(client, body_of([line(0)]), HTTP_IDEMPOTENCY_KEY="k1")

    assert (again.status_code, again["Idempotency-Replayed"]) == (201, "true")
    assert placed(first) == json.loads(again.content)["turns"]
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert Turn.objects.count() == 2


def test_a_refused_stream_is_corrected_under_its_idempotency_key(client: ServiceClient) -> None:
    refused = stream(client, body_of([line(0, content=3)]), HTTP_IDEMPOTENCY_KEY="k1")
    corrected = stream(client, body_of([line(0)]), HTTP_IDEMPOTENCY_KEY="k1")

    assert (refused.status_code, len(placed(corrected))) == (400, 1)


def test_the_long_answer_of_a_stream_is_recorded_as_a_number(client: ServiceClient, settings: Settings) -> None:
    settings.ANSWER_LIMIT_BYTES = 100
    placed(stream(client, body_of([line(0), line(1)]), HTTP_IDEMPOTENCY_KEY="k1"))

    again = stream(client, body_of([line(0), line(1)]), HTTP_IDEMPOTENCY_KEY="k1")

    assert json.loads(again.content) == {"turns": [], "cut": {"turns": 2}}
    assert Turn.objects.count() == 2


def test_a_stream_without_an_agent_is_not_read(client: ServiceClient) -> None:
    assert client.generic("POST", TURNS, b"", NDJSON, CONTENT_LENGTH="1000000000000").status_code == 400


def test_a_stream_without_a_key_is_not_read(client: ServiceClient) -> None:
    nobody = ServiceClient("")

    assert nobody.generic("POST", FOR_AGENT, b"", NDJSON, CONTENT_LENGTH="1000000000000").status_code == 401


def test_other_resources_accept_no_streams(client: ServiceClient) -> None:
    assert client.generic("POST", "/agents", body_of([{"agent_id": "planner"}]), NDJSON).status_code == 415


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b", b"\n", b"c"], [b"ab", b"c"]),
        ([b"a\n", b"\n", b" \n"], [b"a"]),
        ([b"a\n\n", b" "], [b"a"]),
        ([], []),
    ],
)
def test_lines_are_split_independently_of_chunk_boundaries(pieces: list[bytes], lines: list[bytes]) -> None:
    assert list(split_body_lines(pieces, limit_bytes=10)) == lines


def test_a_full_disk_is_reported_as_507_no_space() -> None:
    with pytest.raises(Problem) as refused, report_full_disk(), Path("/dev/full").open("wb", buffering=0) as disk:
        write_json_array(disk, "turns", [])

    assert (refused.value.details.status, refused.value.details.code) == (507, "no_space")


def test_an_empty_answer_is_an_empty_array() -> None:
    target = BytesIO()

    write_json_array(target, "turns", [])

    assert json.load(target) == {"turns": []}
