"""Workflow runs (P7): begun by one agent, worked on by several, which share pools until the run ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from memory.audit import record
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import Level, MemoryPool, SharedContextPool, WorkflowRun
from memory.models.pools import OF_WORKFLOWS, PoolQuerySet
from memory.owner import Owner
from memory.services.accounts.register import note_agent
from memory.services.conversations.lifecycle import LONGEST_ID, is_id
from memory.services.pools.manage import PoolDraft, check_expiry, insert_pool
from memory_project.ids import uuid7

OF_AGENTS = frozenset({"agents", "add_agents", "remove_agents"})
"""Ways to change who works on a run: whole, or by name, which loses nothing that others change at the same time."""
CHANGEABLE = frozenset({"status", "metadata"}) | OF_AGENTS
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
    """Give it other agents (OF_AGENTS) or `metadata`, or the `status` with which it ends. For who began it, and the
    account. The status that it has already changes nothing.

    Once this is committed, no write to its pools is under way that an end or a removal forbids. What agents that are
    removed had made in it passes to who began it, and what they were granted in it is theirs no more. Raises NotFound,
    Forbidden, and Unprocessable for a second end of another kind, and for changes that contradict each other.
    """
    check_changes(changes)
    with transaction.atomic():
        run = lock_managed_run(owner, workflow_run_id)
        wanted = {name: value for name, value in changes.items() if name != "status" or value != run.status}
        if wanted:
            apply_changes(owner, run, wanted, now=now)
    return run


def check_changes(changes: Mapping[str, Any]) -> None:
    """Raises Unprocessable."""
    if refused := set(changes) - CHANGEABLE:
        raise Unprocessable(f"cannot be changed: {', '.join(sorted(refused))}")
    if "agents" in changes and len(OF_AGENTS & set(changes)) > 1:
        raise Unprocessable("agents are named whole, or added and removed by name")
    if set(changes.get("add_agents", ())) & set(changes.get("remove_agents", ())):
        raise Unprocessable("an agent is added or removed, not both")


def apply_changes(owner: Owner, run: WorkflowRun, changes: Mapping[str, Any], *, now: datetime) -> None:
    """To a run that is locked."""
    if "status" in changes or OF_AGENTS & set(changes):
        wait_for_writers(run)
    if OF_AGENTS & set(changes):
        change_agents(owner, run, agents_after(run, changes), now=now)
    if "status" in changes:
        end_run(run, changes["status"], now=now)
    run.metadata = changes.get("metadata", run.metadata)
    run.updated_at = now
    run.save(update_fields=["agents", "status", "ended_at", "metadata", "updated_at"])
    record(owner, operation="update", memory_type="workflow_run", affected_ids=[run.id])


def agents_after(run: WorkflowRun, changes: Mapping[str, Any]) -> list[str]:
    """Raises Unprocessable for too many."""
    if "agents" in changes:
        return named_once(changes["agents"])
    removed = set(changes.get("remove_agents", ()))
    return named_once([*(agent for agent in run.agents if agent not in removed), *changes.get("add_agents", ())])


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


def change_agents(owner: Owner, run: WorkflowRun, agents: list[str], *, now: datetime) -> None:
    removed = set(run.agents) - {*agents, run.agent_id}
    if removed:
        shut_out(owner, run, removed, now=now)
    run.agents = agents


def shut_out(owner: Owner, run: WorkflowRun, removed: set[str], *, now: datetime) -> None:
    """Take what they made in the run, and what they were granted in it: with either, they would not be shut out."""
    names = sorted(removed)
    theirs = Q(agent_id__in=names)
    for level in Level:
        theirs |= Q(**{f"access_control__{level.value}__has_any_keys": names})
    pools = list(MemoryPool.objects.filter(theirs, account_id=run.account_id, workflow_run=run).defer("data"))
    for pool in pools:
        pool.agent_id = run.agent_id if pool.agent_id in removed else pool.agent_id
        grants = pool.grants
        kept = grants.with_lists(read=set(grants.read) - removed, write=set(grants.write) - removed)
        pool.access_control, pool.version, pool.updated_at = kept.model_dump(), pool.version + 1, now
    if pools:
        columns = ["agent_id", "access_control", "version", "updated_at"]
        MemoryPool.objects.bulk_update(pools, columns, batch_size=500)
        record(owner, operation="revoke", memory_type="pool", affected_ids=[pool.id for pool in pools])


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
