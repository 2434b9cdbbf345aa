"""A Redis Cluster by its URL: three masters, of which one serves all keys and has a replica."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_client
from django.core.cache import caches
from django.test import Client, override_settings
from redis.exceptions import MovedError

from ledger import store
from ledger.journal import flush_everything, restore_all_ledgers
from ledger.models import Injection
from memory.async_memory import RedisManager
from memory.models import Account
from memory.owner import Owner
from memory_project import redis
from memory_project.env import SettingError
from memory_project.redis import SHARED_KEYS, ConversationRef, conversation_key
from memory_project.redis_cluster import ClusterUnavailable, Slot, with_prefix
from memory_project.redis_urls import cache_settings, parse_cluster
from tests.api_client import ServiceClient
from tests.concurrency import wait_until
from tests.redis_elsewhere import redis_at
from tests.tls_proxy import tls_in_front_of
from tests.valkeys import SLOT, Cluster, Servers, node_at, start_cluster
from tests.valkeys import servers as servers

PREFIX = "{agent-memory}:"


@pytest.fixture
def cluster(servers: Servers) -> Iterator[Cluster]:
    """A cluster that the service and its cache use."""
    made = start_cluster(servers)
    caching = {"default": cache_settings(made.url(), timeout_seconds=5.0)}
    with override_settings(CACHES=caching), redis_at(made.url()):
        yield made


def conversation(account: Account) -> ConversationRef:
    return ConversationRef(account_id=account.id, conversation_id="c1")


def mark(api: ServiceClient, item: str, **headers: Any) -> Any:
    return api.post("/ledger/c1/mark", {"item_key": item}, **headers)


def keys_of(port: int) -> set[str]:
    with node_at(port) as node:
        return {str(key) for key in node.scan_iter()}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_everything_is_kept_in_one_slot_under_the_prefix(
    cluster: Cluster, account: Account, api: ServiceClient
) -> None:
    again = {"HTTP_IDEMPOTENCY_KEY": "k1"}
    agent = "/agents/ana/working-memory"

    first, repeated = (mark(api, "skill:a", **again).json() for _ in range(2))
    turns = {"turns": [{"role": "user", "content": "The keel is repaired."}]}
    answers = [
        api.post("/conversations/c1/turns", {"agent_id": "ana", **turns}),
        api.put("/working-memory/c1", {"data": {"step": 1}}),
        api.post("/conversations/c1/thoughts", {"thought": "look", "agent_id": "ana"}, HTTP_IDEMPOTENCY_KEY="k2"),
        api.put("/conversations/c1/values/colour", {"value": "red"}),
        api.put(f"{agent}/step", {"value": [1]}),
        api.post(f"{agent}/step/append", {"value": 2}, HTTP_IDEMPOTENCY_KEY="k3"),
        api.post("/memories/search", {"query": "keel"}),
    ]
    caches["default"].set_many({"word": "kept", "other": "too"})
    caches["default"].add("attempts", 0)
    flush_everything()

    assert [answer.status_code for answer in answers] == [201, 200, 201, 200, 200, 200, 200]
    assert (first["first"], repeated["first"]) == (True, True)
    assert api.get("/conversations/c1/values/colour").json()["value"] == "red"
    assert api.get(f"{agent}/step").json()["value"] == [1, 2]
    assert caches["default"].get_many(["word", "other"]) == {"word": "kept", "other": "too"}
    assert caches["default"].incr("attempts") == 1
    assert Client().get("/health/ready").json()["checks"]["redis"] == "ok"
    stored = keys_of(cluster.master)
    assert {key.removeprefix(PREFIX).partition(":")[0] for key in stored} >= {"account", "cache", "health", "ledger"}
    assert [key for key in stored if not key.startswith(PREFIX)] == []
    assert [key for port in cluster.others() for key in keys_of(port)] == []
    assert PREFIX + SHARED_KEYS["ledger_flushed"] in stored
    assert {PREFIX + str(key) for key in redis.client().scan_iter()} == stored


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_ledger_that_the_cluster_lost_is_restored(cluster: Cluster, account: Account, api: ServiceClient) -> None:
    restore_all_ledgers()
    mark(api, "skill:a")
    mark(api, "skill:b")
    flush_everything()
    with node_at(cluster.master) as node:
        node.flushall()

    answer = mark(api, "skill:a").json()
    restored = restore_all_ledgers()

    assert (answer["first"], restored.examined) == (False, 1)
    assert store.get_all(conversation(account)) == {"skill:a": "injected", "skill:b": "injected"}
    assert Injection.objects.count() == 2


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_marks_go_on_with_the_replica_when_the_master_is_killed(
    cluster: Cluster, account: Account, api: ServiceClient
) -> None:
    caches["default"].set("word", "kept")
    for item in ("a", "b"):
        assert mark(api, item).status_code == 200
    cluster.replicate()

    cluster.servers.kill(cluster.master)

    wait_until(lambda: mark(api, "c").status_code == 200)
    assert store.get_all(conversation(account)) == dict.fromkeys("abc", "injected")
    assert mark(api, "a").json()["first"] is False
    assert caches["default"].get("word") == "kept"
    flush_everything()
    assert Injection.objects.count() == 3


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_marks_go_on_with_the_replica_when_the_master_hangs(
    cluster: Cluster, account: Account, api: ServiceClient
) -> None:
    mark(api, "a")
    cluster.replicate()

    with override_settings(REDIS_TIMEOUT_SECONDS=2.0), redis_at(cluster.url()):
        wait_until(lambda: mark(api, "b").status_code == 200)
        cluster.replicate()
        cluster.servers.signal(cluster.master, signal.SIGSTOP)

        wait_until(lambda: mark(api, "c").status_code == 200)

        assert store.get_all(conversation(account)) == dict.fromkeys("abc", "injected")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_connections_follow_the_slot_to_another_master(cluster: Cluster, account: Account, api: ServiceClient) -> None:
    caches["default"].set("word", "kept")
    mark(api, "a")
    scanned = set(redis.client().scan_iter())

    cluster.move_slot(cluster.others()[0])

    # a scan names no key: the former master would answer it with nothing
    assert set(redis.client().scan_iter()) == scanned
    assert [mark(api, item).json()["first"] for item in ("a", "b")] == [False, True]
    assert caches["default"].get("word") == "kept"
    assert PREFIX + conversation_key("ledger", conversation(account)) in keys_of(cluster.master)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_nothing_is_marked_while_the_slot_moves_key_by_key(
    cluster: Cluster, account: Account, api: ServiceClient
) -> None:
    mark(api, "a")
    redis.client().set("single", "1")
    source, target = cluster.master, cluster.others()[0]
    with node_at(source) as old, node_at(target) as new:
        names = {"source": old.execute_command("CLUSTER", "MYID"), "target": new.execute_command("CLUSTER", "MYID")}
        new.execute_command("CLUSTER", "SETSLOT", SLOT, "IMPORTING", names["source"])
        old.execute_command("CLUSTER", "SETSLOT", SLOT, "MIGRATING", names["target"])
        moved = PREFIX + SHARED_KEYS["ledger_journal"]
        old.execute_command("MIGRATE", "127.0.0.1", target, moved, 0, 5_000)

        refused = mark(api, "b")
        with pytest.raises(ClusterUnavailable, match="being moved"):
            list(redis.client().scan_iter())
        read_meanwhile = redis.client().get("single")

        for key in keys_of(source):
            old.execute_command("MIGRATE", "127.0.0.1", target, key, 0, 5_000)
        for node in (new, old):
            node.execute_command("CLUSTER", "SETSLOT", SLOT, "NODE", names["target"])

    assert (refused.status_code, refused.json()["code"]) == (503, "redis_unavailable")
    assert "is being moved to another node" in refused.json()["detail"]
    assert read_meanwhile == "1"
    assert [mark(api, item).json()["first"] for item in ("a", "b")] == [False, True]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_cluster_that_is_down_is_a_503_and_fails_readiness(cluster: Cluster, api: ServiceClient) -> None:
    mark(api, "a")
    # it has no replica, and by default a cluster serves all slots or none
    cluster.servers.kill(cluster.others()[0])
    with node_at(cluster.master) as node:
        wait_until(lambda: node.cluster("info")["cluster_state"] == "fail")

    refused, readiness = mark(api, "b"), Client().get("/health/ready")

    assert refused.status_code == 503
    assert "The Redis Cluster cannot serve this installation: no master serves" in refused.json()["detail"]
    assert readiness.status_code == 503
    assert "CLUSTERDOWN" in readiness.json()["checks"]["redis"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_installations_of_different_names_share_a_cluster(cluster: Cluster, account: Account) -> None:
    redis.client().set("word", "ours")

    with redis_at(cluster.url("staging")):
        found, listed = redis.client().get("word"), list(redis.client().scan_iter())
        redis.client().set("word", "theirs")

    assert (found, listed) == (None, [])
    assert redis.client().get("word") == "ours"


@pytest.mark.slow
def test_scans_return_the_keys_of_a_pattern_without_the_prefix(cluster: Cluster) -> None:
    with redis.client().pipeline() as pipe:
        for number in range(30):
            pipe.set(f"account:{number}", "1")
            pipe.rpush(f"list:{number}", "1")
        pipe.execute()

    assert set(redis.client().scan_iter(match="account:*", count=7)) == {f"account:{number}" for number in range(30)}
    assert len(set(redis.client().scan_iter(count=7))) == 60
    assert set(redis.client().scan_iter(match="*:1", _type="list")) == {"list:1"}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_asynchronous_calls_use_the_cluster(cluster: Cluster, account: Account, owner: Owner) -> None:
    memory = RedisManager(owner)

    asyncio.run(memory.ledger_mark("c1", "skill:a", "1"))

    assert store.get_all(conversation(account)) == {"skill:a": "1"}


@pytest.mark.slow
def test_connections_are_encrypted_and_log_in(servers: Servers, tmp_path: Path) -> None:
    port = servers.start("--cluster-enabled", "yes", "--requirepass", "s@cret", password="s@cret")
    with redis_client.Redis(port=port, password="s@cret") as node:
        node.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
        wait_until(lambda: node.cluster("info")["cluster_state"] == "ok")

    with tls_in_front_of(port, tmp_path) as (encrypted, certificate):
        with redis_at(f"rediss+cluster://:s%40cret@127.0.0.1:{encrypted}/?ssl_ca_certs={certificate}"):
            redis.client().set("word", "kept")
            assert redis.client().get("word") == "kept"
        with (
            redis_at(f"rediss+cluster://:s%40cret@127.0.0.1:{encrypted}"),
            pytest.raises(redis_client.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            redis.client().get("word")


def test_a_command_whose_keys_are_not_known_is_not_sent() -> None:
    with pytest.raises(redis_client.DataError, match="SINTERCARD is not among the commands"):
        with_prefix(PREFIX, ("SINTERCARD", 1, "key"))


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        (("GET", "a"), ("GET", "{x}:a")),
        (("SET", b"a", "b"), ("SET", b"{x}:a", "b")),
        (("UNLINK", "a", "b"), ("UNLINK", "{x}:a", "{x}:b")),
        (("EVALSHA", "digest", 2, "a", "b", "c"), ("EVALSHA", "digest", 2, "{x}:a", "{x}:b", "c")),
        (("INFO", "memory"), ("INFO", "memory")),
    ],
)
def test_keys_get_the_prefix(command: tuple[Any, ...], sent: tuple[Any, ...]) -> None:
    assert with_prefix("{x}:", command) == sent


def test_a_url_names_nodes_a_user_and_the_installation() -> None:
    address = parse_cluster("rediss+cluster://app:p%40ss@one,[::1]:7000/staging-2?ssl_ca_certs=/etc/ca.pem")

    assert address.nodes == (("one", 6379), ("::1", 7000))
    assert (address.name, address.is_encrypted) == ("staging-2", True)
    assert address.options == {"username": "app", "password": "p@ss", "ssl_ca_certs": "/etc/ca.pem"}
    assert parse_cluster("redis+cluster://one").name == "agent-memory"


@pytest.mark.parametrize(
    "rest", ["", "one:x", "one/0", "one/Ours", "one/a*", "one/a?db=1", "one/a?ssl_ca_certs=ca.pem"]
)
def test_malformed_urls_of_clusters_are_refused(rest: str) -> None:
    with pytest.raises(SettingError, match="REDIS_URL must name"):
        parse_cluster(f"redis+cluster://{rest}")


def test_a_start_without_another_broker_is_refused() -> None:
    given = {name: value for name, value in os.environ.items() if name != "CELERY_BROKER_URL"}
    ended = subprocess.run(
        [sys.executable, "-m", "memory_project.serve", "web"],
        env=given | {"REDIS_URL": "redis+cluster://127.0.0.1:7000"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 1
    assert "CELERY_BROKER_URL must be set where REDIS_URL names a Redis Cluster" in ended.stderr


def test_the_master_that_a_slow_node_names_is_tried_first_the_next_time() -> None:
    slot = Slot(parse_cluster("redis+cluster://slow:6379,other:6379"))
    tried = []

    def try_node(node: tuple[str, int]) -> None:
        tried.append(node)
        if node[0] == "slow":
            time.sleep(0.05)
            raise MovedError("866 master:6379")

    with pytest.raises(ClusterUnavailable):
        slot.connect(try_node, seconds=0.02)
    slot.connect(try_node, seconds=0.02)

    assert tried == [("slow", 6379), ("master", 6379)]
