"""What a correction by staff means for an entry: another text is its next version; old versions can be forgotten."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.audit import record
from memory.errors import NotFound
from memory.models import ContextEntry, ContextEntryVersion, Kind, SnapshotEntry
from memory.owner import Owner
from memory.services.contexts.access_log import Action, log_writes
from memory.services.contexts.entries import touched
from memory.services.contexts.versions import add_versions, change_child


def spread_entry_correction(owner: Owner, entry_id: UUID, *, now: datetime) -> None:
    """Write the text that the memory has by now down as the entry's next version, in the correction's transaction.

    The value under a key is that text then: it must not go on saying what was corrected.
    """
    rows: Any = ContextEntry.objects
    entry: ContextEntry = rows.get(pk=entry_id)
    entry.content_version += 1
    entry.value = entry.text if entry.key else None
    change_child(entry, value=entry.value, content_version=entry.content_version)
    add_versions([entry], editor=owner.actor, now=now)
    log_writes(owner, [touched(entry)], action=Action.UPDATE, now=now)


def forget_versions(owner: Owner, entry_id: UUID) -> int:
    """Delete all versions of an entry but the latest, to be rid of what they said; how many there were.

    Snapshots lose the entry where they have it at one of those. Raises NotFound.
    """
    with transaction.atomic():
        rows: Any = ContextEntry.objects.visible_to(owner, Kind.CONTEXT_ENTRY).filter(id=entry_id)
        entry = rows.select_for_update(of=("memory_ptr", "self")).first()
        if entry is None:
            raise NotFound("no such entry")
        SnapshotEntry.objects.filter(
            account_id=entry.account_id, entry_id=entry.id, number__lt=entry.content_version
        ).delete()
        old = ContextEntryVersion.objects.filter(
            account_id=entry.account_id, entry_id=entry.id, number__lt=entry.content_version
        )
        forgotten, _ = old.delete()
        record(owner, operation="forget_versions", memory_type="semantic", affected_ids=[entry.id])
    return forgotten
