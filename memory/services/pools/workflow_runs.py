"""Workflow runs (P7): started by one agent, worked on by several, which share the run's pools until it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from memory.audit import record_audit
from memory.errors import Forbidden, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import Level, MemoryPool, SharedContextPool, WorkflowRun
from memory.models.pools import WORKFLOW_POOL_TYPES, PoolQuerySet
from memory.owner import Owner
from memory.services.accounts.access import check_changeable, raise_taken
from memory.services.accounts.register import register_agent
from memory.services.pools.manage import PoolDraft, check_expiry, check_pool_id, draft_columns, insert_pool
from memory_project.ids import uuid7

AGENT_CHANGES = frozenset({"agents", "add_agents", "remove_agents"})
"""Ways to change a run's agents: replace all, or add and remove by name, which keeps concurrent changes."""
CHANGEABLE = frozenset({"status", "metadata"}) | AGENT_CHANGES
POOL_SCOPES = ("task", "account", "global")
"""Scopes of a run's pools. Members are always the run's agents; with the first scope nobody else can read."""
MAX_AGENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDraft:
    """A run before it starts. An empty id is generated."""

    workflow_run_id: str = ""
    workflow: str = ""
    agents: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@masks_secrets
def start_run(owner: Owner, draft: RunDraft, *, now: datetime) -> WorkflowRun:
    """Start a run. Raises as `raise_taken` if its id is taken, Unprocessable for too many agents."""
    run = WorkflowRun(
        account_id=owner.account_id,
        workflow_run_id=draft.workflow_run_id or str(uuid7()),
        workflow=draft.workflow,
        agent_id=owner.agent_id,
        agents=unique_agents(draft.agents),
        metadata=dict(draft.metadata),
        started_at=now,
    )
    with transaction.atomic():
        WorkflowRun.objects.bulk_create([run], ignore_conflicts=True)
        stored = WorkflowRun.objects.filter(account_id=owner.account_id, id=run.id).first()
        if stored is None:
            taken = WorkflowRun.objects.visible_to(owner).filter(workflow_run_id=run.workflow_run_id)
            raise_taken(owner, taken, what="workflow run")
        record_audit(owner, operation="create", memory_type="workflow_run", affected_ids=[run.id])
        register_agent(owner.account_id, owner.agent_id)
    return stored


def unique_agents(agents: Sequence[str]) -> list[str]:
    """Return the agents without repetitions, in order. Raises Unprocessable for more than MAX_AGENTS."""
    named = list(dict.fromkeys(agents))
    if len(named) > MAX_AGENTS:
        raise Unprocessable(f"a workflow run can have at most {MAX_AGENTS} agents")
    return named


def find_run(owner: Owner, workflow_run_id: str) -> WorkflowRun:
    """Return a run that the agent started or takes part in. Raises NotFound for any other run."""
    rows = WorkflowRun.objects.visible_to(owner).filter(workflow_run_id=workflow_run_id)
    return require_found(rows.first(), "workflow run")


@masks_secrets
def change_run(owner: Owner, workflow_run_id: str, *, changes: Mapping[str, Any], now: datetime) -> WorkflowRun:
    """Change the agents (AGENT_CHANGES), the `metadata`, or the `status`, which ends the run.

    Only the agent that started the run and the account may do so. Setting the current status changes nothing. After the
    commit, no write to the run's pools that an end or a removal forbids is still in progress. Pools that removed agents
    created pass to the agent that started the run, and grants to removed agents are revoked. Raises NotFound,
    Forbidden, and Unprocessable for a run that has ended differently and for contradictory changes.
    """
    check_run_changes(changes)
    with transaction.atomic():
        run = lock_managed_run(owner, workflow_run_id)
        wanted = {name: value for name, value in changes.items() if name != "status" or value != run.status}
        if wanted:
            apply_run_changes(owner, run, wanted, now=now)
    return run


def check_run_changes(changes: Mapping[str, Any]) -> None:
    """Raise Unprocessable for unknown or contradictory changes."""
    check_changeable(changes, allowed=CHANGEABLE, what="run")
    if "agents" in changes and len(AGENT_CHANGES & set(changes)) > 1:
        raise Unprocessable("agents cannot be combined with add_agents or remove_agents: use one or the other")
    if set(changes.get("add_agents", ())) & set(changes.get("remove_agents", ())):
        raise Unprocessable("an agent cannot be in both add_agents and remove_agents")


def apply_run_changes(owner: Owner, run: WorkflowRun, changes: Mapping[str, Any], *, now: datetime) -> None:
    """Apply the changes to a locked run."""
    if "status" in changes or AGENT_CHANGES & set(changes):
        lock_run_pools(run)
    if AGENT_CHANGES & set(changes):
        agents = agents_after_changes(run, changes)
        if removed := set(run.agents) - {*agents, run.agent_id}:
            revoke_agents(owner, run, removed, now=now)
        run.agents = agents
    if "status" in changes:
        end_run(run, changes["status"], now=now)
    run.metadata = changes.get("metadata", run.metadata)
    run.updated_at = now
    run.save(update_fields=["agents", "status", "ended_at", "metadata", "updated_at"])
    record_audit(owner, operation="update", memory_type="workflow_run", affected_ids=[run.id])


