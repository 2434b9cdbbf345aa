"""`/pools/{pool_id}/data`: as a whole, by path, merged; and many simultaneous writers over real HTTP."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from urllib.parse import quote

import pytest

from memory import conf
from memory.models import Account, MemoryPool, WorkflowRun
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient
from tests.memory.pools import NOW, pool_etag
from tests.web_server import Answer, SharedServers, WebServer

pytestmark = pytest.mark.django_db

DATA = "/pools/board/data"
SIMULTANEOUS_MERGES = 50


@pytest.fixture
def board(api: ServiceClient) -> None:
    """Make a pool of the account's."""
    api.post("/pools", {"pool_id": "board", "data": {"plan": {"steps": ["a"]}, "a/b": {"m~n": None}}})


def at(path: str) -> str:
    return f"{DATA}?path={quote(path, safe='')}"


# reading


def test_the_data_of_a_pool_is_read_with_its_version(api: ServiceClient, board: None) -> None:
    answer = api.get(DATA)

    assert answer.json() == {
        "pool_id": "board",
        "path": "",
        "data": {"plan": {"steps": ["a"]}, "a/b": {"m~n": None}},
        "version": 1,
    }
    assert answer["ETag"] == pool_etag(1)


@pytest.mark.parametrize(("path", "data"), [("/plan/steps/0", "a"), ("/a~1b", {"m~n": None}), ("/a~1b/m~0n", None)])
def test_a_part_of_the_data_is_read_by_its_path(api: ServiceClient, board: None, path: str, data: Any) -> None:
    assert api.get(at(path)).json() == {"pool_id": "board", "path": path, "data": data, "version": 1}


@pytest.mark.parametrize("path", ["/no", "/plan/steps/1", "/plan/steps/-", "/a/b", "/"])
def test_an_unknown_path_is_not_found(api: ServiceClient, board: None, path: str) -> None:
    assert api.get(at(path)).status_code == 404


@pytest.mark.parametrize("path", ["plan", "/~", "/~2", "/\0", "/a" * 65, "/" + "x" * 2_000])
def test_an_invalid_path_is_refused(api: ServiceClient, board: None, path: str) -> None:
    answers = [api.get(at(path)), api.put(at(path), {"data": 1}), api.patch(at(path), {"data": 1})]

    assert [(answer.status_code, list(answer.json()["errors"])) for answer in answers] == [(400, ["path"])] * 3


# writing


def test_a_put_replaces_data_and_a_patch_merges(api: ServiceClient, board: None) -> None:
    merged = api.patch(DATA, {"data": {"plan": {"goal": {"by": None}}, "a/b": 1}})
    assert api.get(DATA).json()["data"] == {"plan": {"steps": ["a"], "goal": {"by": None}}, "a/b": 1}

    replaced = api.put(DATA, {"data": {"plan": "ü"}})

    assert api.get(DATA).json()["data"] == {"plan": "ü"}
    assert merged.json() == {"pool_id": "board", "path": "", "version": 2, "size_bytes": 51}
    assert (replaced.json()["version"], replaced["ETag"], replaced.json()["size_bytes"]) == (3, pool_etag(3), 13)


def test_a_part_of_the_data_is_written_by_its_path(api: ServiceClient, board: None) -> None:
    written = api.put(at("/a~1b/new/way"), {"data": 1.0})
    api.put(at("/plan/steps/-"), {"data": "b"})
    api.patch(at("/plan"), {"data": {"goal": None}})

    assert written.json()["path"] == "/a~1b/new/way"
    assert api.get(DATA).json()["data"] == {
        "plan": {"steps": ["a", "b"], "goal": None},
        "a/b": {"m~n": None, "new": {"way": 1.0}},
    }


@pytest.mark.parametrize("method", ["put", "patch"])
@pytest.mark.parametrize(
    ("path", "data"), [("", []), ("", None), ("/plan/steps/x", 1), ("/plan/steps/7", 1), ("/a~1b/m~0n/x", 1)]
)
def test_an_impossible_write_answers_422_and_changes_nothing(
    api: ServiceClient, board: None, method: str, path: str, data: Any
) -> None:
    assert getattr(api, method)(at(path), {"data": data}).status_code == 422

    assert api.get(DATA).json()["version"] == 1


@pytest.mark.parametrize("method", ["put", "patch"])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": {}, "expected_version": 0},
        {"data": {}, "expected_version": "1"},
        {"data": {}, "expected_version": None},
        {"data": {}, "path": "/a"},
        {"data": {}, "agent_id": 7},
    ],
)
def test_an_invalid_body_is_refused(api: ServiceClient, board: None, method: str, body: dict[str, Any]) -> None:
    assert getattr(api, method)(DATA, body).status_code == 400

    assert api.get(DATA).json()["version"] == 1


@pytest.mark.parametrize("method", ["put", "patch"])
def test_a_write_with_a_stale_expected_version_changes_nothing(api: ServiceClient, board: None, method: str) -> None:
    write: Callable[..., Any] = getattr(api, method)
    assert write(DATA, {"data": {"n": 1}, "expected_version": 1}).status_code == 200

    stale = write(DATA, {"data": {"n": 2}, "expected_version": 1})
    at_odds = write(DATA, {"data": {"n": 2}, "expected_version": 2}, HTTP_IF_MATCH='"1"')

    assert [(answer.status_code, answer.json()["code"]) for answer in (stale, at_odds)] == [(412, "stale_version")] * 2
    assert api.get(at("/n")).json()["data"] == 1


