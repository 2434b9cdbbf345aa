"""Tests of the router: four tiers behind one key, read from the fastest to the shared one."""

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from memory import conf
from memory.errors import Conflict, Forbidden, NotFound, TooLarge, Unprocessable
from memory.models import (
    AccessControl,
    Account,
    AgentShortTermMemory,
    ContextAccessLog,
    ContextEntry,
    MemoryPool,
    PersistentContext,
)
from memory.owner import Owner
from memory.services.contexts.manage import archive_context, ensure_own_context
from memory.services.pools.manage import PoolDraft, create_pool
from memory.services.router import TIERS, MemoryRouter, RoutedValue
from memory.tiers import access_log
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.base import NewValue
from tests.memory.episodes import NOW
from tests.memory.routing import has, tiers_with, write, write_names

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

LATER = NOW + timedelta(hours=1)
VALUES = ["123", 123, 1.0, 1, True, False, None, "", " ", [], {}, {"b": [None, {"a": 10**30}], "a": "ä"}, 0.1, "null"]


@pytest.fixture
def router(owner: Owner) -> MemoryRouter:
    return MemoryRouter(owner)


@pytest.fixture
def others(owner: Owner, stranger: Account) -> list[MemoryRouter]:
    """Another agent of the account, and another account's agent of the same name."""
    return [MemoryRouter(replace(owner, agent_id="planner")), MemoryRouter(replace(owner, account_id=stranger.id))]


def make_pool(owner: Owner, **access: Any) -> str:
    draft = PoolDraft(pool_type="agent_private", access_control=AccessControl(**access))
    return create_pool(owner, draft, now=NOW).pool_id


@pytest.mark.parametrize("first", range(4))
def test_the_fastest_tier_with_the_key_answers(router: MemoryRouter, first: int) -> None:
    write_names(router, *TIERS[first:])

    found = router.read("k", now=NOW)

    assert found == RoutedValue(key="k", value=TIERS[first], tier=TIERS[first])


def test_only_a_named_tier_answers(router: MemoryRouter) -> None:
    write_names(router, *TIERS)

    assert [router.read("k", tier=tier, now=NOW).value for tier in TIERS] == list(TIERS)


def test_a_key_in_no_tier_is_not_found(router: MemoryRouter) -> None:
    with pytest.raises(NotFound):
        router.read("k", now=NOW)

    assert not MemoryPool.objects.exists()
    assert not PersistentContext.objects.exists()


@pytest.mark.parametrize("tier", TIERS)
def test_every_type_comes_back_exact_from_every_tier(router: MemoryRouter, tier: str) -> None:
    for number, value in enumerate(VALUES):
        key = f"k{number}"
        write(router, value, tier, key=key)

        assert json.dumps(router.read(key, now=NOW).value) == json.dumps(value)
        assert router.read(key, now=NOW).tier == tier


@pytest.mark.parametrize("tier", TIERS)
def test_a_key_may_contain_any_characters(router: MemoryRouter, tier: str) -> None:
    for key in ("a/b~c", "-", "0", "-1", "%", "ä b", "{k}", '"', "k" * 200):
        write(router, "value", tier, key=key)

        assert tiers_with(router, key) == [tier]
        assert router.keys(tier=tier, now=NOW) == [key]
        assert router.delete(key, now=NOW) == (tier,)


@pytest.mark.parametrize("tier", TIERS)
def test_writing_again_replaces_the_value(router: MemoryRouter, tier: str) -> None:
    write(router, "old", tier)
    write(router, "new", tier)

    assert router.read("k", now=NOW).value == "new"
    assert router.keys(tier=tier, now=NOW) == ["k"]


def test_values_are_written_to_short_term_by_default(router: MemoryRouter) -> None:
    assert router.write("k", NewValue(value=1), now=NOW) == RoutedValue(key="k", value=1, tier="short_term")
    assert tiers_with(router) == ["short_term"]


def test_a_value_expired_in_one_tier_is_read_from_the_next(router: MemoryRouter) -> None:
    write_names(router, "long_term", "shared")
    router.write("k", NewValue(value="short", ttl_seconds=60), now=NOW)

    before = router.read("k", now=NOW + timedelta(seconds=59))
    after = router.read("k", now=NOW + timedelta(seconds=60))

    assert (before.value, after.value) == ("short", "long_term")


def test_a_value_lost_from_working_memory_is_read_from_the_next(router: MemoryRouter, owner: Owner) -> None:
    write_names(router, "working", "short_term")

    WorkingMemoryService(owner).remove("k")

    assert router.read("k", now=NOW).tier == "short_term"