def agents_after_changes(run: WorkflowRun, changes: Mapping[str, Any]) -> list[str]:
    """Return the run's agents after the changes. Raises Unprocessable for too many."""
    if "agents" in changes:
        return unique_agents(changes["agents"])
    removed = set(changes.get("remove_agents", ()))
    return unique_agents([*(agent for agent in run.agents if agent not in removed), *changes.get("add_agents", ())])


def lock_managed_run(owner: Owner, workflow_run_id: str) -> WorkflowRun:
    """Return a locked run that the owner may change. Raises NotFound, Forbidden."""
    rows = WorkflowRun.objects.managed_by(owner).filter(workflow_run_id=workflow_run_id)
    run = rows.select_for_update(no_key=True).first()
    if run is None:
        find_run(owner, workflow_run_id)
        raise Forbidden("a workflow run can be changed only by the agent that started it, or by the account")
    return run


def lock_run_pools(run: WorkflowRun) -> None:
    """Lock the run's pools. A writer locks one of them first and then reads the run's state."""
    pools = MemoryPool.objects.filter(account_id=run.account_id, workflow_run=run)
    # list() evaluates the queryset, which takes the locks
    list(pools.order_by("id").select_for_update(no_key=True).values_list("id"))


def revoke_agents(owner: Owner, run: WorkflowRun, removed: set[str], *, now: datetime) -> None:
    """Reassign the pools that removed agents created in the run, and revoke their grants: either would keep them in."""
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
        MemoryPool.objects.filter(account_id=run.account_id).bulk_update(pools, columns, batch_size=500)
        record_audit(owner, operation="revoke", memory_type="pool", affected_ids=[pool.id for pool in pools])


def end_run(run: WorkflowRun, status: str, *, now: datetime) -> None:
    """Set the final status. Raises Unprocessable for a run that has ended, and for an unknown status."""
    if run.status != WorkflowRun.Status.RUNNING:
        raise Unprocessable("the run has ended: its status cannot be changed any more")
    if status not in WorkflowRun.Status.values:
        raise Unprocessable(f"status must be one of {', '.join(WorkflowRun.Status.values)}")
    run.status, run.ended_at = status, now


@masks_secrets
def create_run_pool(owner: Owner, workflow_run_id: str, draft: PoolDraft, *, now: datetime) -> SharedContextPool:
    """Create a pool of the run, which the run's agents read and write until the run ends.

    Its task is the run, unless it names another. Raises NotFound, Conflict if the account has a live pool with this id,
    TooLarge, and Unprocessable for a run that has ended and for a draft that no pool of a run can have.
    """
    check_run_pool_draft(draft, now=now)
    with transaction.atomic():
        run = lock_run(owner, workflow_run_id)
        if run.status != WorkflowRun.Status.RUNNING:
            raise Unprocessable("the run has ended: it gets no more pools")
        pool = SharedContextPool(
            **draft_columns(owner, draft),
            workflow_run=run,
            scope=draft.scope or POOL_SCOPES[0],
            task_id=draft.task_id or run.workflow_run_id,
        )
        insert_pool(owner, pool, now=now)
    pool.refresh_from_db(fields=["created_at", "updated_at"])
    return pool


def check_run_pool_draft(draft: PoolDraft, *, now: datetime) -> None:
    """Raise Unprocessable for a draft that `create_run_pool` does not accept."""
    if draft.pool_type not in WORKFLOW_POOL_TYPES:
        raise Unprocessable(f"pool_type must be one of {', '.join(WORKFLOW_POOL_TYPES)}")
    if draft.team_id is not None or draft.scope not in ("", *POOL_SCOPES):
        raise Unprocessable(
            f"a pool of a run has no team_id, and its scope must be one of {', '.join(POOL_SCOPES)}: "
            "its members are the run's agents"
        )
    if draft.data and draft.pool_type != SharedContextPool.PoolType.SHARED_MEMORY:
        raise Unprocessable("data is allowed for pools of type shared_memory only")
    check_pool_id(draft.pool_id)
    check_expiry(draft.expires_at, now=now)


def lock_run(owner: Owner, workflow_run_id: str) -> WorkflowRun:
    """Return a run that the owner takes part in, locked so that neither can change before the transaction ends.

    Raises NotFound.
    """
    rows = WorkflowRun.objects.visible_to(owner).filter(workflow_run_id=workflow_run_id)
    return require_found(rows.select_for_update(no_key=True).first(), "workflow run")


def run_pools(owner: Owner, workflow_run_id: str, *, now: datetime) -> PoolQuerySet:
    """Return the run's pools that the owner may read, without their `data`. Raises NotFound."""
    run = find_run(owner, workflow_run_id)
    rows = MemoryPool.objects.visible_to(owner).live(now).filter(workflow_run=run)
    return rows.select_related("workflow_run").defer("data")
