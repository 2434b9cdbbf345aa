"""Connections of the pool: which of them the server is asked about before a request, and which are replaced."""

from typing import Any

import pytest
from django.db import connection

from memory_project.postgresql import hangs
from memory_project.postgresql.locks import lock_connection
from tests.memory.request_costs import count_calls

pytestmark = pytest.mark.django_db(transaction=True)


def session_id() -> int:
    """Return the id of the session that a new request gets."""
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_a_connection_that_has_just_answered_is_used_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hangs, "TRUSTED_SECONDS", 60.0)
    database: Any = connection
    for _ in range(database.pool.max_size):
        # the pool hands out the connection that rested longest, and earlier tests may have left several
        session_id()
    _, exchanges = count_calls(session_id)

    monkeypatch.setattr(hangs, "TRUSTED_SECONDS", -1.0)
    _, with_question = count_calls(session_id)
    assert with_question == exchanges + 1


def test_a_connection_that_the_server_has_just_ended_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hangs, "TRUSTED_SECONDS", 60.0)
    ended = session_id()
    connection.close()
    with lock_connection() as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])

    assert ended not in [session_id() for _ in range(3)]
