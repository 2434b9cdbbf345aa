"""Tests of workflow runs: starting once, visible to participants, changed by their starter, ended once."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import Account, Agent, AuditEntry, MemoryPool, WorkflowRun
from memory.owner import Owner
from memory.services.pools.manage import PoolDraft
from memory.services.pools.workflow_runs import (
    MAX_AGENTS,
    RunDraft,
    change_run,
    create_run_pool,
    find_run,
    run_pools,
    start_run,
)
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)


def agent(owner: Owner, agent_id: str) -> Owner:
    return replace(owner, agent_id=agent_id)


@pytest.fixture
def run(owner: Owner) -> WorkflowRun:
    """Begun by `assistant`, with `ana` and `bob` in it."""
    return start_run(owner, RunDraft(workflow_run_id="r1", workflow="nightly", agents=["ana", "bob"]), now=NOW)


def change(owner: Owner, **changes: Any) -> WorkflowRun:
    return change_run(owner, "r1", changes=changes, now=LATER)


def test_a_run_starts_with_its_agents_without_repetitions(owner: Owner) -> None:
    begun = start_run(owner, RunDraft(agents=["bob", "ana", "bob"], metadata={"of": "x"}), now=NOW)

    found = find_run(owner, begun.workflow_run_id)
    assert (found.agents, found.agent_id, found.metadata) == (["bob", "ana"], "assistant", {"of": "x"})
    assert (found.status, found.started_at, found.ended_at) == ("running", NOW, None)
    assert AuditEntry.objects.get(memory_type="workflow_run").operation == "create"


@pytest.mark.django_db(transaction=True)
def test_starting_a_run_creates_the_agent(owner: Owner, run: WorkflowRun) -> None:
    assert Agent.objects.get().agent_id == "assistant"


def test_an_id_is_unique_in_its_account(owner: Owner, stranger: Account, run: WorkflowRun) -> None:
    with pytest.raises(Conflict):
        start_run(agent(owner, "zoe"), RunDraft(workflow_run_id="r1"), now=NOW)
    start_run(Owner(account_id=stranger.id), RunDraft(workflow_run_id="r1"), now=NOW)

    assert WorkflowRun.objects.count() == 2
    assert AuditEntry.objects.filter(operation="create").count() == 2


def test_a_run_has_no_more_agents_than_allowed(owner: Owner, run: WorkflowRun) -> None:
    too_many = [f"agent-{number}" for number in range(MAX_AGENTS + 1)]

    with pytest.raises(Unprocessable):
        start_run(owner, RunDraft(agents=too_many), now=NOW)
    with pytest.raises(Unprocessable):
        change(owner, agents=too_many)


@pytest.mark.parametrize("agent_id", ["assistant", "ana", "bob", ""])
def test_participants_and_the_account_find_a_run(owner: Owner, run: WorkflowRun, agent_id: str) -> None:
    assert find_run(agent(owner, agent_id), "r1").id == run.id


def test_a_workflow_run_is_hidden_from_other_agents_and_accounts(
    owner: Owner, stranger: Account, run: WorkflowRun
) -> None:
    start_run(agent(owner, "zoe"), RunDraft(workflow_run_id="r2"), now=NOW)

    for nobody, theirs in [
        (agent(owner, "zoe"), "r1"),
        (agent(owner, "ana"), "r2"),
        (Owner(account_id=stranger.id), "r1"),
        (Owner(account_id=stranger.id, agent_id="ana"), "r1"),
    ]:
        with pytest.raises(NotFound):
            find_run(nobody, theirs)
        with pytest.raises(NotFound):
            change_run(nobody, theirs, changes={"status": "failed"}, now=LATER)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("agent_id", ["assistant", ""])
def test_the_starter_and_the_account_may_end_a_run(owner: Owner, run: WorkflowRun, agent_id: str, status: str) -> None:
    ended = change(agent(owner, agent_id), status=status)

    assert (ended.status, ended.ended_at, ended.updated_at) == (status, LATER, LATER)
    assert AuditEntry.objects.filter(operation="update", affected_ids=[str(run.id)]).count() == 1


@pytest.mark.parametrize("changes", [{"status": "completed"}, {"agents": ["ana"]}, {"metadata": {}}])
def test_agents_of_a_run_do_not_change_it(owner: Owner, run: WorkflowRun, changes: dict[str, Any]) -> None:
    with pytest.raises(Forbidden):
        change(agent(owner, "ana"), **changes)

    assert find_run(owner, "r1").status == "running"


@pytest.mark.parametrize("status", ["running", "failed"])
def test_a_run_ends_once(owner: Owner, run: WorkflowRun, status: str) -> None:
    change(owner, status="completed")

    with pytest.raises(Unprocessable):
        change(owner, status=status)

    assert find_run(owner, "r1").status == "completed"


def test_the_same_status_again_changes_nothing(owner: Owner, run: WorkflowRun) -> None:
    assert change(owner, status="running").updated_at == run.updated_at
    change(owner, status="completed")

    again = change_run(owner, "r1", changes={"status": "completed"}, now=LATER + timedelta(hours=1))

    assert (again.ended_at, again.updated_at) == (LATER, LATER)
    assert AuditEntry.objects.filter(memory_type="workflow_run", operation="update").count() == 1


def test_an_unknown_status_is_refused(owner: Owner, run: WorkflowRun) -> None:
    with pytest.raises(Unprocessable):
        change(owner, status="asleep")


def test_a_replaced_list_of_agents_grants_and_removes_access(owner: Owner, run: WorkflowRun) -> None:
    change(owner, agents=["bob", "zoe"], metadata={"step": 2})

    assert find_run(agent(owner, "zoe"), "r1").metadata == {"step": 2}
    with pytest.raises(NotFound):
        find_run(agent(owner, "ana"), "r1")


def test_other_columns_cannot_be_changed(owner: Owner, run: WorkflowRun) -> None:
    with pytest.raises(Unprocessable):
        change(owner, workflow_run_id="r9")


@pytest.mark.parametrize("pool_type", ["shared_memory", "tool_cache", "blackboard"])
def test_a_pool_of_a_run_is_for_its_agents(owner: Owner, run: WorkflowRun, pool_type: str) -> None:
    made = create_run_pool(agent(owner, "ana"), "r1", PoolDraft(pool_type=pool_type), now=NOW)

    assert (made.scope, made.task_id, made.agent_id, made.workflow_run_id) == ("task", "r1", "ana", run.id)
    assert [pool.id for pool in run_pools(agent(owner, "bob"), "r1", now=NOW)] == [made.id]
    with pytest.raises(NotFound):
        run_pools(agent(owner, "zoe"), "r1", now=NOW)


def test_expired_pools_of_a_run_are_not_listed(owner: Owner, run: WorkflowRun) -> None:
    create_run_pool(owner, "r1", PoolDraft(pool_type="blackboard", expires_at=LATER), now=NOW)

    assert run_pools(owner, "r1", now=NOW).count() == 1
    assert run_pools(owner, "r1", now=LATER).count() == 0


@pytest.mark.parametrize(
    "draft",
    [
        PoolDraft(pool_type="shared"),
        PoolDraft(pool_type="blackboard", scope="agent"),
        PoolDraft(pool_type="blackboard", scope="team"),
        PoolDraft(pool_type="tool_cache", data={"a": 1}),
        PoolDraft(pool_type="blackboard", pool_id="p" * 101),
        PoolDraft(pool_type="blackboard", expires_at=NOW),
    ],
)
def test_an_invalid_pool_of_a_run_is_refused(owner: Owner, run: WorkflowRun, draft: PoolDraft) -> None:
    with pytest.raises(Unprocessable):
        create_run_pool(owner, "r1", draft, now=NOW)


def test_only_participants_create_pools_of_a_run(owner: Owner, stranger: Account, run: WorkflowRun) -> None:
    for nobody in (agent(owner, "zoe"), Owner(account_id=stranger.id)):
        with pytest.raises(NotFound):
            create_run_pool(nobody, "r1", PoolDraft(pool_type="blackboard"), now=NOW)


@pytest.mark.django_db(transaction=True)
def test_a_pool_that_is_made_while_the_run_ends_is_refused(
    owner: Owner, run: WorkflowRun, start_concurrently: Start
) -> None:
    with transaction.atomic():
        change(owner, status="completed")
        making = start_concurrently(lambda: create_run_pool(owner, "r1", PoolDraft(pool_type="blackboard"), now=NOW))

    with pytest.raises(Unprocessable):
        making.result(PATIENCE_SECONDS)
    assert not MemoryPool.objects.exists()
