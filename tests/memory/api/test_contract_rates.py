"""Rate limits: what a key has left, and the answer when nothing is left."""

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from memory_project import redis
from memory_project.http.throttling import KeyThrottle
from tests.api_client import ServiceClient


@pytest.fixture(autouse=True)
def _fresh_rates(empty_redis: None) -> None:
    KeyThrottle.retry_at = 0.0


def test_every_response_reports_the_remaining_rate_limit(api: ServiceClient, settings: LazySettings) -> None:
    settings.RATE_LIMIT_PER_MINUTE = 10

    left = [api.get("/agents")["RateLimit-Remaining"] for _request in range(3)]

    assert left == ["9", "8", "7"]


def test_an_api_key_over_its_rate_limit_gets_a_429_with_retry_after(api: ServiceClient, settings: LazySettings) -> None:
    settings.RATE_LIMIT_PER_MINUTE = 2
    statuses = [api.get("/agents").status_code for _request in range(2)]

    refused = api.get("/agents")

    assert statuses == [200, 200]
    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert (refused["RateLimit-Limit"], refused["RateLimit-Remaining"]) == ("2", "0")
    assert 1 <= int(refused["Retry-After"]) <= 30


def test_a_throttled_request_does_not_count_against_the_rate_limit(api: ServiceClient, settings: LazySettings) -> None:
    settings.RATE_LIMIT_PER_MINUTE = 1
    api.get("/agents")

    waits = [int(api.get("/agents")["Retry-After"]) for _request in range(5)]

    assert max(waits) <= 60


def test_each_api_key_has_its_own_rate_limit(
    api: ServiceClient, bound_api: ServiceClient, settings: LazySettings
) -> None:
    settings.RATE_LIMIT_PER_MINUTE = 1
    api.get("/agents")

    assert bound_api.get("/agents").status_code == 200


def test_the_keys_of_an_account_share_its_rate_limit(
    api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient, settings: LazySettings
) -> None:
    settings.ACCOUNT_RATE_LIMIT_PER_MINUTE = 2
    statuses = [each.get("/agents").status_code for each in (api, bound_api)]

    refused = bound_api.get("/agents")

    assert (statuses, refused.status_code, refused["RateLimit-Limit"]) == ([200, 200], 429, "2")
    assert stranger_api.get("/agents").status_code == 200


def test_a_throttled_response_is_not_recorded_for_its_idempotency_key(
    api: ServiceClient, settings: LazySettings
) -> None:
    settings.RATE_LIMIT_PER_MINUTE = 1
    api.get("/agents")
    api.post("/agents", {"agent_id": "planner"}, HTTP_IDEMPOTENCY_KEY="a-1")

    redis.client().flushdb()

    assert api.post("/agents", {"agent_id": "planner"}, HTTP_IDEMPOTENCY_KEY="a-1").status_code == 201


@pytest.fixture
def dead_redis(settings: LazySettings) -> Iterator[None]:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis.client.cache_clear()
    redis.script.cache_clear()
    yield
    redis.client.cache_clear()
    redis.script.cache_clear()
    KeyThrottle.retry_at = 0.0


@pytest.mark.usefixtures("dead_redis")
def test_requests_that_need_only_postgresql_succeed_without_redis(api: ServiceClient) -> None:
    answers = [api.get("/agents") for _request in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert all("RateLimit-Limit" not in answer for answer in answers)
