"""Plain rows that staff keep (accounts, links, who takes part, …), written with their audit entry in one transaction.

What has rules of its own has a service of its own: memories (`corrections`), API keys and teams (`accounts`).
"""

from collections.abc import Sequence

from django.db import models, transaction

from memory.audit import record
from memory.owner import Owner


def create_row(owner: Owner, row: models.Model, *, memory_type: str) -> None:
    with transaction.atomic():
        row.save(force_insert=True)
        record(owner, operation="create", memory_type=memory_type, affected_ids=[str(row.pk)])


def change_row(owner: Owner, row: models.Model, *, columns: Sequence[str], memory_type: str) -> None:
    """Store these columns of the row, and no others."""
    with transaction.atomic():
        row.save(update_fields=columns)
        record(
            owner,
            operation="update",
            memory_type=memory_type,
            affected_ids=[str(row.pk)],
            metadata={"columns": sorted(columns)},
        )


def delete_row(owner: Owner, row: models.Model, *, memory_type: str) -> None:
    """Delete the row and what belongs to it."""
    row_id = str(row.pk)
    with transaction.atomic():
        row.delete()
        record(owner, operation="delete", memory_type=memory_type, affected_ids=[row_id])
