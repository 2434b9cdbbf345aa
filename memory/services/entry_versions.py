"""Writing down what entries say: the columns that they have beyond those of all memories, and each version of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from memory.models import ContextEntry, ContextEntryVersion
from memory.models.binary import binary_cursor

CHANGE_VALUES = """
UPDATE context_entries e SET value = new.value, content_version = new.content_version
FROM unnest(%s::uuid[], %s::json[], %s::int[]) AS new (id, value, content_version) WHERE e.memory_ptr_id = new.id
"""


def change_values(entries: Sequence[ContextEntry]) -> None:
    """Store the values and the numbers of versions that the entries have by now."""
    column: Any = ContextEntry._meta.get_field("value")
    values = [column.get_db_prep_save(entry.value, connection) for entry in entries]
    numbers = [entry.content_version for entry in entries]
    with binary_cursor() as cursor:
        cursor.execute(CHANGE_VALUES, [[entry.id for entry in entries], values, numbers])


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
