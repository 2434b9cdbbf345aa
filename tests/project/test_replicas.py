"""Read replicas: a real streaming replica of the test run's PostgreSQL."""

import json
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from django.db import connection
from django.test import Client

from lab.chaos.servers import suspended
from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory_project.env import SettingError, urls
from memory_project.measures import REPLICA_READS
from memory_project.postgresql import hangs
from memory_project.postgresql import replicas as module
from memory_project.postgresql.replicas import PRIMARY, Replica, reading_from
from tests.api_client import ServiceClient
from tests.concurrency import PATIENCE_SECONDS, wait_until
from tests.replica import ReplicaServer, wait_until_replayed, with_replica
from tests.replica import registered as registered
from tests.replica import replica as replica
from tests.replica import replica_server as replica_server
from tests.web_server import serve

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def keys(replica: Replica) -> tuple[ServiceClient, ServiceClient]:
    """Clients of two keys of one account."""
    account = Account.objects.create(name="workshop")
    first, second = (ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE).secret) for _ in range(2))
    return first, second


def remember(api: ServiceClient, text: str) -> None:
    assert api.post("/memories", {"agent_id": "assistant", "text": text}).status_code == 201


def texts(api: ServiceClient) -> set[str]:
    answer = api.get("/memories?agent_id=assistant")
    assert answer.status_code == 200, answer.content
    return {each["text"] for each in answer.json()["results"]}


def timed(call: Callable[[], set[str]]) -> tuple[set[str], float]:
    began = time.monotonic()
    return call(), time.monotonic() - began


def count_reads(server: str) -> float:
    return float(REPLICA_READS.labels(server)._value.get())


@with_replica
def test_a_replica_answers_lists_searches_and_recalls(
    replica: Replica, keys: tuple[ServiceClient, ServiceClient]
) -> None:
    api, _ = keys
    remember(api, "Carlos repaired the pump in the cellar.")
    wait_until_replayed(replica)
    before = count_reads("replica_1"), count_reads("primary")
    asked = {"agent_id": "assistant", "query": "Who repaired the pump?"}

    found = [api.post(path, asked) for path in ("/recall", "/memories/search")]
    context = api.post("/context", asked | {"conversation_id": "talk", "max_tokens": 500})

    assert [each["text"] for answer in found for each in answer.json()["results"]] == 2 * [
        "Carlos repaired the pump in the cellar."
    ]
    assert b"Carlos" in context.content
    assert texts(api) == {"Carlos repaired the pump in the cellar."}
    assert (count_reads("replica_1"), count_reads("primary")) == (before[0] + 4, before[1])


@with_replica
def test_a_key_reads_its_own_writes_while_the_replica_is_behind(
    replica: Replica, replica_server: ReplicaServer, keys: tuple[ServiceClient, ServiceClient]
) -> None:
    own, other = keys
    remember(own, "before")
    wait_until_replayed(replica)
    replica_server.pause()
    try:
        remember(own, "after")
        seen = texts(own), texts(other)
    finally:
        replica_server.resume()

    wait_until_replayed(replica)
    assert seen == ({"before", "after"}, {"before"})
    before = count_reads("replica_1")
    assert texts(own) == texts(other) == {"before", "after"}
    assert count_reads("replica_1") == before + 2


@pytest.mark.slow
@with_replica
def test_a_replica_that_lags_is_left_out_and_readiness_says_so(
    replica: Replica, replica_server: ReplicaServer, keys: tuple[ServiceClient, ServiceClient], settings: Any
) -> None:
    own, other = keys
    settings.REPLICA_MAX_LAG_SECONDS = 1.0
    replica_server.pause()
    try:
        remember(own, "after")
        wait_until(lambda: replica.describe() == "lags")
        seen, ready, figures = texts(other), Client().get("/health/ready"), Client().get("/metrics").content.decode()
    finally:
        replica_server.resume()

    assert seen == {"after"}
    assert ready.status_code == 200
    assert ready.json()["replicas"]["replica_1"]["state"] == "lags"
    assert ready.json()["replicas"]["replica_1"]["lag_seconds"] > 0
    assert 'memory_replica_usable{replica="replica_1"} 0.0' in figures
    assert 'memory_replica_lag_seconds{replica="replica_1"}' in figures
    wait_until(replica.is_usable)


