"""Statements whose plan the server keeps, and those after them, which are planned for their parameters."""

import pytest
from django.db import DataError, OperationalError, connection, transaction

from memory.models import Account
from memory.models.statements import PREPARED_AFTER, numbered_cursor

pytestmark = pytest.mark.django_db

MODE = "SELECT current_setting('plan_cache_mode')"
SCANS = "SELECT current_setting('enable_seqscan')"


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


def test_the_plan_is_made_for_tables_that_grow() -> None:
    """An index is used while a table is small, too. Other statements may read it whole."""
    assert execute_once(f"{SCANS}, $1::int", 7) == [("off", 7)]

    with connection.cursor() as cursor:
        cursor.execute(SCANS)
        assert cursor.fetchone() == ("on",)


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


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_fails_while_it_is_prepared_can_be_executed_again(account: Account) -> None:
    """The server parses it for that, and waits for a lock on its tables."""
    statement = "SELECT count(*) + $1::int FROM accounts"
    for _ in range(PREPARED_AFTER):
        execute_once(statement, 1)
    other = connection.copy()
    try:
        with other.cursor() as locking, connection.cursor() as cursor:
            locking.execute("BEGIN")
            locking.execute("LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE")
            cursor.execute("SET lock_timeout = '200ms'")
            with pytest.raises(OperationalError):
                execute_once(statement, 1)
            cursor.execute("RESET lock_timeout")
    finally:
        other.close()

    assert [execute_once(statement, 1) for _ in range(3)] == [[(2,)]] * 3
