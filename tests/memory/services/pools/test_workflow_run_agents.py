"""Tests of the agents of a workflow run: changes lock the run, and removed agents lose everything in it."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from memory.errors import NotFound, Unprocessable
from memory.models import AccessControl, AuditEntry, Level, MemoryPool, WorkflowRun
from memory.owner import Owner
from memory.services.pools.data import post_to_blackboard, read_postings
from memory.services.pools.manage import PoolDraft, find_pool, grant_access
from memory.services.pools.workflow_runs import MAX_AGENTS, RunDraft, change_run, create_run_pool, find_run, start_run
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db


def agent(owner: Owner, agent_id: str) -> Owner:
    return replace(owner, agent_id=agent_id)


@pytest.fixture
def run(owner: Owner) -> WorkflowRun:
    """Begun by `assistant`, with `ana` and `bob` in it."""
    return start_run(owner, RunDraft(workflow_run_id="r1", agents=["ana", "bob"]), now=NOW)


def make_board(owner: Owner, pool_id: str = "board", **access_control: Any) -> MemoryPool:
    draft = PoolDraft(pool_id=pool_id, pool_type="blackboard", access_control=AccessControl(**access_control))
    return create_run_pool(owner, "r1", draft, now=NOW)


def change(owner: Owner, **changes: Any) -> WorkflowRun:
    return change_run(owner, "r1", changes=changes, now=NOW)


# what removal takes


@pytest.mark.parametrize("changes", [{"agents": ["bob"]}, {"remove_agents": ["ana"]}])
@pytest.mark.parametrize("maker", ["ana", "bob", "assistant"])
@pytest.mark.parametrize("granted", [{"write": ["ana"]}, {"read": ["ana"]}, {"read": ["ana"], "write": ["ana"]}])
def test_a_removed_agent_loses_access_even_if_a_pool_names_it(
    owner: Owner, run: WorkflowRun, maker: str, granted: dict[str, Any], changes: dict[str, Any]
) -> None:
    make_board(agent(owner, maker), **granted)

    change(owner, **changes)

    with pytest.raises(NotFound):
        read_postings(agent(owner, "ana"), "board", now=NOW)
    with pytest.raises(NotFound):
        post_to_blackboard(agent(owner, "ana"), "board", content="still here", now=NOW)


def test_removal_takes_no_grants_of_others(owner: Owner, run: WorkflowRun) -> None:
    made = make_board(agent(owner, "bob"), read=["ana", "zoe"], write=["ana", "bob"], public_read=True)

    change(owner, remove_agents=["ana"])

    left = find_pool(owner, "board", now=NOW)
    assert left.access_control == {"read": ["zoe"], "write": ["bob"], "public_read": True}
    assert (left.agent_id, left.version) == ("bob", made.version + 1)


def test_removal_leaves_other_pools_unchanged(owner: Owner, run: WorkflowRun) -> None:
    start_run(owner, RunDraft(workflow_run_id="r2", agents=["ana"]), now=NOW)
    other = PoolDraft(pool_id="other", pool_type="blackboard", access_control=AccessControl(write=["ana"]))
    create_run_pool(owner, "r2", other, now=NOW)
    make_board(owner, write=["bob"])

    change(owner, agents=[])

    assert find_pool(agent(owner, "ana"), "other", now=NOW).grants.write == ["ana"]
    # bob's grant was removed with bob
    assert list(MemoryPool.objects.order_by("pool_id").values_list("pool_id", "version")) == [
        ("board", 2),
        ("other", 1),
    ]


def test_removal_is_audited(owner: Owner, run: WorkflowRun) -> None:
    named, made = make_board(owner, "named", write=["ana"]), make_board(agent(owner, "ana"), "made")
    make_board(owner, "neither")

    change(owner, agents=["bob"])

    entry = AuditEntry.objects.get(operation="revoke")
    assert (entry.memory_type, set(entry.affected_ids)) == ("pool", {str(named.id), str(made.id)})


def test_the_starter_keeps_access_without_being_listed(owner: Owner, run: WorkflowRun) -> None:
    make_board(owner, write=["assistant"])

    change(owner, agents=["assistant", "bob"])
    change(owner, agents=["bob"])

    assert find_pool(owner, "board", now=NOW).grants.write == ["assistant"]


@pytest.mark.django_db(transaction=True)
def test_an_agent_that_grants_itself_a_pool_while_it_is_removed_is_too_late(
    owner: Owner, run: WorkflowRun, start_concurrently: Start
) -> None:
    ana = agent(owner, "ana")
    make_board(ana)

    with transaction.atomic():
        change(owner, agents=["bob"])
        granting = start_concurrently(
            lambda: grant_access(ana, "board", agent_id="ana", level=Level.WRITE, expected=None, now=NOW)
        )

    with pytest.raises(NotFound):
        granting.result(PATIENCE_SECONDS)


@pytest.mark.django_db(transaction=True)
def test_a_pool_created_while_its_agent_is_removed_is_refused(
    owner: Owner, run: WorkflowRun, start_concurrently: Start
) -> None:
    with transaction.atomic():
        change(owner, agents=["bob"])
        making = start_concurrently(lambda: make_board(agent(owner, "ana"), write=["ana"]))

    with pytest.raises(NotFound):
        making.result(PATIENCE_SECONDS)


# one by one


def test_agents_are_added_and_removed_by_name(owner: Owner, run: WorkflowRun) -> None:
    change(owner, add_agents=["zoe", "bob"], remove_agents=["ana", "nobody"])

    assert find_run(owner, "r1").agents == ["bob", "zoe"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_changes_of_agents_both_take_effect(
    owner: Owner, run: WorkflowRun, start_concurrently: Start
) -> None:
    with transaction.atomic():
        change(owner, add_agents=["zoe"])
        adding = start_concurrently(lambda: change(owner, add_agents=["yan"], remove_agents=["bob"]))

    adding.result(PATIENCE_SECONDS)
    assert find_run(owner, "r1").agents == ["ana", "zoe", "yan"]


@pytest.mark.parametrize(
    "changes",
    [
        {"agents": [], "add_agents": ["zoe"]},
        {"agents": [], "remove_agents": ["ana"]},
        {"add_agents": ["zoe"], "remove_agents": ["zoe"]},
        {"add_agents": [f"agent-{number}" for number in range(MAX_AGENTS - 1)]},
    ],
)
def test_contradictory_or_too_many_agents_are_refused(owner: Owner, run: WorkflowRun, changes: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        change(owner, **changes)

    assert find_run(owner, "r1").agents == ["ana", "bob"]
