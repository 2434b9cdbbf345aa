"""Staff's hand in agents' working memory, which lives in Redis. Every write is audited (see `live_corrections`)."""

from typing import Any

from django.db import transaction

from memory.audit import record
from memory.owner import Owner
from memory.tiers.agent_working import WorkingMemoryService
from memory_project.redis import AgentPlace


def correct_value(owner: Owner, place: AgentPlace, *, key: str, value: Any, ttl_seconds: int) -> None:
    """Set a value, with a new expiry. Raises as `WorkingMemoryService.store`."""
    with transaction.atomic():
        record_value(owner, "update", [key])
        memory_at(owner, place).store(key, value, ttl_seconds)


def remove_value(owner: Owner, place: AgentPlace, *, key: str) -> bool:
    """Whether there was one. What the agent shared of it stays shared."""
    with transaction.atomic():
        record_value(owner, "delete", [key])
        return memory_at(owner, place).remove(key)


def clear_values(owner: Owner, place: AgentPlace) -> int:
    """How many there were. What was shared stays shared, what was saved stays saved."""
    with transaction.atomic():
        record_value(owner, "clear", [])
        return memory_at(owner, place).clear()


def memory_at(owner: Owner, place: AgentPlace) -> WorkingMemoryService:
    """The owner's agent is the place's."""
    return WorkingMemoryService(owner, task_id=place.task_id, workflow_run_id=place.workflow_run_id)


def record_value(owner: Owner, operation: str, keys: list[str]) -> None:
    record(owner, operation=operation, memory_type="working", affected_ids=keys)