@pytest.mark.parametrize("method", ["put", "patch"])
@pytest.mark.parametrize("tag", ['"1"', '"1", "2"', "*", "its own"])
def test_expected_version_and_if_match_can_be_combined(api: ServiceClient, board: None, method: str, tag: str) -> None:
    body = {"data": {"n": 1}, "expected_version": 1}

    written = getattr(api, method)(DATA, body, HTTP_IF_MATCH=pool_etag(1) if tag == "its own" else tag)

    assert (written.status_code, written["ETag"]) == (200, pool_etag(2))


def test_data_over_the_limit_answers_413_and_changes_nothing(
    api: ServiceClient, board: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "POOL_LIMIT_BYTES", 1_024)
    answers = [api.put(at("/x"), {"data": "x" * 1_024}), api.patch(DATA, {"data": {"x": "x" * 1_024}})]

    for answer in answers:
        problem = answer.json()
        assert (answer.status_code, problem["code"], problem["stored"]) == (413, "too_large", False)
        assert (problem["size_bytes"], problem["limit_bytes"]) == (1_074, 1_024)
    assert api.get(DATA).json()["version"] == 1


def test_creating_a_pool_with_data_over_the_limit_answers_413(api: ServiceClient) -> None:
    assert api.post("/pools", {"data": {"x": "x" * conf.POOL_LIMIT_BYTES}}).status_code == 413

    assert not MemoryPool.objects.exists()


def test_a_write_cannot_nest_data_deeper_than_a_body_may_be(api: ServiceClient, board: None) -> None:
    deep = json.loads("[" * 60 + "]" * 60)

    assert api.put(at("/a/b/c/d"), {"data": deep}).status_code == 200
    assert api.put(at("/a/b/c/d/0"), {"data": deep}).status_code == 422


@pytest.mark.parametrize("pool_type", ["blackboard", "tool_cache"])
def test_a_pool_that_consists_of_rows_has_no_data(api: ServiceClient, account: Account, pool_type: str) -> None:
    run = WorkflowRun.objects.create(account=account, workflow_run_id="run", started_at=NOW)
    MemoryPool.objects.create(account=account, pool_id="board", pool_type=pool_type, workflow_run=run)

    answers = [api.get(DATA), api.put(DATA, {"data": {}}), api.patch(DATA, {"data": {}})]

    assert [answer.status_code for answer in answers] == [422] * 3


# simultaneous requests, over real HTTP


@pytest.fixture
def web(transactional_db: None, shared_server: SharedServers) -> WebServer:
    return shared_server({})


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


def statuses_of(count: int, send: Callable[[int], Answer]) -> list[int]:
    """Return the statuses of so many simultaneous requests."""
    together = Barrier(count)

    def one(number: int) -> int:
        together.wait(30)
        return send(number).status

    with ThreadPoolExecutor(count) as clients:
        return list(clients.map(one, range(count)))


def test_fifty_simultaneous_merges_of_fifty_names_all_survive(web: WebServer, key: str) -> None:
    web.request("POST", "/api/v1/pools", key=key, body=b'{"pool_id": "board"}')

    def merge(number: int) -> Answer:
        body = json.dumps({"data": {f"name-{number}": {"by": number}}}).encode()
        return web.request("PATCH", "/api/v1/pools/board/data", key=key, body=body)

    statuses = statuses_of(SIMULTANEOUS_MERGES, merge)

    stored = json.loads(web.request("GET", "/api/v1/pools/board/data", key=key).body)
    assert statuses == [200] * SIMULTANEOUS_MERGES
    assert stored["data"] == {f"name-{number}": {"by": number} for number in range(SIMULTANEOUS_MERGES)}
    assert stored["version"] == SIMULTANEOUS_MERGES + 1


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_only_one_of_twenty_simultaneous_writes_to_the_same_version_succeeds(
    web: WebServer, key: str, method: str
) -> None:
    made = web.request("POST", "/api/v1/pools", key=key, body=b'{"pool_id": "board"}')
    seen = {"If-Match": made.headers["etag"]}

    def write(number: int) -> Answer:
        body = json.dumps({"data": {"by": number}}).encode()
        return web.request(method, "/api/v1/pools/board/data", key=key, body=body, headers=seen)

    statuses = statuses_of(20, write)

    stored = json.loads(web.request("GET", "/api/v1/pools/board/data", key=key).body)
    assert sorted(statuses) == [200] + [412] * 19
    assert stored == {"pool_id": "board", "path": "", "data": {"by": statuses.index(200)}, "version": 2}


def test_twenty_simultaneous_appends_lose_nothing(web: WebServer, key: str) -> None:
    web.request("POST", "/api/v1/pools", key=key, body=b'{"pool_id": "board", "data": {"log": []}}')

    def append(number: int) -> Answer:
        body = json.dumps({"data": number}).encode()
        return web.request("PUT", "/api/v1/pools/board/data?path=/log/-", key=key, body=body)

    statuses = statuses_of(20, append)

    stored = json.loads(web.request("GET", "/api/v1/pools/board/data?path=/log", key=key).body)
    assert statuses == [200] * 20
    assert sorted(stored["data"]) == list(range(20))
