"""Workflow runs (P7): begun by one agent, worked on by several, which share pools until the run ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from memory.audit import record
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import MemoryPool, SharedContextPool, WorkflowRun
from memory.models.pools import OF_WORKFLOWS, PoolQuerySet
from memory.owner import Owner
from memory.services.accounts import note_agent
from memory.services.conversations import LONGEST_ID, is_id
from memory.services.pools import PoolDraft, check_expiry, insert_pool
from memory_project.ids import uuid7

CHANGEABLE = frozenset({"status", "agents", "metadata"})
POOL_SCOPES = ("task", "account", "global")
"""Of a run's pools, whose members are the run's agents. The first one lets nobody else read."""
MOST_AGENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDraft:
    """A run before it begins; an id is made where none is given."""

    workflow_run_id: str = ""
    workflow: str = ""
    agents: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def start_run(owner: Owner, draft: RunDraft, *, now: datetime) -> WorkflowRun:
    """Begin a run. Raises Conflict when the account has a run of this id, Unprocessable for too many agents."""
    run = WorkflowRun(
        account_id=owner.account_id,
        workflow_run_id=draft.workflow_run_id or str(uuid7()),
        workflow=draft.workflow,
        agent_id=owner.agent_id,
        agents=named_once(draft.agents),
        metadata=dict(draft.metadata),
        started_at=now,
    )
    with transaction.atomic():
        WorkflowRun.objects.bulk_create([run], ignore_conflicts=True)
        stored = WorkflowRun.objects.filter(account_id=owner.account_id, id=run.id).first()
        if stored is None:
            raise Conflict("there is a workflow run of this id")
        record(owner, operation="create", memory_type="workflow_run", affected_ids=[run.id])
        note_agent(owner.account_id, owner.agent_id)
    return stored


def named_once(agents: Sequence[str]) -> list[str]:
    """The agents in the order of their first mention. Raises Unprocessable for more than MOST_AGENTS."""
    named = list(dict.fromkeys(agents))
    if len(named) > MOST_AGENTS:
        raise Unprocessable(f"a run has at most {MOST_AGENTS} agents")
    return named


def find_run(owner: Owner, workflow_run_id: str) -> WorkflowRun:
    """One that the agent began or has a part in. Raises NotFound, for another's run as for none."""
    run = WorkflowRun.objects.visible_to(owner).filter(workflow_run_id=workflow_run_id).first()
    if run is None:
        raise NotFound("no such workflow run")
    return run


def change_run(owner: Owner, workflow_run_id: str, *, changes: Mapping[str, Any], now: datetime) -> WorkflowRun:
    """Give it other `agents` or `metadata`, or the `status` with which it ends. For who began it, and the account.

    Once this is committed, no write to its pools is under way that an end or a removal forbids. What agents that are
    removed had made in it passes to who began it. Raises NotFound, Forbidden, and Unprocessable for a second end.
    """
    if refused := set(changes) - CHANGEABLE:
        raise Unprocessable(f"cannot be changed: {', '.join(sorted(refused))}")
    with transaction.atomic():
        run = lock_managed_run(owner, workflow_run_id)
        if {"status", "agents"} & set(changes):
            wait_for_writers(run)
        if "agents" in changes:
            change_agents(run, named_once(changes["agents"]), now=now)
        if changes.get("status", run.status) != run.status:
            end_run(run, changes["status"], now=now)
        run.metadata = changes.get("metadata", run.metadata)
        run.updated_at = now
        run.save(update_fields=["agents", "status", "ended_at", "metadata", "updated_at"])
        record(owner, operation="update", memory_type="workflow_run", affected_ids=[run.id])
    return run


def lock_managed_run(owner: Owner, workflow_run_id: str) -> WorkflowRun:
    """One that the owner may change, until the transaction ends. Raises NotFound, Forbidden."""
    rows = WorkflowRun.objects.managed_by(owner).filter(workflow_run_id=workflow_run_id)
    run = rows.select_for_update(no_key=True).first()
    if run is None:
        find_run(owner, workflow_run_id)
        raise Forbidden("only who began a workflow run may change it")
    return run