@with_replica
def test_a_replica_that_dies_costs_no_request(
    replica: Replica, replica_server: ReplicaServer, keys: tuple[ServiceClient, ServiceClient]
) -> None:
    own, _ = keys
    remember(own, "kept")
    wait_until_replayed(replica)
    assert texts(own) == {"kept"}
    replica_server.server.stop()
    try:
        began = time.monotonic()
        seen = [texts(own) for _ in range(5)]
        took = time.monotonic() - began
        state = Client().get("/health/ready").json()["replicas"]["replica_1"]["state"]
    finally:
        replica_server.server.start()

    assert seen == 5 * [{"kept"}]
    assert took < PATIENCE_SECONDS
    assert state.startswith("not reachable")
    before = count_reads("replica_1")
    wait_until(lambda: texts(own) == {"kept"} and count_reads("replica_1") > before)


@pytest.mark.slow
@with_replica
def test_a_replica_that_hangs_costs_one_request_some_seconds(
    replica: Replica, registered: ReplicaServer, keys: tuple[ServiceClient, ServiceClient]
) -> None:
    own, _ = keys
    remember(own, "kept")
    wait_until_replayed(replica)
    assert texts(own) == {"kept"}
    with suspended(psutil.Process(registered.server.pid())):
        seen, took = zip(*(timed(lambda: texts(own)) for _ in range(4)), strict=True)

    assert seen == 4 * ({"kept"},)
    assert took[0] < PATIENCE_SECONDS
    # the others do not wait for it
    assert min(took[1:]) < hangs.SILENCE_SECONDS
    wait_until(replica.is_usable)


@pytest.mark.slow
@with_replica
def test_the_web_server_reads_from_the_replicas_that_its_environment_names(
    replica: Replica, registered: ReplicaServer, keys: tuple[ServiceClient, ServiceClient]
) -> None:
    with serve({"DATABASE_REPLICA_URLS": registered.url()}) as server:

        def ready() -> Any:
            return json.loads(server.request("GET", "/health/ready").body)["replicas"]["replica_1"]

        wait_until(lambda: ready()["state"] == "ok")
        key = issue_key(Account.objects.get(), scopes=READ_WRITE_OPERATE).secret

        def is_read_from() -> bool:
            # after a pause of the machine the state of the replica is not known, and the primary answers
            assert server.request("GET", "/api/v1/memories?agent_id=assistant", key=key).status == 200
            return 'memory_replica_reads_total{server="replica_1"}' in server.request("GET", "/metrics").body.decode()

        wait_until(is_read_from)
        figures = server.request("GET", "/metrics").body.decode()

    assert ready_lag(figures) < PATIENCE_SECONDS


@with_replica
def test_what_must_see_everything_asks_the_primary_within_a_read_from_a_replica(
    replica: Replica, keys: tuple[ServiceClient, ServiceClient]
) -> None:
    def is_replica() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_is_in_recovery()")
            return bool(cursor.fetchone()[0])

    with reading_from("replica_1"):
        before = is_replica()
        with reading_from(PRIMARY):
            within = is_replica()
            Account.objects.create(name="written")
        after = is_replica()

    assert (before, within, after, is_replica()) == (True, False, True, False)
    assert Account.objects.filter(name="written").exists()


def ready_lag(figures: str) -> float:
    [line] = [line for line in figures.splitlines() if line.startswith("memory_replica_lag_seconds{")]
    return float(line.rpartition(" ")[2])


def test_lag_is_the_time_since_the_replica_had_everything() -> None:
    replica, now = Replica(alias="replica_1"), time.monotonic()

    replica.note_position(100, 100, asked_at=now - 8)
    replica.note_position(200, 150, asked_at=now - 5)
    replica.note_position(300, 200, asked_at=now - 1)

    assert replica.as_of == now - 5
    assert replica.is_usable()
    assert 5 <= (replica.lag_seconds() or 0) < 5 + module.PATIENCE_SECONDS


def test_urls_of_other_schemes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_REPLICA_URLS", "postgres://one/memory,mysql://two/memory")

    with pytest.raises(SettingError, match="DATABASE_REPLICA_URLS must be URLs separated by commas"):
        urls("DATABASE_REPLICA_URLS", schemes=["postgres", "postgresql"])
