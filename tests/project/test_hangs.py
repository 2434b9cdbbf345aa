"""Statements that take longer than the tick after which the silence of the server is judged."""

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from memory_project.postgresql.hangs import TICK_SECONDS, watched_connection

LONG = 4 * TICK_SECONDS
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def watched() -> Iterator[psycopg.Connection]:
    parameters = connection.get_connection_params()
    parameters.pop("cursor_factory", None)
    parameters.pop("context", None)
    with watched_connection("default").connect(**parameters, autocommit=True) as own:
        yield own


def test_a_slow_statement_is_answered_alone_and_in_a_pipeline(watched: psycopg.Connection) -> None:
    assert watched.execute("SELECT pg_sleep(%s), 1", [LONG]).fetchone() == ("", 1)
    with watched.pipeline():
        slow, fast = watched.execute("SELECT pg_sleep(%s), 2", [LONG]), watched.execute("SELECT 3")
        assert [slow.fetchone(), fast.fetchone()] == [("", 2), (3,)]


def test_texts_are_sent_completely_while_the_server_reads_nothing(watched: psycopg.Connection) -> None:
    watched.execute("CREATE TABLE waiting (text text)")
    locked, texts = threading.Event(), ["x" * 1_000_000] * 30

    def lock() -> None:
        with connection.copy().cursor() as other:
            other.execute("BEGIN; LOCK TABLE waiting IN ACCESS EXCLUSIVE MODE")
            locked.set()
            time.sleep(LONG)
            other.execute("COMMIT")
            other.connection.close()

    holder = threading.Thread(target=lock)
    holder.start()
    locked.wait()
    try:
        with watched.pipeline():
            for text in texts:
                watched.execute("INSERT INTO waiting VALUES (%s)", [text])
        assert watched.execute("SELECT count(*), sum(length(text)) FROM waiting").fetchone() == (30, 30_000_000)
    finally:
        holder.join()
        watched.execute("DROP TABLE waiting")
