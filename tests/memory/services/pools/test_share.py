"""Tests of pools of workflow runs: ordered postings, results that expire, access for the run's agents only."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.errors import Conflict, Forbidden, MemoryServiceError, NotFound, TooLarge, Unprocessable
from memory.models import AccessControl, Account, Agent, AuditEntry, BlackboardPosting, MemoryPool, ToolCacheEntry
from memory.owner import Owner
from memory.services.pools.data import (
    MAX_RESULT_TTL_SECONDS,
    cache_result,
    delete_cached_result,
    find_cached_result,
    live_results,
    merge_data,
    post_to_blackboard,
    read_data,
    read_postings,
)
from memory.services.pools.manage import EMPTY_BYTES, PoolDraft, find_pool
from memory.services.pools.workflow_runs import RunDraft, change_run, create_run_pool, start_run
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(minutes=5)
VALUES = ["123", 123, 1.0, True, None, "", [], {}, {"b": [1, {"a": "ü\u2028"}], "a": None}]
"""Values that JSON distinguishes."""


def agent(owner: Owner, agent_id: str) -> Owner:
    return replace(owner, agent_id=agent_id)


def make_pool(owner: Owner, pool_id: str, pool_type: str, *, run: str = "r1", **columns: Any) -> MemoryPool:
    return create_run_pool(owner, run, PoolDraft(pool_id=pool_id, pool_type=pool_type, **columns), now=NOW)


@pytest.fixture
def run(owner: Owner) -> None:
    """The run `r1`, started by `assistant` with `ana` and `bob`, with pools `memory`, `board` and `cache`."""
    start_run(owner, RunDraft(workflow_run_id="r1", agents=["ana", "bob"]), now=NOW)
    for pool_id, pool_type in [("memory", "shared_memory"), ("board", "blackboard"), ("cache", "tool_cache")]:
        make_pool(owner, pool_id, pool_type)


@pytest.fixture
def other_run(owner: Owner) -> None:
    """The run `r2`, started by `zoe` with `yan`, with filled pools `board2` and `cache2`."""
    zoe = agent(owner, "zoe")
    start_run(zoe, RunDraft(workflow_run_id="r2", agents=["yan"]), now=NOW)
    make_pool(zoe, "board2", "blackboard", run="r2")
    make_pool(zoe, "cache2", "tool_cache", run="r2")


def end(owner: Owner) -> None:
    change_run(owner, "r1", changes={"status": "completed"}, now=NOW)


Use = Callable[[Owner], Any]
WRITES: dict[str, Use] = {
    "post": lambda owner: post_to_blackboard(owner, "board", content="x", now=NOW),
    "cache": lambda owner: cache_result(owner, "cache", "k", value="x", now=NOW),
    "forget": lambda owner: delete_cached_result(owner, "cache", "k", now=NOW),
    "merge": lambda owner: merge_data(owner, "memory", data={"x": 1}, expected=None, now=NOW),
}
READS: dict[str, Use] = {
    "postings": lambda owner: list(read_postings(owner, "board", now=NOW)),
    "cached": lambda owner: find_cached_result(owner, "cache", "k", now=NOW),
    "keys": lambda owner: list(live_results(owner, "cache", now=NOW)),
    "data": lambda owner: read_data(owner, "memory", now=NOW),
}
any_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
any_use = pytest.mark.parametrize("use", [*WRITES.values(), *READS.values()], ids=[*WRITES, *READS])


@pytest.fixture
def filled(owner: Owner, run: None) -> None:
    """Fill each of the three pools."""
    for write in ("post", "cache", "merge"):
        WRITES[write](owner)


@any_use
def test_the_runs_agents_and_the_account_read_and_write(owner: Owner, filled: None, use: Use) -> None:
    for agent_id in ("assistant", "ana", "bob", ""):
        with transaction.atomic():
            use(agent(owner, agent_id))
            # each finds the pools as they were filled
            transaction.set_rollback(True)


@any_use
def test_other_agents_do_not_find_the_pool(
    owner: Owner, stranger: Account, filled: None, other_run: None, use: Use
) -> None:
    nobody = [agent(owner, "zoe"), agent(owner, "yan"), Owner(account_id=stranger.id, agent_id="ana")]

    for other in [*nobody, Owner(account_id=stranger.id)]:
        with pytest.raises(NotFound, match="no such pool"):
            use(other)


def test_agents_of_one_run_do_not_find_pools_of_another(owner: Owner, run: None, other_run: None) -> None:
    for agent_id in ("assistant", "ana"):
        with pytest.raises(NotFound):
            post_to_blackboard(agent(owner, agent_id), "board2", content="x", now=NOW)
        with pytest.raises(NotFound):
            list(live_results(agent(owner, agent_id), "cache2", now=NOW))

    assert not BlackboardPosting.objects.exists()


@any_use
def test_a_removed_agent_loses_access(owner: Owner, filled: None, use: Use) -> None:
    use(agent(owner, "ana"))

    change_run(owner, "r1", changes={"agents": ["bob"]}, now=NOW)

    with pytest.raises(NotFound):
        use(agent(owner, "ana"))


def test_pools_of_a_removed_agent_are_reassigned(owner: Owner, run: None) -> None:
    made = make_pool(agent(owner, "ana"), "anas", "blackboard")

    change_run(owner, "r1", changes={"agents": ["bob"]}, now=NOW)

    with pytest.raises(NotFound):
        find_pool(agent(owner, "ana"), "anas", now=NOW)
    left = find_pool(agent(owner, "bob"), "anas", now=NOW)
    assert (left.agent_id, left.version) == ("assistant", made.version + 1)


@any_write
def test_a_reader_cannot_write(owner: Owner, run: None, write: Use) -> None:
    MemoryPool.objects.update(access_control=AccessControl(read=["zoe"]).model_dump())

    with pytest.raises(Forbidden):
        write(agent(owner, "zoe"))


@any_write
def test_a_write_grant_goes_beyond_the_run(owner: Owner, run: None, write: Use) -> None:
    MemoryPool.objects.update(access_control=AccessControl(write=["zoe"]).model_dump())

    write(agent(owner, "zoe"))


@any_write
def test_once_a_run_has_ended_its_pools_are_read_only(owner: Owner, filled: None, write: Use) -> None:
    end(owner)
    before = list(MemoryPool.objects.order_by("id").values_list("version", flat=True))

    for agent_id in ("assistant", "ana", ""):
        with pytest.raises(Conflict):
            write(agent(owner, agent_id))

        assert list(MemoryPool.objects.order_by("id").values_list("version", flat=True)) == before
        for read in READS.values():
            read(agent(owner, agent_id))


@pytest.mark.django_db(transaction=True)
@any_write
def test_a_write_that_waits_while_the_run_ends_is_refused(
    owner: Owner, filled: None, start_concurrently: Start, write: Use
) -> None:
    with transaction.atomic():
        end(owner)
        writing = start_concurrently(lambda: write(agent(owner, "ana")))

    with pytest.raises(Conflict):
        writing.result(PATIENCE_SECONDS)


@pytest.mark.django_db(transaction=True)
def test_a_write_that_waits_while_its_agent_is_removed_is_refused(
    owner: Owner, filled: None, start_concurrently: Start
) -> None:
    with transaction.atomic():
        change_run(owner, "r1", changes={"agents": []}, now=NOW)
        writing = start_concurrently(lambda: post_to_blackboard(agent(owner, "ana"), "board", content="late", now=NOW))

    with pytest.raises(NotFound):
        writing.result(PATIENCE_SECONDS)


@pytest.mark.django_db(transaction=True)
def test_a_run_ends_when_the_writes_under_way_are_done(owner: Owner, filled: None, start_concurrently: Start) -> None:
    with transaction.atomic():
        post_to_blackboard(agent(owner, "ana"), "board", content="in time", now=NOW)
        ending = start_concurrently(lambda: end(owner))

    ending.result(PATIENCE_SECONDS)
    assert [posting.content for posting in read_postings(owner, "board", now=NOW)] == ["x", "in time"]


@pytest.mark.parametrize(
    "use",
    [
        lambda owner: post_to_blackboard(owner, "cache", content="x", now=NOW),
        lambda owner: read_postings(owner, "memory", now=NOW),
        lambda owner: cache_result(owner, "board", "k", value="x", now=NOW),
        lambda owner: find_cached_result(owner, "memory", "k", now=NOW),
        lambda owner: delete_cached_result(owner, "board", "k", now=NOW),
        lambda owner: live_results(owner, "board", now=NOW),
        lambda owner: merge_data(owner, "board", data={}, expected=None, now=NOW),
        lambda owner: read_data(owner, "cache", now=NOW),
    ],
)
def test_a_pool_of_another_type_refuses(owner: Owner, run: None, use: Use) -> None:
    with pytest.raises(Unprocessable):
        use(owner)


def test_postings_come_back_in_order_with_their_authors(owner: Owner, run: None) -> None:
    for number, content in enumerate(VALUES):
        post_to_blackboard(agent(owner, ["ana", "bob"][number % 2]), "board", content=content, now=NOW)

    found = list(read_postings(agent(owner, "bob"), "board", now=NOW))
    assert [posting.position for posting in found] == list(range(len(VALUES)))
    assert [json.dumps(posting.content) for posting in found] == [json.dumps(content) for content in VALUES]
    assert [posting.agent_id for posting in found[:2]] == ["ana", "bob"]
    assert [posting.position for posting in read_postings(owner, "board", after=6, now=NOW)] == [7, 8]


def test_a_posting_is_counted_in_its_pool(owner: Owner, run: None) -> None:
    post_to_blackboard(owner, "board", content="ü", now=LATER)
    list(read_postings(owner, "board", now=LATER))

    board = find_pool(owner, "board", now=LATER)
    assert (board.version, board.write_count, board.read_count, board.entry_count) == (2, 1, 1, 1)
    assert (board.size_bytes, board.last_accessed_at, board.updated_at) == (EMPTY_BYTES + 4, LATER, LATER)
    assert AuditEntry.objects.get(operation="append").affected_ids[0] == str(board.id)


def test_a_posting_is_never_changed(owner: Owner, run: None) -> None:
    post_to_blackboard(owner, "board", content="said", now=NOW)

    with pytest.raises(IntegrityError), transaction.atomic():
        BlackboardPosting.objects.update(content="never said")

    assert BlackboardPosting.objects.get().content == "said"


@pytest.mark.django_db(transaction=True)
def test_concurrent_postings_have_no_gaps_and_keep_the_order_of_each_author(owner: Owner, run: None) -> None:
    def say(agent_id: str) -> None:
        for number in range(5):
            post_to_blackboard(agent(owner, agent_id), "board", content=number, now=NOW)

    with ThreadPoolExecutor(4) as agents:
        list(agents.map(over_own_connection, [partial(say, name) for name in ("ana", "bob", "assistant", "")]))

    found = list(read_postings(owner, "board", now=NOW))
    assert [posting.position for posting in found] == list(range(20))
    for agent_id in ("ana", "bob", "assistant", ""):
        assert [posting.content for posting in found if posting.agent_id == agent_id] == [0, 1, 2, 3, 4]
    assert set(Agent.objects.values_list("agent_id", flat=True)) == {"ana", "bob", "assistant"}


def test_a_blackboard_takes_no_more_than_its_limit(owner: Owner, run: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "POOL_LIMIT_BYTES", EMPTY_BYTES + 20)
    post_to_blackboard(owner, "board", content="a" * 8, now=NOW)
    post_to_blackboard(owner, "board", content="b" * 8, now=NOW)

    with pytest.raises(TooLarge) as refused:
        post_to_blackboard(owner, "board", content=1, now=NOW)

    assert refused.value.facts == {"stored": False, "size_bytes": EMPTY_BYTES + 21, "limit_bytes": EMPTY_BYTES + 20}
    assert find_pool(owner, "board", now=NOW).entry_count == 2


@pytest.mark.parametrize("value", VALUES, ids=json.dumps)
def test_a_cached_result_comes_back_as_it_was(owner: Owner, run: None, value: Any) -> None:
    cached = cache_result(agent(owner, "ana"), "cache", "k", value=value, now=NOW)

    found = find_cached_result(agent(owner, "bob"), "cache", "k", now=LATER)
    assert json.dumps(found.value) == json.dumps(cached.value) == json.dumps(value)
    assert (found.id, found.agent_id, found.hit_count) == (cached.id, "ana", 1)
    assert found.expires_at == NOW + timedelta(seconds=conf.TOOL_CACHE_TTL_SECONDS)


def test_each_result_expires_by_itself(owner: Owner, run: None) -> None:
    cache_result(owner, "cache", "short", value=1, ttl_seconds=60, now=NOW)
    cache_result(owner, "cache", "long", value=2, ttl_seconds=600, now=NOW)

    assert find_cached_result(owner, "cache", "short", now=NOW + timedelta(seconds=59)).value == 1
    with pytest.raises(NotFound):
        find_cached_result(owner, "cache", "short", now=NOW + timedelta(seconds=60))
    assert [entry.key for entry in live_results(owner, "cache", now=LATER)] == ["long"]
    assert not delete_cached_result(owner, "cache", "short", now=LATER)


def test_a_new_result_replaces_the_old_one(owner: Owner, run: None) -> None:
    first = cache_result(agent(owner, "ana"), "cache", "k", value="old", ttl_seconds=60, now=NOW)
    find_cached_result(owner, "cache", "k", now=NOW)

    second = cache_result(agent(owner, "bob"), "cache", "k", value="new", ttl_seconds=600, now=LATER)

    stored = ToolCacheEntry.objects.get()
    assert stored.id == first.id == second.id
    assert (stored.value, stored.agent_id, stored.hit_count) == ("new", "bob", 0)
    assert (stored.ttl_seconds, stored.expires_at) == (600, LATER + timedelta(seconds=600))


def test_hits_are_counted_and_misses_are_reads_of_the_pool(owner: Owner, run: None) -> None:
    cache_result(owner, "cache", "k", value=1, now=NOW)

    for _hit in range(3):
        found = find_cached_result(owner, "cache", "k", now=LATER)
    with pytest.raises(NotFound):
        find_cached_result(owner, "cache", "other", now=LATER)

    pool = find_pool(owner, "cache", now=LATER)
    assert (found.hit_count, pool.read_count, pool.last_accessed_at) == (3, 4, LATER)


def test_a_result_can_be_deleted(owner: Owner, run: None) -> None:
    cache_result(owner, "cache", "k", value="ü", now=NOW)
    held = find_pool(owner, "cache", now=NOW)

    assert delete_cached_result(owner, "cache", "k", now=NOW)
    assert not delete_cached_result(owner, "cache", "k", now=NOW)

    left = find_pool(owner, "cache", now=NOW)
    assert (held.entry_count, held.size_bytes, held.version) == (1, EMPTY_BYTES + 5, 2)
    assert (left.entry_count, left.size_bytes, left.version) == (0, EMPTY_BYTES, 3)


def test_a_cache_takes_no_more_than_its_limit(owner: Owner, run: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "POOL_LIMIT_BYTES", EMPTY_BYTES + 22)
    cache_result(owner, "cache", "a", value="x" * 8, ttl_seconds=60, now=NOW)
    cache_result(owner, "cache", "b", value="x" * 8, now=NOW)
    # in its own place
    cache_result(owner, "cache", "b", value="y" * 8, now=NOW)

    with pytest.raises(TooLarge):
        cache_result(owner, "cache", "c", value=1, now=NOW)

    # room again, whether the cleaner came or not
    cache_result(owner, "cache", "c", value=1, now=LATER)
    assert find_pool(owner, "cache", now=LATER).entry_count == 2


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"value": "x" * conf.TIER_VALUE_BYTES}, TooLarge),
        ({"value": float("nan")}, Unprocessable),
        ({"key": ""}, Unprocessable),
        ({"key": "a\x00"}, Unprocessable),
        ({"key": "k" * 201}, Unprocessable),
        ({"ttl_seconds": 0}, Unprocessable),
        ({"ttl_seconds": MAX_RESULT_TTL_SECONDS + 1}, Unprocessable),
    ],
)
def test_an_invalid_cache_entry_is_refused(
    owner: Owner, run: None, given: dict[str, Any], error: type[MemoryServiceError]
) -> None:
    arguments: dict[str, Any] = {"key": "k", "value": 1} | given

    with pytest.raises(error):
        cache_result(owner, "cache", **arguments, now=NOW)

    assert not ToolCacheEntry.objects.exists()


def test_each_call_takes_a_fixed_number_of_statements(
    owner: Owner, filled: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ana = agent(owner, "ana")

    # of a write, two are the savepoint's
    with django_assert_num_queries(7):
        post_to_blackboard(ana, "board", content="x", now=NOW)
    with django_assert_num_queries(8):
        cache_result(ana, "cache", "k", value=1, now=NOW)
    with django_assert_num_queries(3):
        find_cached_result(ana, "cache", "k", now=NOW)
    with django_assert_num_queries(3):
        list(read_postings(ana, "board", now=NOW))
