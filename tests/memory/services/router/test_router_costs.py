"""Tests of the router's statistics, its costs, and its behaviour without Redis."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_django import DjangoAssertNumQueries
from redis.exceptions import RedisError

from memory.models import Account, AgentShortTermMemory
from memory.owner import Owner
from memory.services.router import TIERS, MemoryRouter
from tests.memory.episodes import NOW
from tests.memory.routing import has, write
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def router(owner: Owner) -> MemoryRouter:
    return MemoryRouter(owner)


@pytest.fixture
def others(owner: Owner, stranger: Account) -> list[MemoryRouter]:
    """Another agent of the account, and another account's agent of the same name."""
    return [MemoryRouter(replace(owner, agent_id="planner")), MemoryRouter(replace(owner, account_id=stranger.id))]


def test_stats_count_entries_hits_and_misses_of_each_tier(router: MemoryRouter) -> None:
    write(router, "ä", "working", "short_term")
    write(router, {"a": 1}, "long_term", "shared", key="other")
    for key in ("k", "k", "other"):
        router.read(key, now=NOW)
    has(router, "nothing")

    stats = router.stats(now=NOW)

    figures = {name: (tier.entries, tier.size_bytes, tier.hits, tier.misses) for name, tier in stats.items()}
    assert figures == {
        "working_memory": (1, 5, 2, 2),
        "short_term": (1, 5, 0, 2),
        "long_term": (1, 13, 1, 1),
        "shared": (1, 17, 0, 1),
    }


def test_stats_exclude_expired_entries(router: MemoryRouter) -> None:
    write(router, 1, "short_term")

    assert router.stats(now=NOW)["short_term"].entries == 1
    assert router.stats(now=LATER)["short_term"].entries == 0


def test_stats_cover_one_agent(router: MemoryRouter, others: list[MemoryRouter]) -> None:
    write(router, 1, *TIERS)
    router.read("k", now=NOW)

    for other in others:
        stats = other.stats(now=NOW).values()
        assert {(tier.entries, tier.size_bytes, tier.hits, tier.misses) for tier in stats} <= {(0, 0, 0, 0)}


@pytest.mark.parametrize(
    ("tier", "statements", "commands"),
    [("working", 0, 2), ("short_term", 1, 2), ("long_term", 2, 3), ("shared", 5, 2), (None, 3, 2)],
)
def test_the_cost_of_a_read_grows_with_the_tiers_asked(
    router: MemoryRouter,
    django_assert_num_queries: DjangoAssertNumQueries,
    tier: str | None,
    statements: int,
    commands: int,
) -> None:
    if tier:
        write(router, 1, tier)
    has(router, "k")

    with django_assert_num_queries(statements), counted_commands() as sent:
        has(router, "k")

    assert len(sent) == commands


@pytest.mark.parametrize("act", ["read", "delete", "stats"])
def test_without_redis_no_slower_tier_answers_for_working_memory(
    router: MemoryRouter, request: pytest.FixtureRequest, act: str
) -> None:
    write(router, "stale", "short_term")
    request.getfixturevalue("dead_redis")
    acts: dict[str, Callable[[], object]] = {
        "read": lambda: router.read("k", now=NOW),
        "delete": lambda: router.delete("k", now=NOW),
        "stats": lambda: router.stats(now=NOW),
    }

    with pytest.raises(RedisError):
        acts[act]()

    assert AgentShortTermMemory.objects.count() == 1


def test_without_redis_a_named_tier_of_the_database_answers(
    router: MemoryRouter, request: pytest.FixtureRequest
) -> None:
    write(router, "there", "short_term")
    request.getfixturevalue("dead_redis")

    assert router.read("k", tier="short_term", now=NOW).value == "there"
