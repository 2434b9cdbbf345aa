"""Paths: ids of any characters, especially slashes, over real HTTP and as WSGI passes them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.models import Account, Agent
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory.tiers.base import MAX_NAME_CHARACTERS
from memory_project.http.paths import ExternalIdConverter, decode_path_info, quote_path, read_raw_path
from tests.api_client import ServiceClient, segment
from tests.hostile import HOSTILE_SEGMENTS
from tests.openapi import read_document
from tests.web_server import SharedServers, WebServer, serve

STRANGE_IDS = [
    "a/b",
    "/",
    "a%2Fb",
    "100%",
    "%",
    "..",
    "a b",
    "a?b",
    "a#b",
    "a;b",
    "ключ",
    "😀",
    "members",
    "{x}",
    "a+b",
]


@pytest.fixture
def web(transactional_db: None, shared_server: SharedServers) -> WebServer:
    return shared_server({})


@pytest.fixture
def own_web(transactional_db: None) -> Iterator[WebServer]:
    """Start a server of its own, for what is measured of the server itself."""
    with serve() as server:
        yield server


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


def test_over_http_an_encoded_slash_in_an_id_does_not_separate_segments(web: WebServer, key: str) -> None:
    for agent_id in STRANGE_IDS:
        body = json.dumps({"agent_id": agent_id}).encode()
        assert web.request("POST", "/api/v1/agents", key=key, body=body).status == 201

    for agent_id in STRANGE_IDS:
        found = web.request("GET", f"/api/v1/agents/{segment(agent_id)}", key=key)
        assert json.loads(found.body)["agent_id"] == agent_id

    assert web.request("GET", "/api/v1/agents/a/b", key=key).status == 404


def test_over_http_a_body_in_chunks_is_read_up_to_the_limit(web: WebServer, key: str) -> None:
    chunked = {"Transfer-Encoding": "chunked"}
    small = b'14\r\n{"agent_id": "chunk"}\r\n0\r\n\r\n'.replace(b"14", b"15")
    large = b"100000\r\n" + b" " * 0x100000 + b"\r\n"

    made = web.request("POST", "/api/v1/agents", key=key, body=small, headers=chunked)
    refused = web.request("POST", "/api/v1/agents", key=key, body=large * 9 + b"0\r\n\r\n", headers=chunked)

    assert (made.status, refused.status) == (201, 413)
    assert json.loads(refused.body)["code"] == "body_too_large"


@pytest.mark.parametrize(
    "framing_and_body",
    [
        b'Content-Length: 100\r\n\r\n{"agent_id": "planner"}',
        b'Content-Length: 100\r\nIdempotency-Key: k\r\n\r\n{"agent_id": "planner"}',
        b'Transfer-Encoding: chunked\r\n\r\n17\r\n{"agent_id": "planner"}\r\n',
        b'Transfer-Encoding: chunked\r\n\r\n99\r\n{"agent_id": "planner"}',
    ],
)
def test_over_http_a_truncated_body_reaches_no_view(web: WebServer, key: str, framing_and_body: bytes) -> None:
    head = f"POST /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n".encode()

    answer = web.send(head + b"Content-Type: application/json\r\n" + framing_and_body)

    assert answer == b""
    assert not Agent.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: 23\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n"],
    ids=["two lengths", "unknown encoding"],
)
def test_over_http_ambiguous_framing_is_refused(web: WebServer, key: str, framing: bytes) -> None:
    head = f"POST /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n".encode()

    answer = web.send(head + framing + b'\r\n17\r\n{"agent_id": "planner"}\r\n0\r\n\r\n')

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"bad_request"' in answer
    assert not Agent.objects.exists()


@pytest.mark.parametrize(
    "head", [b"GET http://[/x HTTP/1.1\r\nHost: a", b"POST /x HTTP/1.1\r\nContent-Length: " + b"9" * 5_000]
)
def test_over_http_a_malformed_head_is_answered(web: WebServer, head: bytes) -> None:
    assert web.send(head + b"\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_over_http_a_body_without_a_key_may_be_as_large_as_a_form(web: WebServer) -> None:
    sizes = {size: web.request("POST", "/api/v1/agents", body=b" " * size).status for size in (60_000, 70_000)}

    assert sizes == {60_000: 401, 70_000: 413}


def test_over_http_malformed_chunks_are_refused(web: WebServer, key: str) -> None:
    head = f"POST /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n".encode()
    body = b'Transfer-Encoding: chunked\r\n\r\n17\r\n{"agent_id": "planner"}0\r\n\r\n'

    answer = web.send(head + b"Content-Type: application/json\r\n" + body)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert not Agent.objects.exists()


@pytest.mark.parametrize("header", ["SCRIPT_NAME", "Script-Name", "PATH_INFO", "X-Forwarded-Proto"])
def test_over_http_a_header_cannot_change_the_path_of_a_request(web: WebServer, key: str, header: str) -> None:
    plain = web.request("GET", "/api/v1/agents", key=key)

    moved = web.request("GET", "/api/v1/agents", key=key, headers={header: "/x"})

    assert (moved.status, moved.body) == (plain.status, plain.body) == (200, plain.body)


@pytest.mark.slow
def test_over_http_a_body_over_the_limit_is_not_held_in_memory(own_web: WebServer, key: str) -> None:
    own_web.request("GET", "/api/v1/agents", key=key)
    [worker] = children_of(own_web.pid)
    before = peak_mebibytes(worker)

    head = f"POST /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n".encode()
    mebibyte = b" " * (1 << 20)
    with_length = b"Content-Type: application/json\r\nContent-Length: 9437184\r\n\r\n" + mebibyte * 9
    chunks = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + (
        (b"100000\r\n" + mebibyte + b"\r\n") * 64 + b"0\r\n\r\n"
    )

    for body in (with_length, with_length, chunks, chunks):
        # the answer may be lost with the connection: what counts is what is kept of the body
        assert own_web.send(head + body)[:13] in (b"", b"HTTP/1.1 413 ")

    assert peak_mebibytes(worker) - before < 64


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def peak_mebibytes(pid: int) -> int:
    """Return the most memory that the process ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


