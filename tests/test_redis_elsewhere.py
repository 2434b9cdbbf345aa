"""Redis is back however a block without it ends, and nothing of the block stays."""

import time

import pytest
from redis import RedisError

from memory_project import redis
from memory_project.http.throttling import KeyThrottle
from tests.redis_elsewhere import redis_away


def test_redis_is_reachable_again_after_a_block_without_it_fails() -> None:
    with pytest.raises(RedisError), redis_away():
        redis.client().ping()

    assert redis.client().ping()


def test_requests_are_counted_again_once_redis_is_back() -> None:
    with redis_away():
        KeyThrottle.retry_at = time.monotonic() + 60

    assert KeyThrottle.retry_at == 0.0
