"""`/conversations/{id}/turns` in JSON: append to the log, and read it page by page."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import conf
from memory.models import Account, Conversation, JobRun, Turn, Vector
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient, segment
from tests.embedding_server import EmbeddingServer
from tests.memory.api.turn_requests import TURNS, contents, log, numbered, say, turn
from tests.memory.turn_lines import FOR_AGENT, NDJSON, body_of, line
from tests.round_trips import counted_commands
from tests.web_server import WebServer, serve, until

pytestmark = pytest.mark.django_db

CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"b": 1, "a": 2}'}}


@pytest.fixture
def client(api_key: str, embedding_server: EmbeddingServer, empty_redis: None) -> ServiceClient:
    return ServiceClient(api_key)


def test_turns_are_returned_in_the_order_in_which_they_were_sent(client: ServiceClient) -> None:
    answer = say(client, *numbered(3))

    placed = answer.json()["turns"]
    assert answer.status_code == 201
    assert [(each["index"], each["embedding"]) for each in placed] == [(at, "stored") for at in range(3)]
    assert [each["id"] for each in placed] == [each["id"] for each in log(client)]


def test_vectors_of_turns_are_stored_before_the_answer(client: ServiceClient) -> None:
    [placed] = say(client, turn()).json()["turns"]

    assert [str(found) for found in Vector.objects.values_list("memory_id", flat=True)] == [placed["id"]]


def test_the_time_of_a_turn_may_be_sent_as_its_event_time(client: ServiceClient) -> None:
    times = {"event_time": "2026-05-04T12:00:00+02:00", "timestamp": "2026-05-04T10:00:00Z"}
    say(client, turn("One.", event_time=times["event_time"]), turn("Two.", **times))
    answer = client.generic("POST", FOR_AGENT, body_of([line(3, event_time=times["event_time"])]), NDJSON)
    b"".join(answer.streaming_content)

    assert [read["timestamp"] for read in log(client)] == ["2026-05-04T10:00:00Z"] * 3


def test_a_turn_is_read_with_all_fields_that_were_sent(client: ServiceClient) -> None:
    sent = turn(name="Ana", model="some-model", client_id="m-1", metadata={"mood": "good"})

    say(client, sent | {"timestamp": "2026-05-04T12:00:00+02:00"}, user_id="ana", channel="project")

    [read] = log(client)
    assert read == read | sent | {"timestamp": "2026-05-04T10:00:00Z", "agent_id": "assistant", "user_id": "ana"}
    assert read["item_key"] == f"turn:{read['id']}"
    assert (read["channel"], read["archived"], read["embedding"]) == ("project", False, "stored")
    assert (read["token_count"] > 0, len(read["content_hash"]), read["created_at"][:2]) == (True, 64, "20")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "", "tool_call_id": "call_1"},
        {"role": "assistant", "content": None, "function_call": {"name": "look_up", "arguments": "{}"}},
        {"role": "function", "name": "look_up", "content": "found"},
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "developer", "content": "be brief", "annotations": [], "audio": {"id": "audio_1"}},
        {"role": "user", "content": [{"type": "text", "text": "this?"}, {"type": "image_url", "image_url": {}}]},
    ],
    ids=lambda message: ",".join(message),
)
def test_messages_in_the_openai_format_are_returned_as_sent(client: ServiceClient, message: dict[str, Any]) -> None:
    assert say(client, message).status_code == 201

    [read] = log(client)
    assert read == read | message


def test_null_fields_of_an_openai_answer_are_accepted_and_dropped(client: ServiceClient) -> None:
    nulls = dict.fromkeys(("name", "tool_calls", "function_call", "refusal", "audio", "annotations", "tool_call_id"))

    assert say(client, {"role": "assistant", "content": "hi"} | nulls).status_code == 201
    assert "tool_calls" not in log(client)[0]


def test_turns_repeated_with_the_same_client_ids_are_stored_once(client: ServiceClient) -> None:
    turns = [turn(f"message {at}", client_id=f"m-{at}") for at in range(3)]

    answers = [say(client, *turns).json() for _ in range(2)]

    assert answers[0] == answers[1]
    assert Turn.objects.count() == 3


def test_a_request_repeated_with_its_idempotency_key_stores_once(client: ServiceClient) -> None:
    body = {"agent_id": "assistant", "turns": [turn()]}

    answers = [client.post(TURNS, body, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2)]

    assert answers[0].content == answers[1].content
    assert Turn.objects.count() == 1


def test_two_hundred_of_a_thousand_turns_are_embedded_before_the_answer(client: ServiceClient) -> None:
    placed = say(client, *numbered(1_000)).json()["turns"]

    assert [each["embedding"] for each in placed] == ["stored"] * 200 + ["pending"] * 800


def test_turns_are_stored_as_pending_when_the_embedder_fails(
    client: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()

    assert say(client, turn()).json()["turns"][0]["embedding"] == "pending"
    assert contents(log(client)) == ["hello"]


def test_a_bound_key_determines_the_agent_of_a_turn(
    bound_api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    assert bound_api.post(TURNS, {"turns": [turn()]}).status_code == 201
    assert bound_api.post(TURNS, {"turns": [turn()], "agent_id": "other"}).status_code == 403
    assert bound_api.get(TURNS).json()["results"][0]["agent_id"] == "assistant"


def test_turns_without_an_agent_are_refused(client: ServiceClient) -> None:
    refused = client.post(TURNS, {"turns": [turn()]})

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["agent_id"])


def test_a_conversation_may_continue_another(client: ServiceClient) -> None:
    say(client, turn())

    answers = [say(client, turn(), conversation_id="c2", continues=other) for other in ("none", "c1", "c9")]

    assert [answer.status_code for answer in answers] == [422, 201, 409]
    assert Conversation.objects.get(conversation_id="c2").continues == "c1"


def test_a_turn_reopens_an_ended_conversation(client: ServiceClient) -> None:
    say(client, turn())
    Conversation.objects.update(ended_at=datetime.now(UTC))

    assert say(client, turn()).status_code == 201
    assert Conversation.objects.get().ended_at is None


def test_a_summary_is_queued_at_the_threshold(client: ServiceClient) -> None:
    say(client, *numbered(conf.SUMMARY_THRESHOLD - 1))
    before = JobRun.objects.filter(job="summarize").count()

    say(client, turn())

    assert (before, JobRun.objects.filter(job="summarize").count()) == (0, 1)


@pytest.mark.parametrize("conversation_id", ["a/b", "ünïcode ✓", "a%2Fb", "x?y#z", "turns", "'; DROP TABLE turns --"])
def test_a_conversation_id_may_contain_any_character(client: ServiceClient, conversation_id: str) -> None:
    say(client, turn(), conversation_id=conversation_id)

    answer = client.get(f"/conversations/{segment(conversation_id)}/turns?agent_id=assistant")

    assert contents(answer.json()["results"]) == ["hello"]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "{{ 7*7 }} {% debug %}",
        "%s %(x)s {}",
        "\u202e\U0001f600\r\n\t",
        "' OR 1=1 --",
        "\\u0000",
    ],
    ids=ascii,
)
def test_hostile_texts_are_returned_unchanged(client: ServiceClient, text: str) -> None:
    sent = turn(text, metadata={text: text})

    say(client, sent)

    assert log(client)[0] == log(client)[0] | sent


def test_the_log_is_paginated_with_the_first_turn_first(client: ServiceClient) -> None:
    say(client, *numbered(5))

    first = client.get(f"{TURNS}?agent_id=assistant&page_size=3").json()
    rest = client.get(first["next"].split("/api/v1", 1)[1]).json()

    assert [each["index"] for each in first["results"] + rest["results"]] == [0, 1, 2, 3, 4]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("&role=user", ["early", "late"]),
        ("&role=assistant", ["middle"]),
        ("&since=2026-05-02T00:00:00Z", ["middle", "late"]),
        ("&until=2026-05-02T00:00:00Z", ["early"]),
        ("&since=2026-05-02T00:00:00Z&until=2026-05-03T00:00:00Z", ["middle"]),
        ("&after_index=0", ["middle", "late"]),
        ("&after_index=0&role=user", ["late"]),
        ("&after_index=2", []),
    ],
)
def test_the_log_is_filtered_by_every_parameter(client: ServiceClient, query: str, found: list[str]) -> None:
    roles = {"early": "user", "middle": "assistant", "late": "user"}
    said = [
        turn(text, role=role, timestamp=f"2026-05-0{day}T00:00:00Z")
        for day, (text, role) in enumerate(roles.items(), 1)
    ]
    say(client, *said)

    assert contents(log(client, query)) == found


@pytest.mark.parametrize(
    "query",
    [
        "role=narrator",
        "since=2026-05-04T12:00:00",
        "until=now",
        "after_index=-1",
        "after_index=x",
        "cursor=x",
        "order=id",
    ],
)
def test_an_invalid_query_parameter_is_refused(client: ServiceClient, query: str) -> None:
    say(client, turn())

    assert client.get(f"{TURNS}?agent_id=assistant&{query}").status_code == 400


def test_only_participants_can_read_the_log(client: ServiceClient, stranger_api: ServiceClient) -> None:
    say(client, turn())

    answers = [client.get(f"{TURNS}?agent_id=other"), stranger_api.get(TURNS), client.get("/conversations/c9/turns")]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert len({answer.json()["detail"] for answer in answers}) == 1


def test_the_same_conversation_id_in_another_account_is_another_conversation(
    client: ServiceClient, stranger_api: ServiceClient
) -> None:
    say(client, turn("ours"))
    say(stranger_api, turn("theirs"))

    assert (contents(log(client)), contents(log(stranger_api))) == (["ours"], ["theirs"])


def test_a_hundred_turns_take_as_many_statements_as_one(client: ServiceClient) -> None:
    say(client, turn())
    counts = []

    for turns in (
        [turn("one more", client_id="m-0")],
        [turn(text["content"], client_id=f"m{text}") for text in numbered(100)],
    ):
        with CaptureQueriesContext(connection) as statements:
            say(client, *turns)
        counts.append(len(statements))

    # a hundred make a summary due: two more, which look for a run that waits and queue one. They are compared with the
    # latest turns: one statement for vectors, one for texts. What states nothing is not compared with other turns. One
    # before each bulk insert has plans made once
    assert counts == [10, 16]


@pytest.mark.django_db(transaction=True)
def test_any_number_of_turns_takes_four_round_trips_to_redis(client: ServiceClient) -> None:
    say(client, *numbered(2))

    with counted_commands() as for_one:
        say(client, turn("one more"))
    with counted_commands() as for_many:
        say(client, *[turn(f"more {number}") for number in range(30)])

    # rate, vectors known, vectors kept, session
    assert (trips(for_one), trips(for_many)) == (4, 4)


def trips(commands: list[str]) -> int:
    """Count round trips; commands between MULTI and EXEC share one."""
    return sum(not command.startswith(("MULTI", "SET ")) for command in commands)


@pytest.fixture
def web(transactional_db: None, empty_redis: None) -> Any:
    with serve({"MEMORY_WEB_THREADS": "12"}) as server:
        yield server


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


def append(web: WebServer, key: str, client: int, count: int) -> list[int]:
    """Append turns, one per request, and return their indexes."""
    indexes = []
    for number in range(count):
        body = {"agent_id": f"agent-{client}", "turns": [turn(f"{client} says {number}")]}
        post = partial(web.request, "POST", f"/api/v1{TURNS}", key=key, body=json.dumps(body).encode())
        # the server opens one connection to the database after the other: one that is late is a 503, and stores nothing
        answer = until(post, 201)
        indexes.append(json.loads(answer.body)["turns"][0]["index"])
    return indexes


@pytest.mark.django_db(transaction=True)
# what stores them is tested with ten clients by services/turns/test_store.py
@pytest.mark.slow
def test_turns_of_ten_simultaneous_clients_are_neither_lost_nor_reordered(web: WebServer, key: str) -> None:
    with ThreadPoolExecutor(10) as pool:
        indexes = list(pool.map(lambda client: append(web, key, client, 10), range(10)))

    log = dict(Turn.objects.values_list("index", "text"))
    assert sorted(log) == list(range(100))
    assert all(each == sorted(each) for each in indexes)
    said = {f"{client} says {number}": at for client, each in enumerate(indexes) for number, at in enumerate(each)}
    assert {text: at for at, text in log.items()} == said


def test_one_turn_may_be_the_body_itself(client: ServiceClient) -> None:
    said = {"agent_id": "assistant", "text": "hello", "channel": "garden"}
    answer = client.post("/conversations/c1/turns", {"role": "user", **said})

    assert answer.status_code == 201, answer.content
    (turn,) = client.get("/conversations/c1/turns?agent_id=assistant").json()["results"]
    assert (turn["content"], turn["channel"]) == ("hello", "garden")
    refused = client.post("/conversations/c1/turns", {"role": "friend", **said}).json()["errors"]
    assert list(refused) == ["role"]
