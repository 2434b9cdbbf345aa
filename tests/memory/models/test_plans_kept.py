"""Statements whose plan the server keeps, and those after them, which are planned for their parameters."""

import os
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from django.db import DataError, connection, transaction

from memory.models.statements import SinglePipeline, numbered_cursor

pytestmark = pytest.mark.django_db

MODE = "SELECT current_setting('plan_cache_mode')"


def plan_mode() -> str:
    with connection.cursor() as cursor:
        cursor.execute(MODE)
        return str(cursor.fetchone()[0])


def execute_once(statement: str, parameter: int | str) -> list[tuple[object, ...]]:
    with numbered_cursor(plans_once=True) as cursor:
        cursor.execute(statement, [parameter])
        return list(cursor.fetchall())


def test_only_the_statement_itself_is_executed_by_a_kept_plan() -> None:
    rows = execute_once(f"{MODE}, $1::int", 7)

    assert rows == [("force_generic_plan", 7)]
    assert plan_mode() == "force_custom_plan"


def test_a_statement_that_fails_leaves_no_setting_behind() -> None:
    with pytest.raises(DataError), transaction.atomic():
        execute_once("SELECT 1 / $1::int", 0)

    assert plan_mode() == "force_custom_plan"


def test_parameters_that_cannot_be_sent_leave_no_setting_behind() -> None:
    with pytest.raises(DataError):
        execute_once("SELECT $1::text", "a\0b")

    assert plan_mode() == "force_custom_plan"


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_fails_outside_of_a_transaction_leaves_no_setting_behind() -> None:
    with pytest.raises(DataError):
        execute_once("SELECT 1 / $1::int", 0)

    assert plan_mode() == "force_custom_plan"


class CountingConnection(psycopg.Connection[Any]):
    """Counts how often it waits until the server can be written to or read from."""

    waits = 0

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        return super().wait(self.counted(gen), *arguments, **options)

    def counted(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        with suppress(StopIteration):
            wanted = next(gen)
            while True:
                self.waits += 1
                wanted = gen.send((yield wanted))
        return None


def test_commands_of_a_pipeline_are_sent_together() -> None:
    with CountingConnection.connect(os.environ["DATABASE_URL"], autocommit=True) as session:
        session.waits, first, second = 0, session.cursor(), session.cursor()
        session._pipeline = SinglePipeline(session)
        with session.pipeline():
            first.execute("SELECT 1")
            second.execute("SELECT 2")

        waits, rows = session.waits, [first.fetchone(), second.fetchone()]

    assert rows == [(1,), (2,)]
    # to send all, to find that nothing is left to send, and to read
    assert waits <= 4
