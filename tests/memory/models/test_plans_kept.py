"""Statements whose plan the server keeps, and those after them, which are planned for their parameters."""

import pytest
from django.db import DataError, connection, transaction

from memory.models.statements import numbered_cursor

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
