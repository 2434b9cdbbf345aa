"""Columns of the memories that a link leads from and to, its ends "source" and "target"."""

from django.db.models import OuterRef, Subquery

from memory.models import MemoryTable


def own_column(end: str, name: str) -> Subquery:
    """Return a column that only some kinds have, of the memory at one end of a link. It is None for other kinds."""
    rows = MemoryTable.objects.filter(account_id=OuterRef("account_id"), id=OuterRef(f"{end}_id"))
    return Subquery(rows.values(name))
