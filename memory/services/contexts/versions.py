"""Stored entries and their versions: writing entry columns and versions, staff corrections, deleting old versions."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet
from psycopg.types.json import Jsonb

from memory.audit import record_audit
from memory.errors import require_found
from memory.models import ContextEntry, ContextEntryVersion, Kind, Memory, SnapshotEntry
from memory.models.statements import binary_cursor
from memory.owner import Owner
from memory.services.contexts.access_log import Action, entry_reference, log_writes
from memory.services.memories.lifecycle import Lifecycle

CHANGE_COLUMNS = """
UPDATE memories m SET value = new.value, content_version = new.content_version, entry_type = new.entry_type,
    source_type = new.source_type, memory_type = new.memory_type, importance = new.importance,
    confidence = new.confidence, metadata = new.metadata, version = new.version, updated_at = %s
FROM unnest(%s::uuid[], %s::json[], %s::jsonb[], %s::int[], %s::int[], %s::text[], %s::text[], %s::text[],
        %s::float8[], %s::float8[])
    AS new (id, value, metadata, version, content_version, entry_type, source_type, memory_type, importance, confidence)
WHERE m.account_id = %s AND m.id = new.id
"""

CHANGED_COLUMNS = ("version", "content_version", "entry_type", "source_type", "memory_type", "importance", "confidence")
"""The columns of CHANGE_COLUMNS, after id, value and metadata."""


def update_entry_columns(owner: Owner, entries: Sequence[ContextEntry], *, now: datetime) -> None:
    """Store the columns of these locked entries, except their texts and what follows from those. One statement."""
    column: Any = ContextEntry._meta.get_field("value")
    for entry in entries:
        entry.updated_at = now
    values = [column.get_db_prep_save(entry.value, connection) for entry in entries]
    metadata: list[Any] = [Jsonb(entry.metadata) for entry in entries]
    others = [[getattr(entry, name) for entry in entries] for name in CHANGED_COLUMNS]
    with binary_cursor() as cursor:
        ids = [entry.id for entry in entries]
        cursor.execute(CHANGE_COLUMNS, [now, ids, values, metadata, *others, owner.account_id])


def entry_row(entry: ContextEntry) -> QuerySet[ContextEntry]:
    """Return the row of an entry, for updates of some of its columns."""
    return ContextEntry.objects.filter(account_id=entry.account_id, id=entry.id)


def add_versions(
    entries: Iterable[ContextEntry], *, editor: str, restored_from: int | None = None, now: datetime
) -> None:
    """Store the current content of the entries as version `content_version`, linked to the previous version.

    The entries belong to one account. One statement for new entries, two for others.
    """
    rows = list(entries)
    if not rows:
        return
    before = {row.id: row.content_version - 1 for row in rows if row.content_version > 1}
    kept = ContextEntryVersion.objects.filter(
        account_id__in={row.account_id for row in rows}, entry_id__in=before, number__in=set(before.values())
    )
    ids = {(entry_id, number): pk for entry_id, number, pk in kept.values_list("entry_id", "number", "pk")}
    ContextEntryVersion.objects.bulk_create(
        [
            ContextEntryVersion(
                account_id=row.account_id,
                entry_id=row.id,
                number=row.content_version,
                previous_version_id=ids.get((row.id, row.content_version - 1)),
                content=row.text,
                value=row.value,
                editor=editor,
                restored_from=restored_from,
                created_at=now,
            )
            for row in rows
        ]
    )


def store_corrected_version(owner: Owner, entry_id: UUID, *, now: datetime) -> None:
    """Store the text that a staff correction gave the memory as the entry's next version, in the same transaction.

    The value under a key becomes that text too, so that it does not keep saying what was corrected.
    """
    entry = ContextEntry.objects.get(account_id=owner.account_id, id=entry_id)
    entry.content_version += 1
    entry.value = entry.text if entry.key else None
    entry_row(entry).update(value=entry.value, content_version=entry.content_version)
    add_versions([entry], editor=owner.actor, now=now)
    log_writes(owner, [entry_reference(entry)], action=Action.UPDATE, now=now)


def delete_old_versions(owner: Owner, entry_id: UUID) -> int:
    """Delete all versions of an entry but the latest, to destroy what they said, and return their number.

    Snapshots that refer to one of those versions lose the entry. Raises NotFound.
    """
    with transaction.atomic():
        rows = ContextEntry.objects.visible_to(owner, Kind.CONTEXT_ENTRY).filter(id=entry_id)
        entry = require_found(rows.select_for_update().first(), "entry")
        old = {"account_id": entry.account_id, "entry_id": entry.id, "number__lt": entry.content_version}
        SnapshotEntry.objects.filter(**old).delete()
        forgotten, _ = ContextEntryVersion.objects.filter(**old).delete()
        record_audit(owner, operation="forget_versions", memory_type="semantic", affected_ids=[entry.id])
    return forgotten


class EntryLifecycle(Lifecycle):
    """Entries of contexts, which keep their versions."""

    def propagate(self, rows: Sequence[Memory]) -> None:
        if "text" in self.operation.columns:
            for row in rows:
                store_corrected_version(self.owner, row.id, now=self.now)
