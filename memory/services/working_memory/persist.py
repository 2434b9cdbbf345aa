"""What an agent's working memory does beyond its own values: saved in the database, loaded again, shared.

Each makes the agent where it is new, as writes do. What is saved is a row for each working memory: the agent's own, or
that for a task, a workflow run, or both.
"""

from datetime import datetime

from memory.owner import Owner
from memory.services.accounts.register import note_agent
from memory.tiers.agent_working import SavedValues, WorkingMemoryService
from memory.tiers.named_values import StoredValue


def persist_to_database(owner: Owner, *, task_id: str = "", workflow_run_id: str = "", now: datetime) -> SavedValues:
    """Save every value with the time that it has left, instead of what was saved before.

    Not to be called in a transaction, since Redis is asked first; done twice it is done once.
    """
    saved = WorkingMemoryService(owner, task_id=task_id, workflow_run_id=workflow_run_id).persist_to_database(now=now)
    note_agent(owner.account_id, owner.agent_id)
    return saved


def load_from_database(owner: Owner, *, task_id: str = "", workflow_run_id: str = "") -> SavedValues:
    """Bring back what was saved for the time that it had left, over values of the same names; others stay.

    Raises NotFound where nothing was saved, Unprocessable where there would be too many values: nothing changes then.
    """
    loaded = WorkingMemoryService(owner, task_id=task_id, workflow_run_id=workflow_run_id).load_from_database()
    note_agent(owner.account_id, owner.agent_id)
    return loaded


def share_value(
    owner: Owner,
    key: str,
    *,
    target_agent_id: str,
    ttl_seconds: int | None = None,
    task_id: str = "",
    workflow_run_id: str = "",
) -> StoredValue:
    """Let another agent read the value of `key` as it is now; for as long as it has left, unless `ttl_seconds` says.

    One round trip. Raises NotFound where there is no value, Unprocessable where that agent can read too many already.
    """
    memory = WorkingMemoryService(owner, task_id=task_id, workflow_run_id=workflow_run_id)
    shared = memory.share_stored(target_agent_id, key, ttl_seconds)
    note_agent(owner.account_id, owner.agent_id)
    return shared