def test_short_term_keys_belong_to_a_session(router: MemoryRouter) -> None:
    write(router, "mine", "short_term", session_id="s1")
    write(router, "everywhere", "shared")

    assert router.read("k", session_id="s1", now=NOW).value == "mine"
    assert router.read("k", session_id="s2", now=NOW).value == "everywhere"
    assert router.read("k", now=NOW).value == "everywhere"
    assert router.keys(tier="short_term", session_id="s1", now=NOW) == ["k"]


def test_a_read_counts_as_an_access(router: MemoryRouter) -> None:
    write(router, 1, "short_term")

    for _ in range(3):
        router.read("k", now=NOW)

    assert AgentShortTermMemory.objects.get().access_count == 3


def test_a_read_of_long_term_memory_is_in_its_access_log(router: MemoryRouter) -> None:
    write(router, 1, "long_term")

    router.read("k", now=NOW)

    entry = ContextEntry.objects.get()
    (line,) = access_log.read_access_lines(10, after="", account_id=entry.account_id)[0]
    assert (line.entry_id, line.action, line.agent_id) == (entry.id, "read", "assistant")
    assert ContextAccessLog.objects.get().action == "create"


def test_long_term_values_keep_their_versions_and_can_be_searched(router: MemoryRouter) -> None:
    write(router, "The keel broke.", "long_term", key="keel")
    write(router, {"mast": "stands"}, "long_term", key="mast")
    write(router, "The keel is whole.", "long_term", key="keel")

    found = router.semantic_search("The keel is whole.", top_k=1, now=NOW)

    assert [(hit.key, hit.value, hit.content_version) for hit in found.hits] == [("keel", "The keel is whole.", 2)]


def test_a_search_without_a_live_own_context_finds_nothing(router: MemoryRouter, owner: Owner) -> None:
    assert router.semantic_search("keel", now=NOW).hits == []
    write(router, "keel", "long_term")

    archive_context(owner, ensure_own_context(owner, now=NOW).id, expected=None, now=NOW)

    assert router.semantic_search("keel", now=NOW).hits == []


def test_other_agents_and_other_accounts_find_nothing(router: MemoryRouter, others: list[MemoryRouter]) -> None:
    write_names(router, *TIERS)

    for other in others:
        assert tiers_with(other) == []
        assert [other.keys(tier=tier, now=NOW) for tier in TIERS] == [[], [], [], []]
        assert other.semantic_search("long_term", now=NOW).hits == []
        with pytest.raises(NotFound):
            other.delete("k", now=NOW)
    assert tiers_with(router) == list(TIERS)


def test_other_agents_and_other_accounts_write_their_own(router: MemoryRouter, others: list[MemoryRouter]) -> None:
    write_names(router, *TIERS)

    for other in others:
        write(other, "theirs", *TIERS)
        other.delete("k", now=NOW)

    assert [router.read("k", tier=tier, now=NOW).value for tier in TIERS] == list(TIERS)


def test_deleting_deletes_everywhere(router: MemoryRouter) -> None:
    write(router, 1, *TIERS)
    write(router, 2, *TIERS, key="other")

    assert router.delete("k", now=NOW) == TIERS

    assert (tiers_with(router), tiers_with(router, "other")) == ([], list(TIERS))
    with pytest.raises(NotFound):
        router.delete("k", now=NOW)


@pytest.mark.parametrize("tier", TIERS)
def test_deleting_in_one_tier_leaves_the_others(router: MemoryRouter, tier: str) -> None:
    write(router, 1, *TIERS)

    assert router.delete("k", tier=tier, now=NOW) == (tier,)

    assert tiers_with(router) == [other for other in TIERS if other != tier]
    with pytest.raises(NotFound):
        router.delete("k", tier=tier, now=NOW)


def test_an_entry_deleted_while_waiting_for_promotion_does_not_come_back(router: MemoryRouter) -> None:
    write(router, 1, "short_term")
    AgentShortTermMemory.objects.update(access_count=3)

    with pytest.raises(NotFound):
        router.delete("k", now=LATER)

    assert router.consolidate(session_id="", now=LATER).keys == []


def test_a_refused_delete_deletes_nothing(router: MemoryRouter, owner: Owner) -> None:
    write(router, 1, *TIERS)
    archive_context(owner, ensure_own_context(owner, now=NOW).id, expected=None, now=NOW)

    with pytest.raises(Conflict):
        router.delete("k", now=NOW)

    assert tiers_with(router) == list(TIERS)


