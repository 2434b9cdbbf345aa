"""Redis behind Sentinels, and nodes of a cluster by a wrong URL: real ones, of the Valkey that is embedded."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis as redis_client
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings
from kombu.connection import Connection

from memory_project import redis
from memory_project.async_calls import REDIS_CONNECTIONS, async_client, close_async_client
from memory_project.env import SettingError
from memory_project.redis_urls import broker_options, broker_url, cache_settings, parse_sentinels
from tests.concurrency import wait_until
from tests.redis_elsewhere import redis_at
from tests.valkeys import Servers
from tests.valkeys import servers as servers

SENTINEL = """
port {port}
dir {folder}
sentinel monitor memory 127.0.0.1 {master} 1
sentinel down-after-milliseconds memory 5000
sentinel failover-timeout memory 10000
"""


@contextmanager
def guarded(servers: Servers) -> Iterator[tuple[int, str]]:
    """A master, its replica and their Sentinel; yields the master's port and the URL of all."""
    master = servers.start()
    replica = servers.start("--replicaof", f"127.0.0.1 {master}")
    with redis_client.Redis(port=replica) as asked:
        wait_until(lambda: asked.info("replication")["master_link_status"] == "up")
    guard = servers.start("--sentinel", configuration=SENTINEL.replace("{master}", str(master)))
    with redis_client.Redis(port=guard) as sentinel:
        wait_until(lambda: len(sentinel.sentinel_slaves("memory")) == 1)
    url = f"redis+sentinel://127.0.0.1:{guard}/memory/0"
    with redis_at(url):
        yield master, url


@pytest.mark.slow
def test_writes_go_on_with_the_replica_when_the_master_dies(servers: Servers) -> None:
    with guarded(servers) as (master, _):
        redis.client().set("kept", "1")
        with redis_client.Redis(port=master) as asked:
            assert asked.wait(1, 5_000) == 1
        servers.kill(master)

        def write() -> bool:
            try:
                return bool(redis.client().set("more", "2"))
            except redis_client.RedisError:
                return False

        wait_until(write)
        assert redis.client().mget("kept", "more") == ["1", "2"]


@pytest.mark.slow
def test_the_cache_the_broker_and_asynchronous_calls_find_the_master(servers: Servers) -> None:
    # the settings are taken back in the order in which they were overridden, which the fixture `settings` does not do
    with (
        guarded(servers) as (_, url),
        override_settings(CACHES={"default": cache_settings(url, timeout_seconds=5.0)}),
    ):
        caches["default"].set("word", "kept")
        connect: Any = Connection
        with connect(broker_url(url), transport_options=broker_options(url)) as broker:
            queue = broker.SimpleQueue("memory")
            queue.put("look")
            taken = queue.get(timeout=10)
            taken.ack()
            queue.close()

        async def ask() -> Any:
            try:
                client: Any = async_client()
                answers = await asyncio.gather(*(client.execute_command("PING") for _ in range(3 * REDIS_CONNECTIONS)))
                assert len(client.connection_pool._available_connections) <= REDIS_CONNECTIONS
                return answers[-1]
            finally:
                await close_async_client()

        assert (caches["default"].get("word"), taken.payload) == ("kept", "look")
        assert asyncio.run(ask()) in {True, "PONG"}


@pytest.mark.django_db
def test_a_node_of_a_cluster_is_refused_at_the_start_and_by_readiness(servers: Servers) -> None:
    port = servers.start("--cluster-enabled", "yes")
    with redis_at(f"redis://127.0.0.1:{port}/0"):
        with pytest.raises(ImproperlyConfigured, match=r"names a node of a Redis Cluster.*redis\+cluster://"):
            redis.refuse_cluster_node()
        answer = Client().get("/health/ready")

    assert answer.status_code == 503
    assert "Redis Cluster" in answer.json()["checks"]["redis"]


def test_urls_name_users_and_passwords_of_both() -> None:
    url = "redis+sentinel://app:p%40ss@one,two:26380/memory/2?sentinel_password=guard"

    address = parse_sentinels(url)

    assert address is not None
    assert address.sentinels == (("one", 26379), ("two", 26380))
    assert address.redis_options() == {"db": 2, "username": "app", "password": "p@ss"}
    assert address.sentinel_options() == {"password": "guard"}
    assert address.cache_location() == "redis://app:p%40ss@memory/2"
    assert broker_url(url) == "sentinel://app:p%40ss@one:26379/2;sentinel://app:p%40ss@two:26380/2"
    assert broker_options(url)["master_name"] == "memory"


@pytest.mark.parametrize("rest", ["one:26379", "one/memory/x", "one:x/memory", "one/memory?timeout=3", "one/myMaster"])
def test_malformed_urls_of_sentinels_are_refused(rest: str) -> None:
    with pytest.raises(SettingError, match="REDIS_URL must name"):
        parse_sentinels(f"redis+sentinel://{rest}")


def test_sentinels_behind_tls_are_refused() -> None:
    given = os.environ | {"REDIS_URL": "rediss+sentinel://one/memory/0"}
    ended = subprocess.run(
        [sys.executable, "-m", "memory_project.serve", "worker"], env=given, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1
    assert "REDIS_URL must be a URL that starts with one of redis, rediss, unix, redis+sentinel" in ended.stderr
