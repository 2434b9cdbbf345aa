"""Staff's hand in what lives in Redis: fields of working memory, items of the ledger. Every write is audited.

The entry is written before the write to Redis, which has no part in the transaction, and committed after it: a write
that failed leaves no entry behind.
"""

from typing import Any

from django.db import transaction

from ledger import store
from memory.audit import record
from memory.errors import TooLarge
from memory.owner import Owner
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.working import WorkingMemory
from memory_project.redis import AgentPlace, Place


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


WORKING, LEDGER = "working", "ledger"


def correct_field(owner: Owner, conversation_id: str, *, name: str, value: Any) -> None:
    """Set a field as `owner` would (an account's value replaces its agents').

    Raises TooLarge over the limit; its facts say whether the value was `stored` all the same. ValueError for
    what is no name or no JSON.
    """
    too_large: TooLarge | None = None
    with transaction.atomic():
        record_live(owner, "update", WORKING, conversation_id, [name])
        try:
            WorkingMemory(owner).set(conversation_id, {name: value})
        except TooLarge as err:
            if not err.facts["stored"]:
                raise
            too_large = err
    if too_large is not None:
        raise too_large


def delete_field(owner: Owner, conversation_id: str, *, name: str) -> None:
    """Delete a field as `owner` would: an agent its own, the account everybody's."""
    with transaction.atomic():
        record_live(owner, "delete", WORKING, conversation_id, [name])
        WorkingMemory(owner).delete(conversation_id, [name])


def clear_working_memory(owner: Owner, conversation_id: str) -> None:
    with transaction.atomic():
        record_live(owner, "clear", WORKING, conversation_id, [])
        WorkingMemory(owner).clear(conversation_id)


def mark_item(owner: Owner, conversation_id: str, *, item_key: str, value: str) -> store.Mark:
    """Mark an item as injected; the value that was there first stays. ValueError for what is no key or value."""
    with transaction.atomic():
        record_live(owner, "mark", LEDGER, conversation_id, [item_key])
        place = Place(account_id=owner.account_id, conversation_id=conversation_id)
        return store.mark(place, item_key, value, agent_id=owner.agent_id)


def evict_item(owner: Owner, conversation_id: str, *, item_key: str) -> bool:
    """Let an item be injected again; False where it was not in."""
    with transaction.atomic():
        record_live(owner, "evict", LEDGER, conversation_id, [item_key])
        place = Place(account_id=owner.account_id, conversation_id=conversation_id)
        return store.evict(place, item_key, agent_id=owner.agent_id)


def record_live(owner: Owner, operation: str, memory_type: str, conversation_id: str, keys: list[str]) -> None:
    record(
        owner,
        operation=operation,
        memory_type=memory_type,
        # the column's width; a longer item key is known by its beginning
        affected_ids=[key[:200] for key in keys],
        conversation_id=conversation_id,
        session_id=conversation_id,
    )
