"""Deleting a context for good, with everything that it holds. Agents archive; this is for whoever must be rid of it."""

from uuid import UUID

from django.db import transaction

from memory.audit import record
from memory.models import Memory, PersistentContext
from memory.owner import Owner
from memory.services.contexts.manage import lock_managed_context
from memory.services.memories.correct import ROWS_A_TRANSACTION, erase_memories


def delete_context(owner: Owner, context_id: UUID) -> int:
    """Delete entries with their history, snapshots, access log and the context itself; how many entries there were.

    In transactions of ROWS_A_TRANSACTION entries, archived first: cut short, it is read-only and found by no search,
    and deleting it again goes on. Raises NotFound, Forbidden.
    """
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=None)
        PersistentContext.objects.filter(id=context.id).update(archived=True)
    held = Memory.objects.filter(account_id=owner.account_id, context_id=context_id).order_by("id")
    whole = Owner(account_id=owner.account_id, actor=owner.actor)
    deleted = 0
    while ids := list(held.values_list("id", flat=True)[:ROWS_A_TRANSACTION]):
        deleted += erase_memories(whole, ids)
    with transaction.atomic():
        lock_managed_context(owner, context_id, expected=None).delete()
        record(owner, operation="delete", memory_type="context", affected_ids=[context_id])
    return deleted