@pytest.mark.slow
def test_over_http_request_metrics_are_labelled_by_route_and_not_by_id(own_web: WebServer, key: str) -> None:
    own_web.request("GET", "/api/v1/agents/nobody", key=key)

    figures = own_web.request("GET", "/metrics").body.decode()

    assert 'memory_http_requests_total{method="GET",route="/api/v1/agents/<id:agent_id>",status="404"} 1.0' in figures
    assert "nobody" not in figures


@pytest.mark.parametrize("raw", HOSTILE_SEGMENTS)
def test_an_invalid_id_in_the_path_is_a_400(api: ServiceClient, raw: str) -> None:
    refused = api.get(f"/agents/{raw}")

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_id")


def test_an_id_may_have_a_hundred_characters_of_any_script_and_no_more(api: ServiceClient, account: Account) -> None:
    agent_id = "愛" * 100
    Agent.objects.create(account=account, agent_id=agent_id)

    assert api.get(f"/agents/{segment(agent_id)}").json()["agent_id"] == agent_id
    assert api.get(f"/agents/{segment(agent_id)}x").json()["code"] == "invalid_id"


KEYED = [
    "/agents/planner/working-memory/{key}",
    "/agents/planner/working-memory/{key}/append",
    "/agents/planner/working-memory/{key}/share",
    "/agents/planner/shared-memory/lender/{key}",
    "/conversations/talk/values/{key}",
    "/keyed-memories/{key}",
    "/pools/board/cache/{key}",
]
"""Paths whose last name is the key of a value, as tiers know it."""


@pytest.mark.parametrize("path", KEYED)
def test_a_memory_key_in_a_path_may_be_as_long_as_in_a_tier(api: ServiceClient, path: str) -> None:
    found, refused = (
        api.get(path.format(key="k" * length)) for length in (MAX_NAME_CHARACTERS, MAX_NAME_CHARACTERS + 1)
    )

    assert found.status_code in (400, 404, 405)
    assert found.json()["code"] != "invalid_id"
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_id")
    assert refused.json()["detail"].endswith(f"1 to {MAX_NAME_CHARACTERS} characters without control characters.")


def test_the_openapi_document_has_the_maximum_lengths_of_ids_and_keys() -> None:
    parameters = read_document()["paths"]["/api/v1/agents/{agent_id}/working-memory/{key}"]["get"]["parameters"]
    longest = {given["name"]: given["schema"]["maxLength"] for given in parameters if given["in"] == "path"}

    assert longest == {"agent_id": 100, "key": MAX_NAME_CHARACTERS}


def test_one_trailing_slash_is_accepted_and_an_empty_id_is_not(api: ServiceClient) -> None:
    assert api.get("/agents/").status_code == 200
    assert api.get("/agents//").status_code == 404


@pytest.mark.parametrize("path", ["/nowhere", "/agents/a/b/c", "/teams/not-a-uuid"])
def test_an_unknown_path_is_answered_with_a_problem(api: ServiceClient, path: str) -> None:
    missing = api.get(path)

    assert (missing.status_code, missing["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("/api/v1/x/a%2fb", "/api/v1/x/a%2Fb"),
        ("/api/v1/x/a%252Fb", "/api/v1/x/a%252Fb"),
        ("/api/v1/x/%25", "/api/v1/x/%25"),
        ("/api/v1/x/a%20b/", "/api/v1/x/a b"),
        ("/api/v1/x/%E6%84%9B", "/api/v1/x/愛".encode().decode("latin-1")),
        ("/admin/x/", "/admin/x/"),
    ],
)
def test_a_raw_path_is_decoded_except_for_encoded_slashes_and_percent_signs(raw: str, expected: str) -> None:
    assert decode_path_info(raw) == expected


@pytest.mark.parametrize("text", STRANGE_IDS)
def test_an_id_survives_quoting_into_a_url_and_decoding(text: str) -> None:
    django_path = f"/api/v1/agents/{ExternalIdConverter().to_url(text)}"

    read_back = decode_path_info(quote_path(django_path)).encode("latin-1").decode()

    assert ExternalIdConverter().to_python(read_back.rsplit("/", 1)[1]) == text


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"REQUEST_URI": "/a%2Fb?x=/y"}, "/a%2Fb"),
        ({"REQUEST_URI": "//a/b"}, "//a/b"),
        ({"REQUEST_URI": "http://host/a%2Fb?x"}, "/a%2Fb"),
        ({"PATH_INFO": "/a%b"}, "/a%25b"),
    ],
)
def test_the_raw_path_is_taken_from_the_server_or_rebuilt_from_the_decoded_path(
    environ: dict[str, str], expected: str
) -> None:
    assert read_raw_path(environ) == expected
