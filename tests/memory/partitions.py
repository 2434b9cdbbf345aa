"""Partitions of `memory_vectors` for tests: which one an account has, and which ones a transaction has opened."""

import re
from typing import Any

from django.db import connection

from memory.models import Account
from memory.services.embedding.vector_index import find_partitions
from memory_project.ids import uuid7

LOCKED = """
SELECT DISTINCT relation::regclass::text FROM pg_locks JOIN pg_inherits ON inhrelid = relation
WHERE pid = pg_backend_pid() AND inhparent = 'memory_vectors'::regclass
"""
"""What a statement plans with stays locked until the transaction ends."""


def table_of(relation: Any) -> Any:
    """Return the table that a relation of a plan or of PostgreSQL's statistics is a partition of, or else itself."""
    return re.sub(r"^memory_vectors_p\d+$", "memory_vectors", relation) if isinstance(relation, str) else relation


def locked_partitions() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(LOCKED)
        return [name for (name,) in cursor.fetchall()]


def account_beside(other: Account, *, in_same_partition: bool) -> Account:
    """Create an account whose vectors are in the partition of another account's, or in another partition."""
    [partition] = find_partitions(other.id)
    while (find_partitions(account_id := uuid7()) == [partition]) is not in_same_partition:
        pass
    return Account.objects.create(id=account_id, name=f"beside {other.name}")
