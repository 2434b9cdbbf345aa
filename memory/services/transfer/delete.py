"""Deleting archives."""

from typing import Any
from uuid import UUID

from memory.models import Transfer


def delete_archives(account_id: UUID) -> int:
    """Delete all exports and imports of the account with their archives; return how many. Running ones end."""
    ids = list(Transfer.objects.in_account(account_id).values_list("id", flat=True))
    rows: Any = Transfer.objects.filter(account_id=account_id, id__in=ids)
    # the database deletes their parts
    return int(rows._raw_delete(rows.db) or 0)
