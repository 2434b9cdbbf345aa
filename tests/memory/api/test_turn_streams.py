"""`/conversations/{id}/turns` as NDJSON: bodies of any length, stored as a whole or not at all."""

import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from memory import conf
from memory.models import Account, Conversation, JobRun, Turn
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory_project.http.problems import Problem
from memory_project.http.streams import report_full_disk, split_body_lines, write_json_array
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.hostile import HOSTILE_BODIES, HostileBody
from tests.web_server import SharedServers, WebServer, serve

pytestmark = pytest.mark.django_db

NDJSON = "application/x-ndjson"
TURNS = "/conversations/c1/turns"
FOR_AGENT = f"{TURNS}?agent_id=assistant"
MANY = 15_000
LONG = "so it goes " * 200


@pytest.fixture
def client(api_key: str, embedding_server: EmbeddingServer, empty_redis: None) -> ServiceClient:
    return ServiceClient(api_key)


def line(number: int, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": f"message {number}", **fields}


def body_of(lines: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


def stream(client: ServiceClient, body: bytes, target: str = FOR_AGENT, **headers: str) -> Any:
    return client.generic("POST", target, body, NDJSON, **headers)


def placed(answer: Any) -> list[dict[str, Any]]:
    """Return the turns of a streamed answer. Reading it closes it."""
    turns: list[dict[str, Any]] = json.loads(answer.getvalue())["turns"]
    return turns


# what is stored


def test_each_line_is_a_turn_answered_as_in_json(client: ServiceClient) -> None:
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


def test_the_query_says_for_whom(client: ServiceClient) -> None:
    placed(stream(client, body_of([line(0)])))

    placed(stream(client, body_of([line(1)]), FOR_AGENT.replace("c1", "c2") + "&user_id=ana&channel=p&continues=c1"))

    stored = Turn.objects.get(conversation_id="c2")
    assert stored.log.continues == "c1"
    assert (stored.agent_id, stored.user_id, stored.channel) == ("assistant", "ana", "p")


def test_a_stream_sent_twice_under_client_ids_is_stored_once(client: ServiceClient) -> None:
    body = body_of(line(number, client_id=f"m-{number}") for number in range(1_500))

    first, again = (placed(stream(client, body)) for _ in range(2))

    assert [each["id"] for each in first] == [each["id"] for each in again]
    assert Turn.objects.count() == 1_500


def test_a_long_stream_is_queued_for_a_summary(client: ServiceClient) -> None:
    placed(stream(client, body_of(line(number) for number in range(conf.SUMMARY_THRESHOLD))))

    assert JobRun.objects.filter(job="summarize").count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_session_has_the_latest_of_a_stream(client: ServiceClient) -> None:
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
def test_the_end_of_a_line_may_be_any_of_these(client: ServiceClient, body: bytes, count: int) -> None:
    assert len(placed(stream(client, body))) == count
    assert Turn.objects.count() == count


# what is refused


HOSTILE_LINES = [hostile for hostile in HOSTILE_BODIES if hostile.status == 400]


@pytest.mark.parametrize("hostile", HOSTILE_LINES, ids=lambda hostile: hostile.name)
def test_a_hostile_line_is_named_by_its_number_and_nothing_stored(client: ServiceClient, hostile: HostileBody) -> None:
    refused = stream(client, body_of([line(0), line(1)]) + hostile.body + b"\n" + body_of([line(3)]))

    assert (refused.status_code, refused.json()["code"], refused.json()["line"]) == (400, "invalid_line", 3)
    assert not Conversation.objects.exists()


def test_a_mistake_in_a_line_is_named_by_its_field(client: ServiceClient) -> None:
    refused = stream(client, body_of([*map(line, range(2_000)), line(2_000, role="narrator", colour="red")]))

    assert (refused.json()["line"], list(refused.json()["errors"])) == (2_001, ["role", "colour"])
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(("change", "status"), [({"index": 5}, 409), ({"index": 5_000}, 422)], ids=["taken", "jumps"])
def test_a_rule_that_is_broken_late_changes_nothing(client: ServiceClient, change: dict[str, int], status: int) -> None:
    refused = stream(client, body_of([*map(line, range(1_500)), line(1_500, **change)]))

    assert (refused.status_code, "turns[1500]" in refused.json()["detail"]) == (status, True)
    assert not Conversation.objects.exists()


def test_a_blank_line_between_others_is_refused(client: ServiceClient) -> None:
    refused = stream(client, body_of([line(0)]) + b"\n" + body_of([line(1)]))

    assert (refused.status_code, refused.json()["line"]) == (400, 2)


@pytest.mark.parametrize("body", [b"", b"\n", b" \n\n"], ids=repr)
def test_a_stream_of_nothing_is_refused(client: ServiceClient, body: bytes) -> None:
    assert stream(client, body).status_code == 400


def test_a_line_over_the_limit_is_refused_by_its_number(client: ServiceClient, settings: Settings) -> None:
    settings.BODY_LIMIT_BYTES = 1_000

    refused = stream(client, body_of([line(0), line(1, content="x" * 1_000)]))

    assert (refused.status_code, refused.json()["code"]) == (413, "line_too_long")
    assert (refused.json()["line"], refused.json()["limit_bytes"]) == (2, 1_000)


def test_an_idempotency_key_is_refused(client: ServiceClient) -> None:
    refused = stream(client, body_of([line(0)]), HTTP_IDEMPOTENCY_KEY="k1")

    assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_refused")
    assert not Conversation.objects.exists()


def test_without_an_agent_nothing_is_read(client: ServiceClient) -> None:
    assert client.generic("POST", TURNS, b"", NDJSON, CONTENT_LENGTH="1000000000000").status_code == 400


def test_who_has_no_key_is_not_read(client: ServiceClient) -> None:
    nobody = ServiceClient("")

    assert nobody.generic("POST", FOR_AGENT, b"", NDJSON, CONTENT_LENGTH="1000000000000").status_code == 401


def test_other_resources_take_no_streams(client: ServiceClient) -> None:
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
def test_lines_are_the_same_however_they_arrive(pieces: list[bytes], lines: list[bytes]) -> None:
    assert list(split_body_lines(pieces, limit_bytes=10)) == lines


def test_a_full_disk_is_a_problem_of_ours() -> None:
    with pytest.raises(Problem) as refused, report_full_disk(), Path("/dev/full").open("wb", buffering=0) as disk:
        write_json_array(disk, "turns", [])

    assert (refused.value.details.status, refused.value.details.code) == (503, "no_space")


def test_an_answer_of_nothing_is_an_empty_array() -> None:
    target = BytesIO()

    write_json_array(target, "turns", [])

    assert json.load(target) == {"turns": []}


# over real HTTP

PAUSE_SECONDS = 1
"""Seconds that a client may pause in these tests."""


@pytest.fixture
def web(transactional_db: None, empty_redis: None, shared_server: SharedServers) -> WebServer:
    return shared_server({"MEMORY_CLIENT_TIMEOUT_SECONDS": str(PAUSE_SECONDS)})


@pytest.fixture
def own_web(transactional_db: None, empty_redis: None) -> Iterator[WebServer]:
    """Start a server of its own, for what is measured of the server itself."""
    with serve({"MEMORY_CLIENT_TIMEOUT_SECONDS": str(PAUSE_SECONDS)}) as server:
        # the first request loads the whole API, for seconds on a busy machine, while its client's second runs
        assert server.request("GET", "/api/v1/agents").status == 401
        yield server


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


def upload(web: WebServer, key: str, body: Any, *, length: int | None, timeout_seconds: int = 60) -> tuple[int, bytes]:
    """Send a body in pieces, with a length or chunked."""
    wire = http.client.HTTPConnection("127.0.0.1", web.port, timeout=timeout_seconds)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": NDJSON}
    headers |= {"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": str(length)}
    with closing(wire):
        wire.request("POST", f"/api/v1{FOR_AGENT}", body=body, headers=headers, encode_chunked=length is None)
        answer = wire.getresponse()
        return answer.status, answer.read()


class Peak:
    """Maximum memory of a process's children while the block runs, in bytes."""

    def __init__(self, pid: int) -> None:
        self.bytes = 0
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Peak":
        self.bytes = self.first = self._now()
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            self.bytes = max(self.bytes, self._now())

    def _now(self) -> int:
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        return sum(int(Path(f"/proc/{child}/statm").read_text().split()[1]) * 4_096 for child in children)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_chunked", [True, False], ids=["chunked", "of a length"])
def test_many_turns_are_stored_in_little_memory(own_web: WebServer, key: str, is_chunked: bool) -> None:
    body = body_of(line(number, content=f"message {number} {LONG}") for number in range(MANY))
    # what a batch takes is taken once
    first = upload(own_web, key, body_of(line(number, content=LONG) for number in range(1_000)), length=None)
    assert first[0] == 201, first[1]

    with Peak(own_web.pid) as peak:
        length = None if is_chunked else len(body)
        # half a minute's work, which takes far longer beside other tests; it is not time that is looked at
        status, answer = upload(own_web, key, BytesIO(body), length=length, timeout_seconds=240)

    assert status == 201
    assert [each["index"] for each in json.loads(answer)["turns"]] == list(range(1_000, 1_000 + MANY))
    assert Turn.objects.count() == 1_000 + MANY
    assert peak.bytes - peak.first < len(body)


def slowly(pieces: Iterable[bytes], *, pause_seconds: float) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        time.sleep(pause_seconds)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_chunked", [True, False], ids=["chunked", "of a length"])
def test_who_sends_slowly_but_steadily_is_heard_to_the_end(
    shared_server: SharedServers, empty_redis: None, key: str, is_chunked: bool
) -> None:
    longest_pause = 2
    web = shared_server({"MEMORY_CLIENT_TIMEOUT_SECONDS": str(longest_pause)})
    body = body_of([line(0)])
    # far shorter than the longest, since a busy machine sleeps longer than it is told
    pieces = slowly((body[at : at + 1] for at in range(len(body))), pause_seconds=0.16)

    begun = time.monotonic()
    status, _answer = upload(web, key, pieces, length=None if is_chunked else len(body))

    assert (status, Turn.objects.count()) == (201, 1)
    assert time.monotonic() - begun > 3 * longest_pause


def begin(web: WebServer, key: str, framing: str, data: bytes) -> socket.socket:
    """Open a connection that has sent so much of a request."""
    head = f"POST /api/v1{FOR_AGENT} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
    wire = socket.create_connection(("127.0.0.1", web.port), timeout=20)
    wire.sendall(f"{head}Content-Type: {NDJSON}\r\n{framing}\r\n\r\n".encode() + data)
    return wire


WHOLE_LINES = body_of(map(line, range(3)))
FRAMINGS = pytest.mark.parametrize(
    ("framing", "data"),
    [
        ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n" % (len(WHOLE_LINES), WHOLE_LINES)),
        ("Content-Length: 1000000", WHOLE_LINES),
    ],
    ids=["chunked", "of a length"],
)


@FRAMINGS
@pytest.mark.django_db(transaction=True)
def test_who_stalls_is_cut_off_and_nothing_stored(web: WebServer, key: str, framing: str, data: bytes) -> None:
    begun = time.monotonic()

    with begin(web, key, framing, data) as wire:
        answer = wire.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"body_cut_short" in answer
    assert time.monotonic() - begun < PAUSE_SECONDS + 5
    assert not Conversation.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_streams_leave_half_of_the_threads_to_others(transactional_db: None, empty_redis: None, key: str) -> None:
    """The server of these tests has four threads."""
    # the stalled ones are not cut off before the third has come
    with serve({"MEMORY_CLIENT_TIMEOUT_SECONDS": "60"}) as server, ExitStack() as wires:

        def stall() -> socket.socket:
            return wires.enter_context(begin(server, key, "Transfer-Encoding: chunked", b""))

        give_up_at = time.monotonic() + 30
        stalled = [stall(), stall()]
        status, answer = upload(server, key, body_of([line(0)]), length=None)
        while status == 201 and time.monotonic() < give_up_at:
            # one that came while the third was read was refused in its stead
            stalled = [stall() if is_answered(wire) else wire for wire in stalled]
            status, answer = upload(server, key, body_of([line(0)]), length=None)
        health = server.request("GET", "/health/live")

    assert (status, json.loads(answer).get("code"), health.status) == (503, "too_many_streams", 200)


def is_answered(wire: socket.socket) -> bool:
    return bool(select.select([wire], [], [], 0)[0])


@FRAMINGS
@pytest.mark.django_db(transaction=True)
def test_who_vanishes_midway_stores_nothing(web: WebServer, key: str, framing: str, data: bytes) -> None:
    begin(web, key, framing, data).close()

    # the server is done with it by then
    time.sleep(PAUSE_SECONDS + 1)
    assert web.request("GET", "/health/live").status == 200
    assert not Conversation.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("chunk", [b"zz\r\n", b"5;=\r\nab", b"2\r\nabcd\r\n", b"-1\r\n"], ids=repr)
def test_a_chunk_that_is_none_is_refused(web: WebServer, key: str, chunk: bytes) -> None:
    with begin(web, key, "Transfer-Encoding: chunked", chunk) as wire:
        wire.shutdown(socket.SHUT_WR)
        answer = wire.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.django_db(transaction=True)
def test_a_chunked_stream_to_another_resource_is_refused(web: WebServer, key: str) -> None:
    target = "/api/v1/conversations/c1/end"
    headers = {"Content-Type": NDJSON, "Transfer-Encoding": "chunked"}

    answer = web.request("POST", target, key=key, body=b"2\r\n{}\r\n0\r\n\r\n", headers=headers)

    assert answer.status == 415


@pytest.mark.django_db(transaction=True)
def test_a_connection_goes_on_after_a_stream(web: WebServer, key: str) -> None:
    wire = http.client.HTTPConnection("127.0.0.1", web.port, timeout=20)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": NDJSON}
    with closing(wire):
        for _ in range(2):
            wire.request("POST", f"/api/v1{FOR_AGENT}", body=iter([body_of([line(0)])]), headers=headers)
            assert json.loads(wire.getresponse().read())["turns"]
            # longer than a pause within a body may be
            time.sleep(PAUSE_SECONDS + 1)

    assert Turn.objects.count() == 2