def test_deleting_a_missing_name_makes_no_version(router: MemoryRouter) -> None:
    write(router, 1, "shared", key="other")

    with pytest.raises(NotFound):
        router.delete("k", now=NOW)

    assert MemoryPool.objects.get().version == 2


def test_a_named_pool_is_the_shared_tier(router: MemoryRouter, owner: Owner) -> None:
    pool_id = make_pool(owner)
    write(router, "pooled", "shared", pool_id=pool_id)

    assert router.read("k", pool_id=pool_id, now=NOW).value == "pooled"
    assert router.keys(tier="shared", pool_id=pool_id, now=NOW) == ["k"]
    assert tiers_with(router) == []
    assert router.delete("k", pool_id=pool_id, now=NOW) == ("shared",)


def test_a_read_grant_opens_a_pool_for_reading_and_a_write_grant_for_writing(
    router: MemoryRouter, owner: Owner, others: list[MemoryRouter]
) -> None:
    readable, writable = make_pool(owner, read=["planner"]), make_pool(owner, write=["planner"])
    for pool_id in (readable, writable):
        write(router, 1, "shared", pool_id=pool_id)
    planner, elsewhere = others

    assert [has(planner, "k", pool_id=readable), has(planner, "k", pool_id=writable)] == [True, True]
    assert planner.delete("k", pool_id=writable, now=NOW) == ("shared",)
    for refused in (partial(write, planner, 2, "shared"), partial(planner.delete, "k", now=NOW)):
        with pytest.raises(Forbidden):
            refused(pool_id=readable)
    assert not has(elsewhere, "k", pool_id=readable)
    with pytest.raises(NotFound):
        write(elsewhere, 2, "shared", pool_id=readable)


@pytest.mark.parametrize(
    ("tier", "where", "written"),
    [
        ("short_term", {"pool_id": "p1"}, {}),
        ("working", {}, {"ttl_seconds": 604_801}),
        ("short_term", {}, {"ttl_seconds": 2_592_001}),
        ("long_term", {}, {"ttl_seconds": 60}),
        ("shared", {}, {"ttl_seconds": 60}),
        ("short_term", {}, {"memory_type": "factual"}),
        ("long_term", {}, {"memory_type": "reflection"}),
        ("shared", {}, {"memory_type": "factual"}),
        ("nowhere", {}, {}),
    ],
)
def test_options_that_a_tier_does_not_support_are_refused(
    router: MemoryRouter, tier: str, where: dict[str, str], written: dict[str, Any]
) -> None:
    with pytest.raises(Unprocessable):
        router.write("k", NewValue(value=1, **written), tier=tier, now=NOW, **where)

    assert tiers_with(router) == []


def test_types_and_times_to_live_reach_their_tier(router: MemoryRouter, owner: Owner) -> None:
    router.write("k", NewValue(value=1, memory_type="reflection", ttl_seconds=60), now=NOW)
    router.write("k", NewValue(value=1, memory_type="experiential"), tier="long_term", now=NOW)
    router.write("k", NewValue(value=1, ttl_seconds=60), tier="working", now=NOW)

    short, left = AgentShortTermMemory.objects.get(), WorkingMemoryService(owner).find("k")
    assert (short.memory_type, short.ttl_seconds) == ("reflection", 60)
    assert ContextEntry.objects.get().memory_type == "experiential"
    assert left is not None
    assert left.ttl_seconds <= 60


@pytest.mark.parametrize("tier", TIERS)
def test_a_value_over_the_limit_is_refused_by_every_tier(router: MemoryRouter, tier: str) -> None:
    write(router, "x" * (conf.TIER_VALUE_BYTES - 2), tier)

    with pytest.raises(TooLarge):
        write(router, "x" * (conf.TIER_VALUE_BYTES - 1), tier)

    assert len(router.read("k", now=NOW).value) == conf.TIER_VALUE_BYTES - 2


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("key", "value"), [("", 1), ("k" * 201, 1), ("a\x00b", 1), ("k", "a\x00b"), ("k", "\ud800")])
def test_values_that_cannot_be_stored_are_refused_by_every_tier(
    router: MemoryRouter, tier: str, key: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=r"name|NUL|surrogates"):
        write(router, value, tier, key=key)


def test_the_router_requires_an_agent(owner: Owner) -> None:
    with pytest.raises(Unprocessable):
        MemoryRouter(replace(owner, agent_id=""))
