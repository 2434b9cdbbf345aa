"""Aliases: keys of entries that deduplication merged into others. What is read under them is the entry that stayed."""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.audit import record_audit
from memory.models import ContextEntry, Link
from memory.owner import Owner
from memory.services.audit import write_waiting_reads
from memory.services.contexts.access_log import Action, log_writes
from memory.services.contexts.manage import keyed_identity, lock_context
from memory.services.custody.traces import erase_traces_of_deleted
from memory.services.duplicates.resolve import end_merges, find_absorbed
from memory.services.memories.links import DUPLICATE_OF


def list_aliases(owner: Owner, entries: QuerySet[ContextEntry]) -> list[str]:
    """Return the keys of entries that were merged into these. Three statements at most."""
    merges = Link.objects.filter(account_id=owner.account_id, type=DUPLICATE_OF)
    kept = entries.filter(id__in=merges.values("target_id")).values_list("id", flat=True)
    absorbed = find_absorbed(owner.account_id, list(kept))
    merged = ContextEntry.objects.filter(account_id=owner.account_id, id__in=absorbed, archived=True)
    return list(merged.exclude(key="").values_list("key", flat=True))


def remove_alias(owner: Owner, context_id: UUID, key: str, *, now: datetime) -> None:
    """Remove a key of a merged entry; the entry that stayed keeps its own. Raises NotFound, Forbidden, Conflict."""
    write_waiting_reads(owner.account_id)
    with transaction.atomic():
        context = lock_context(owner, context_id)
        rows = ContextEntry.objects.filter(account_id=owner.account_id, identity=keyed_identity(context.id, key))
        ids = list(rows.filter(archived=True).select_for_update().values_list("id", flat=True))
        end_merges(owner.account_id, ids)
        erase_traces_of_deleted(owner, ids)
        log_writes(owner, [(context.id, entry_id) for entry_id in ids], action=Action.ARCHIVE, now=now)
        record_audit(owner, operation=Action.ARCHIVE.value, memory_type="semantic", affected_ids=ids)
