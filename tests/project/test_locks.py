"""Advisory locks with a connection of their own."""

import pytest
from django.db import connection

from memory_project.postgresql.locks import lock_connection, try_advisory_lock

LOCK_ID = 7_305_819
ROUNDS = 50


@pytest.mark.django_db(transaction=True)
def test_a_lock_is_free_as_soon_as_its_block_has_ended() -> None:
    """The server ends a session some time after its connection was closed."""
    taken = []
    with connection.cursor() as cursor:
        for _ in range(ROUNDS):
            with try_advisory_lock(LOCK_ID):
                pass
            cursor.execute("SELECT pg_try_advisory_lock(%s), pg_advisory_unlock(%s)", [LOCK_ID, LOCK_ID])
            taken.append(cursor.fetchone()[0])

    assert taken == [True] * ROUNDS


@pytest.mark.django_db(transaction=True)
def test_a_lock_keeps_others_out_until_its_block_has_ended() -> None:
    with try_advisory_lock(LOCK_ID) as first, try_advisory_lock(LOCK_ID) as second:
        assert (first, second) == (True, False)


@pytest.mark.django_db(transaction=True)
def test_a_block_whose_connection_the_server_cut_ends_without_an_error() -> None:
    with lock_connection() as lock, lock_connection() as other:
        (pid,) = lock.execute("SELECT pg_backend_pid()").fetchone()
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
