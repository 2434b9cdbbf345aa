"""Redis elsewhere: as it is while its server is down, and one of a test's own."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.test import override_settings

from memory_project import redis
from memory_project.embedded.locks import wait_until
from memory_project.embedded.redis import ValkeyServer, store_url
from memory_project.http.throttling import KeyThrottle
from tests.servers import make_temporary_paths

PREFIX = "agent-memory-test-redis-"


@contextmanager
def redis_away() -> Iterator[None]:
    """Nobody is at Redis' address until the block ends, however it ends; then requests are counted again, too."""
    with redis_at("unix:///nowhere/at/all.sock"):
        yield


@contextmanager
def own_redis() -> Iterator[None]:
    """An empty server for this block alone: CONFIG SET on the shared one would affect tests that run in parallel.

    It is killed: asked to stop, one that cannot write to its disk goes on for a minute.
    """
    with ExitStack() as stack:
        place = make_temporary_paths(PREFIX)
        stack.callback(shutil.rmtree, place.base, ignore_errors=True)
        valkey = ValkeyServer(place)
        stack.callback(valkey.stop)
        valkey.start()
        pid = valkey.pid()
        assert pid is not None
        stack.callback(os.kill, pid, signal.SIGKILL)
        stack.enter_context(redis_at(store_url(valkey.socket())))
        yield


def take_disk() -> None:
    """Take the data folder from the server of `own_redis`, and wait until it knows that it cannot write."""
    client = redis.client()
    shutil.rmtree(str(client.config_get("dir")["dir"]))
    client.config_set("save", "3600 1")
    client.bgsave()
    assert wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err", seconds=10)


@contextmanager
def redis_at(url: str) -> Iterator[None]:
    with override_settings(REDIS_URL=url):
        forget_connections()
        try:
            yield
        finally:
            forget_connections()
            KeyThrottle.retry_at = 0.0


def forget_connections() -> None:
    redis.client.cache_clear()
    redis.script.cache_clear()
