"""Working memory in Redis as services: saving, loading and sharing an agent's values, and staff edits.

Staff edits also cover the fields of conversations and the injection ledger. Redis has no part in a transaction, so the
audit entry is written before the write to Redis and committed after it: a failed write leaves no entry. Saved values
are one row for each working memory: the agent's own, or that for a task, a workflow run, or both.
"""

from datetime import datetime
from typing import Any

from django.db import transaction

from ledger import store
from memory.audit import record_audit
from memory.errors import TooLarge
from memory.models import Conversation
from memory.owner import Owner
from memory.services.accounts.register import register_agent
from memory.tiers.agent_working import SavedValues, WorkingMemoryService
from memory.tiers.key_values import KeyValues
from memory.tiers.named_values import StoredValue
from memory.tiers.session import SessionMemory
from memory.tiers.session_buffer import session_ref
from memory.tiers.working import WorkingMemory
from memory_project.redis import AgentMemoryRef, ConversationRef


def persist_to_database(owner: Owner, *, task_id: str = "", workflow_run_id: str = "", now: datetime) -> SavedValues:
    """Save every value with its remaining lifetime, replacing what was saved before. Idempotent.

    Do not call it in a transaction, because it waits for Redis first.
    """
    saved = WorkingMemoryService(owner, task_id=task_id, workflow_run_id=workflow_run_id).persist_to_database(now=now)
    register_agent(owner.account_id, owner.agent_id)
    return saved


def load_from_database(owner: Owner, *, task_id: str = "", workflow_run_id: str = "") -> SavedValues:
    """Restore the saved values for their remaining lifetimes, over values of the same names; other values stay.

    Raises NotFound if nothing was saved, Unprocessable if there would be too many values: nothing changes then.
    """
    loaded = WorkingMemoryService(owner, task_id=task_id, workflow_run_id=workflow_run_id).load_from_database()
    register_agent(owner.account_id, owner.agent_id)
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
    """Let another agent read the current value of `key`, for `ttl_seconds` or else for the value's remaining lifetime.

    One round trip. Raises NotFound if there is no value, Unprocessable if that agent can read too many values already.
    """
    memory = WorkingMemoryService(owner, task_id=task_id, workflow_run_id=workflow_run_id)
    shared = memory.share_stored(target_agent_id, key, ttl_seconds)
    register_agent(owner.account_id, owner.agent_id)
    return shared


def correct_value(owner: Owner, ref: AgentMemoryRef, *, key: str, value: Any, ttl_seconds: int) -> None:
    """Set a value with a new expiry. Raises as `WorkingMemoryService.store`."""
    with transaction.atomic():
        record_audit(owner, operation="update", memory_type="working", affected_ids=[key])
        working_memory_at(owner, ref).store(key, value, ttl_seconds)


def remove_value(owner: Owner, ref: AgentMemoryRef, *, key: str) -> bool:
    """Remove a value and return whether there was one. A shared copy of it stays."""
    with transaction.atomic():
        record_audit(owner, operation="delete", memory_type="working", affected_ids=[key])
        return working_memory_at(owner, ref).remove(key)


def clear_values(owner: Owner, ref: AgentMemoryRef) -> int:
    """Remove all values and return their number. Shared and saved copies stay."""
    with transaction.atomic():
        record_audit(owner, operation="clear", memory_type="working")
        return working_memory_at(owner, ref).clear()


def correct_single_value(owner: Owner, *, key: str, value: str, ttl_seconds: int | None) -> None:
    """Set a single value of the account, which is kept until it is deleted if `ttl_seconds` is None."""
    with transaction.atomic():
        record_audit(owner, operation="update", memory_type="working", affected_ids=[key])
        KeyValues(owner).set(key, value, ex=ttl_seconds)


def delete_single_value(owner: Owner, *, key: str) -> bool:
    """Delete a single value of the account and return whether there was one."""
    with transaction.atomic():
        record_audit(owner, operation="delete", memory_type="working", affected_ids=[key])
        return KeyValues(owner).delete(key)


def correct_session_value(owner: Owner, conversation: Conversation, *, name: str, value: Any, ttl_seconds: int) -> None:
    """Set a value of the conversation's session. Raises as `SessionMemory.set`."""
    with transaction.atomic():
        record_conversation_edit(owner, "update", "working", conversation.conversation_id, [name])
        SessionMemory(session_ref(conversation)).set(name, value, ttl_seconds)


def delete_session_value(owner: Owner, conversation: Conversation, *, name: str) -> bool:
    """Delete a value of the conversation's session and return whether there was one."""
    with transaction.atomic():
        record_conversation_edit(owner, "delete", "working", conversation.conversation_id, [name])
        return SessionMemory(session_ref(conversation)).delete(name)


def working_memory_at(owner: Owner, ref: AgentMemoryRef) -> WorkingMemoryService:
    return WorkingMemoryService(owner, task_id=ref.task_id, workflow_run_id=ref.workflow_run_id)


def correct_field(owner: Owner, conversation_id: str, *, name: str, value: Any) -> None:
    """Set a field as `owner` would: an account's value replaces its agents' values.

    Raises TooLarge over the limit; its fact `stored` says whether the value was stored anyway. Raises ValueError for an
    invalid name or a value that JSON cannot represent.
    """
    too_large: TooLarge | None = None
    with transaction.atomic():
        record_conversation_edit(owner, "update", "working", conversation_id, [name])
        try:
            WorkingMemory(owner).set(conversation_id, {name: value})
        except TooLarge as err:
            if not err.facts["stored"]:
                raise
            too_large = err
    if too_large is not None:
        raise too_large


def delete_field(owner: Owner, conversation_id: str, *, name: str) -> None:
    """Delete a field as `owner` would: an agent its own, the account every agent's."""
    with transaction.atomic():
        record_conversation_edit(owner, "delete", "working", conversation_id, [name])
        WorkingMemory(owner).delete(conversation_id, [name])


def clear_working_memory(owner: Owner, conversation_id: str) -> None:
    with transaction.atomic():
        record_conversation_edit(owner, "clear", "working", conversation_id, [])
        WorkingMemory(owner).clear(conversation_id)


def mark_item(owner: Owner, conversation_id: str, *, item_key: str, value: str) -> store.Mark:
    """Mark an item as injected; the first value stays. Raises ValueError for an invalid key or value."""
    with transaction.atomic():
        record_conversation_edit(owner, "mark", "ledger", conversation_id, [item_key])
        conversation = ConversationRef(account_id=owner.account_id, conversation_id=conversation_id)
        return store.mark(conversation, item_key, value, agent_id=owner.agent_id)


def evict_item(owner: Owner, conversation_id: str, *, item_key: str) -> bool:
    """Let an item be injected again. Return False if it was not in the ledger."""
    with transaction.atomic():
        record_conversation_edit(owner, "evict", "ledger", conversation_id, [item_key])
        conversation = ConversationRef(account_id=owner.account_id, conversation_id=conversation_id)
        return store.evict(conversation, item_key, agent_id=owner.agent_id)


def record_conversation_edit(
    owner: Owner, operation: str, memory_type: str, conversation_id: str, keys: list[str]
) -> None:
    record_audit(
        owner,
        operation=operation,
        memory_type=memory_type,
        affected_ids=keys,
        conversation_id=conversation_id,
        session_id=conversation_id,
    )
