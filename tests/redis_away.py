"""Redis as it is while its server is down."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.test import override_settings

from memory_project import redis
from memory_project.http.throttling import KeyThrottle


@contextmanager
def redis_away() -> Iterator[None]:
    """Nobody is at Redis' address until the block ends, however it ends; then requests are counted again, too."""
    with override_settings(REDIS_URL="unix:///nowhere/at/all.sock"):
        forget_connections()
        try:
            yield
        finally:
            forget_connections()
            KeyThrottle.asks_again_at = 0.0


def forget_connections() -> None:
    redis.client.cache_clear()
    redis.script.cache_clear()