def wait_for_writers(run: WorkflowRun) -> None:
    """Lock the run's pools: who writes has one of them locked, and asks for the run again once the lock is his."""
    pools = MemoryPool.objects.filter(account_id=run.account_id, workflow_run=run)
    # evaluated, for the locks
    list(pools.order_by("id").select_for_update(no_key=True).values_list("id"))


def change_agents(run: WorkflowRun, agents: list[str], *, now: datetime) -> None:
    """A removed agent that kept the pools it made would not be shut out of them."""
    removed = set(run.agents) - {*agents, run.agent_id}
    if removed:
        theirs = MemoryPool.objects.filter(account_id=run.account_id, workflow_run=run, agent_id__in=removed)
        theirs.update(agent_id=run.agent_id, version=F("version") + 1, updated_at=now)
    run.agents = agents


def end_run(run: WorkflowRun, status: str, *, now: datetime) -> None:
    """Raises Unprocessable for a run that has ended, and for what is no status."""
    if run.status != WorkflowRun.Status.RUNNING:
        raise Unprocessable("the run has ended, and ends once")
    if status not in WorkflowRun.Status.values:
        raise Unprocessable(f"a status is one of: {', '.join(WorkflowRun.Status.values)}")
    run.status, run.ended_at = status, now


def create_run_pool(owner: Owner, workflow_run_id: str, draft: PoolDraft, *, now: datetime) -> SharedContextPool:
    """Make a pool of the run, which its agents and who began it read and write until it ends. For all of them.

    Its task is the run, unless it names another. Raises NotFound, Conflict when the account has a live pool of this
    id, TooLarge, and Unprocessable for a run that has ended and for what no pool of a run can be.
    """
    check_draft(draft, now=now)
    with transaction.atomic():
        run = lock_run(owner, workflow_run_id)
        if run.status != WorkflowRun.Status.RUNNING:
            raise Unprocessable("the run has ended")
        pool = SharedContextPool(
            account_id=owner.account_id,
            agent_id=owner.agent_id,
            workflow_run=run,
            pool_id=draft.pool_id or str(uuid7()),
            pool_type=draft.pool_type,
            scope=draft.scope or POOL_SCOPES[0],
            task_id=draft.task_id or run.workflow_run_id,
            data=draft.data,
            access_control=draft.access_control.model_dump(),
            expires_at=draft.expires_at,
        )
        insert_pool(owner, pool, now=now)
    pool.refresh_from_db(fields=["created_at", "updated_at"])
    return pool


def check_draft(draft: PoolDraft, *, now: datetime) -> None:
    """Raises Unprocessable."""
    if draft.pool_type not in OF_WORKFLOWS:
        raise Unprocessable(f"a pool of a run has one of the types {', '.join(OF_WORKFLOWS)}")
    if draft.team_id is not None or draft.scope not in ("", *POOL_SCOPES):
        raise Unprocessable("the members of a run's pool are the run's agents: its scope is task, account or global")
    if draft.data and draft.pool_type != SharedContextPool.PoolType.SHARED_MEMORY:
        raise Unprocessable("only shared_memory has data")
    if draft.pool_id and not is_id(draft.pool_id):
        raise Unprocessable(f"an id has 1 to {LONGEST_ID} characters, no NUL and no lone surrogate")
    check_expiry(draft.expires_at, now=now)


def lock_run(owner: Owner, workflow_run_id: str) -> WorkflowRun:
    """One that the owner has a part in: until the transaction ends, it goes on and so does that. Raises NotFound."""
    rows = WorkflowRun.objects.visible_to(owner).filter(workflow_run_id=workflow_run_id)
    run = rows.select_for_update(no_key=True).first()
    if run is None:
        raise NotFound("no such workflow run")
    return run


def run_pools(owner: Owner, workflow_run_id: str, *, now: datetime) -> PoolQuerySet:
    """The run's pools that the owner may read, without their `data`. Raises NotFound."""
    run = find_run(owner, workflow_run_id)
    rows = MemoryPool.objects.visible_to(owner).live(now).filter(workflow_run=run)
    return rows.select_related("workflow_run").defer("data")
