"""Writing down what entries say: the columns that they have beyond those of all memories, and each version of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from psycopg.types.json import Jsonb

from memory.models import ContextEntry, ContextEntryVersion
from memory.models.binary import binary_cursor

CHANGE_COLUMNS = """
UPDATE context_entries e SET value = new.value, content_version = new.content_version, entry_type = new.entry_type,
    source_type = new.source_type, memory_type = new.memory_type, importance = new.importance,
    confidence = new.confidence
FROM unnest(%s::uuid[], %s::json[], %s::int[], %s::text[], %s::text[], %s::text[], %s::float8[], %s::float8[])
    AS new (id, value, content_version, entry_type, source_type, memory_type, importance, confidence)
WHERE e.memory_ptr_id = new.id
"""

COLUMNS = ("content_version", "entry_type", "source_type", "memory_type", "importance", "confidence")
"""Those of CHANGE_COLUMNS, after the value."""

CHANGE_METADATA = """
UPDATE memories m SET metadata = new.metadata, version = new.version, updated_at = %s
FROM unnest(%s::uuid[], %s::jsonb[], %s::int[]) AS new (id, metadata, version) WHERE m.id = new.id
"""


def change_columns(entries: Sequence[ContextEntry]) -> None:
    """Store what locked entries have by now of the columns beyond those of all memories."""
    column: Any = ContextEntry._meta.get_field("value")
    values = [column.get_db_prep_save(entry.value, connection) for entry in entries]
    others = [[getattr(entry, name) for entry in entries] for name in COLUMNS]
    with binary_cursor() as cursor:
        cursor.execute(CHANGE_COLUMNS, [[entry.id for entry in entries], values, *others])


def change_metadata(entries: Sequence[ContextEntry], *, now: datetime) -> None:
    """Store the metadata and the versions of rows that locked entries have by now."""
    if not entries:
        return
    for entry in entries:
        entry.updated_at = now
    ids, versions = [entry.id for entry in entries], [entry.version for entry in entries]
    metadata: list[Any] = [Jsonb(entry.metadata) for entry in entries]
    with binary_cursor() as cursor:
        cursor.execute(CHANGE_METADATA, [now, ids, metadata, versions])


def change_child(entry: ContextEntry, **columns: Any) -> None:
    """Store columns that entries have beyond those of all memories."""
    rows: Any = ContextEntry.objects.filter(pk=entry.id)
    rows.update(**columns)


def add_versions(
    entries: Iterable[ContextEntry], *, editor: str, restored_from: int | None = None, now: datetime
) -> None:
    """Write down the entries, which are of one account, as they are: version `content_version`, after the one before.

    Two statements, one for new entries.
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
