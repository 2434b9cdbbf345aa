"""Rows written over in place: no index is touched where none has what changed, and their page has room."""

import pytest
from django.db import connection


@pytest.fixture
def room_beside_rows(db: None) -> None:
    """Keep room in each page of memories until the end of the test, so that updates can stay on their page."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memories SET (fillfactor = 10)")


def hot_updates() -> int:
    """Updates of memories in this transaction that touched no index (heap-only tuples)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_get_xact_tuples_hot_updated('memories'::regclass)")
        return int(cursor.fetchone()[0])
