"""Strategies: learned once and counted from then on, visible as knowledge is, found by similarity and success."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import (
    Account,
    Agent,
    AuditEntry,
    Conversation,
    Memory,
    Strategy,
    StrategyTool,
    StrategyUse,
    Tool,
)
from memory.owner import Owner
from memory.services.conversations.staff_edits import delete_conversation
from memory.services.strategies.learn import (
    MAX_TOOLS,
    find_strategies,
    find_strategy,
    reinforce_strategy,
    remove_strategy,
    visible_strategies,
)
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection
from tests.memory.episodes import NOW
from tests.memory.procedures import invoke, learn

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def ana(owner: Owner) -> Owner:
    return replace(owner, user_id="ana")


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


@pytest.fixture
def whole_account(owner: Owner) -> Owner:
    return replace(owner, agent_id="")


def known(owner: Owner) -> list[str]:
    return [strategy.description for strategy in visible_strategies(owner, now=NOW).order_by("id")]


def counts(strategy: Strategy) -> tuple[int, int]:
    return strategy.success_count, strategy.failure_count


def stored_counts() -> tuple[int, int]:
    return counts(Strategy.objects.get())


def test_a_strategy_is_learned_with_its_tools_and_outcome(owner: Owner) -> None:
    invoke(owner, "read")

    strategy = learn(
        owner,
        "Search, then read.",
        context_pattern="a question of fact",
        tool_sequence=["search", "read", "search"],
        task_type="look up",
        conversation_id="c1",
        success=True,
        metadata={"from": "run 7"},
    )

    stored = find_strategy(owner, strategy.id, now=NOW)
    texts = (stored.description, stored.context_pattern, stored.task_type)
    assert texts == ("Search, then read.", "a question of fact", "look up")
    assert (stored.tool_sequence, stored.metadata) == (["search", "read", "search"], {"from": "run 7"})
    assert (counts(stored), stored.last_used, stored.conversation_id) == ((1, 0), NOW, "c1")
    assert sorted(StrategyTool.objects.values_list("tool__name", flat=True)) == ["read", "search"]
    assert list(Tool.objects.order_by("name").values_list("name", "usage_count")) == [("read", 1), ("search", 0)]


def test_its_first_use_is_kept_with_the_conversation(owner: Owner) -> None:
    invoke(owner, conversation_id="c1")

    strategy = learn(owner, conversation_id="c1", success=True)

    use = StrategyUse.objects.get()
    assert (use.strategy_id, use.conversation, use.agent_id) == (strategy.id, Conversation.objects.get(), "assistant")
    assert (use.success, use.used_at) == (True, NOW)


def test_a_strategy_without_an_outcome_counts_no_use(owner: Owner) -> None:
    strategy = learn(owner)

    assert (counts(strategy), strategy.last_used) == ((0, 0), None)
    assert not StrategyUse.objects.exists()


def test_learning_again_counts_and_stores_nothing_twice(owner: Owner) -> None:
    first = learn(owner, "Search, then read.", success=True)

    again = learn(owner, "search  then READ", success=False, now=LATER)

    assert (again.id, counts(again), again.last_used) == (first.id, (1, 1), LATER)
    assert stored_counts() == (1, 1)
    assert StrategyUse.objects.count() == 2


def test_learning_again_completes_a_strategy_and_keeps_its_values(owner: Owner) -> None:
    learn(owner, context_pattern="a question")

    again = learn(owner, context_pattern="another", tool_sequence=["search"])

    stored = find_strategy(owner, again.id, now=NOW)
    assert (stored.context_pattern, stored.tool_sequence, stored.version) == ("a question", ["search"], 2)
    assert (again.tool_sequence, again.version) == (["search"], 2)
    assert StrategyTool.objects.get().tool.name == "search"


def test_holders_channels_and_types_of_task_have_strategies_of_their_own(
    owner: Owner, ana: Owner, colleague: Owner, stranger: Account
) -> None:
    for holder in (owner, ana, colleague, replace(owner, channel="web"), Owner(account_id=stranger.id)):
        learn(holder)
    learn(owner, task_type="look up")

    assert Strategy.objects.count() == 6


def test_one_users_agents_share_a_strategy(ana: Owner) -> None:
    learn(ana, success=True)

    learn(replace(ana, agent_id="colleague"), success=True)

    assert stored_counts() == (2, 0)


def test_strategies_are_seen_as_knowledge_is(
    owner: Owner, ana: Owner, colleague: Owner, whole_account: Owner, stranger: Account
) -> None:
    learn(owner, "of the agent")
    learn(ana, "of ana")
    learn(replace(ana, user_id="ben"), "of ben")

    assert known(replace(colleague, user_id="ana")) == ["of ana"]
    assert known(ana) == ["of the agent", "of ana"]
    assert known(whole_account) == known(owner) == ["of the agent", "of ana", "of ben"]
    assert known(colleague) == known(Owner(account_id=stranger.id)) == []


def test_lists_look_in_the_channel_and_in_the_global_one(owner: Owner) -> None:
    learn(owner, "everywhere")
    web = learn(replace(owner, channel="web"), "on the web")

    assert known(replace(owner, channel="web")) == ["everywhere", "on the web"]
    assert known(owner) == ["everywhere"]
    assert find_strategy(owner, web.id, now=NOW).description == "on the web"


def test_a_strategy_cannot_be_learned_in_a_conversation_of_others(owner: Owner, colleague: Owner) -> None:
    invoke(colleague, conversation_id="theirs")

    for conversation_id in ("theirs", "none"):
        with pytest.raises(Unprocessable, match="there is no such conversation"):
            learn(owner, conversation_id=conversation_id, success=True)

    assert not Strategy.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_sequence": [""]},
        {"tool_sequence": ["x" * 101]},
        {"tool_sequence": ["x"] * (MAX_TOOLS + 1)},
        {"tool_sequence": "abc"},
        {"task_type": "x" * 101},
    ],
    ids=["empty", "long", "many", "one name", "long type"],
)
def test_invalid_drafts_are_refused(owner: Owner, fields: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        learn(owner, **fields)

    assert not Memory.objects.exists()


def test_reinforcing_counts_and_keeps_the_use(owner: Owner, colleague: Owner) -> None:
    strategy = learn(owner)
    invoke(owner, conversation_id="c1")

    reinforce_strategy(owner, strategy.id, success=True, conversation_id="c1", now=LATER)
    counted = reinforce_strategy(owner, strategy.id, success=False, now=NOW)

    assert (counts(counted), counted.last_used) == ((1, 1), LATER)
    assert stored_counts() == (1, 1)
    used = StrategyUse.objects.order_by("id").values_list("success", "conversation__conversation_id", "used_at")
    assert list(used) == [(True, "c1", LATER), (False, None, NOW)]


def test_an_owner_that_does_not_see_a_strategy_cannot_reinforce_it(
    owner: Owner, colleague: Owner, stranger: Account
) -> None:
    strategy = learn(owner)

    for other in (colleague, Owner(account_id=stranger.id)):
        with pytest.raises(NotFound):
            reinforce_strategy(other, strategy.id, success=True, now=NOW)
    with pytest.raises(NotFound):
        reinforce_strategy(owner, uuid4(), success=True, now=NOW)
    with pytest.raises(Unprocessable):
        reinforce_strategy(owner, strategy.id, success=True, conversation_id="none", now=NOW)

    assert stored_counts() == (0, 0)


def test_the_first_reinforcement_registers_the_agent(ana: Owner, django_capture_on_commit_callbacks: Any) -> None:
    strategy = learn(ana)

    with django_capture_on_commit_callbacks(execute=True):
        reinforce_strategy(replace(ana, agent_id="brand new"), strategy.id, success=True, now=NOW)

    assert Agent.objects.filter(agent_id="brand new").exists()


def test_a_removed_strategy_is_hidden_and_learned_again_without_counts(owner: Owner) -> None:
    removed = learn(owner, success=True, angle=0.0)

    remove_strategy(owner, removed.id, now=NOW)

    assert known(owner) == []
    for act in (find_strategy, remove_strategy):
        with pytest.raises(NotFound):
            act(owner, removed.id, now=NOW)
    again = learn(owner, success=False)
    assert again.id != removed.id
    assert counts(again) == (0, 1)


def test_learning_again_restores_an_archived_strategy(owner: Owner) -> None:
    strategy = learn(owner, success=True)
    Memory.objects.update(archived=True)

    learn(owner, success=True)

    assert counts(find_strategy(owner, strategy.id, now=NOW)) == (2, 0)


def test_learning_again_restores_an_expired_strategy(owner: Owner) -> None:
    strategy = learn(owner, success=True)
    Memory.objects.update(expires_at=NOW)

    again = learn(owner, success=True)

    found = find_strategy(owner, strategy.id, now=LATER)
    assert (counts(found), found.expires_at, again.expires_at) == ((2, 0), None, None)


def test_learning_again_keeps_a_future_expiry(owner: Owner) -> None:
    learn(owner)
    Memory.objects.update(expires_at=LATER)

    learn(owner, success=True)

    assert Memory.objects.get().expires_at == LATER


def test_a_quarantined_strategy_cannot_be_learned_again(owner: Owner) -> None:
    learn(owner, success=True)
    Memory.objects.update(quarantined=True)

    with pytest.raises(Conflict, match="quarantined"):
        learn(owner, context_pattern="a question", success=True)

    stored = Strategy.objects.get()
    assert (counts(stored), stored.context_pattern, stored.quarantined) == ((1, 0), "", True)


def test_only_the_holder_and_the_account_may_remove_a_strategy(owner: Owner, ana: Owner, whole_account: Owner) -> None:
    first, second = learn(owner, "first"), learn(owner, "second")

    with pytest.raises(Forbidden):
        remove_strategy(ana, first.id, now=NOW)
    remove_strategy(owner, first.id, now=NOW)
    remove_strategy(whole_account, second.id, now=NOW)

    assert known(owner) == []


def test_the_audit_log_records_operations_and_no_texts(owner: Owner) -> None:
    strategy = learn(owner, "Look under the mat.", success=True)
    reinforce_strategy(owner, strategy.id, success=False, now=NOW)
    remove_strategy(owner, strategy.id, now=NOW)

    entries = AuditEntry.objects.filter(affected_ids=[str(strategy.id)]).order_by("id")
    assert list(entries.values_list("operation", "memory_type")) == [
        ("store", "procedural"),
        ("reinforce", "procedural"),
        ("reinforce", "procedural"),
        ("archive", "procedural"),
    ]
    assert not any("mat" in str(entry.__dict__) for entry in AuditEntry.objects.all())


def test_uses_survive_their_conversation(owner: Owner) -> None:
    invoke(owner, conversation_id="c1")
    learn(owner, conversation_id="c1", success=True)

    delete_conversation(Owner(account_id=owner.account_id), "c1")

    assert StrategyUse.objects.get().conversation is None


def test_searching_without_the_embedder_is_reported(owner: Owner, embedding_server: Any) -> None:
    learn(owner, "Search for the mat, then look.")
    embedding_server.fail()

    found = find_strategies(owner, task_description="look under the mat", top_k=5, now=NOW)

    assert [hit.description for hit in found.hits] == ["Search for the mat, then look."]
    assert list(found.degraded) == ["embedder_unavailable", "embedding_pending"]


def test_learning_and_reinforcing_cost_as_many_queries_as_stated(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    strategy = learn(owner, "first", tool_sequence=["search"], success=True)

    # savepoint and release; strategy, vector, agent, audit; tools created, read, linked; count, use, audit
    with django_assert_num_queries(12):
        learn(owner, "second", tool_sequence=["search", "read"], success=True, angle=0.0)
    # savepoint and release; insert without effect, lock; count, use, audit
    with django_assert_num_queries(8):
        learn(owner, "second", tool_sequence=["search"], success=True)
    with django_assert_num_queries(6):
        reinforce_strategy(owner, strategy.id, success=True, now=NOW)


@pytest.mark.django_db(transaction=True)
def test_concurrent_learners_store_one_strategy(owner: Owner, start_concurrently: Start) -> None:
    with transaction.atomic():
        learn(owner, success=True)
        other: Future[object] = start_concurrently(lambda: learn(owner, success=True))

    other.result(PATIENCE_SECONDS)
    assert stored_counts() == (2, 0)


@pytest.mark.django_db(transaction=True)
def test_fifty_reinforcements_at_the_same_time_are_all_counted(owner: Owner) -> None:
    strategy = learn(owner)

    def reinforce(number: int) -> None:
        over_own_connection(lambda: reinforce_strategy(owner, strategy.id, success=number % 5 > 0, now=NOW))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(reinforce, range(50)))

    assert stored_counts() == (40, 10)
    assert StrategyUse.objects.count() == 50


@pytest.mark.django_db(transaction=True)
def test_reinforcing_a_strategy_that_is_being_removed_is_not_found(owner: Owner, start_concurrently: Start) -> None:
    strategy = learn(owner)

    with transaction.atomic():
        remove_strategy(owner, strategy.id, now=NOW)
        late: Future[object] = start_concurrently(lambda: reinforce_strategy(owner, strategy.id, success=True, now=NOW))

    with pytest.raises(NotFound):
        late.result(PATIENCE_SECONDS)
