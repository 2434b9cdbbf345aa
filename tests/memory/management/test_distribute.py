"""`manage.py distribute`: refuses what it cannot distribute, with a sentence, and reads addresses of machines.

What it does on a distributed database is described in `docs/scale.md`: the servers of the tests have no such extension.
"""

from dataclasses import replace

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone

from memory.errors import Unprocessable
from memory.models import UserProfile
from memory.models.goals import SUBGOAL_OF
from memory.owner import Owner
from memory.services.custody.subjects import request_subject
from memory.services.goals.store import GoalLink, insert_goal_links
from memory_project.postgresql.constraints import broken_constraint
from memory_project.postgresql.distribution import FIND_BODY, REPLACED_FUNCTIONS, Machine, parse_machine
from tests.memory.facts import know


@pytest.mark.django_db
def test_a_database_without_the_extension_is_refused_and_left_as_it_is() -> None:
    with pytest.raises(CommandError, match="The database has no extension citus"):
        call_command("distribute", "--workers", "one.example:5432,two.example", "--dry-run")


@pytest.mark.parametrize(
    ("text", "machine"),
    [
        ("one.example:5433", Machine(host="one.example", port=5433)),
        ("one.example", Machine(host="one.example", port=5432)),
        ("[::1]:5433", Machine(host="[::1]", port=5433)),
    ],
)
def test_an_address_has_a_host_and_perhaps_a_port(text: str, machine: Machine) -> None:
    assert parse_machine(text) == machine


@pytest.mark.parametrize(
    "text", ["", ":5432", "one.example:", "one.example:many", "one.example:0", "one.example:70000"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no address: write host:port"):
        parse_machine(text)


@pytest.fixture
def replaced(db: None) -> None:
    """The functions of triggers as the command stores them."""
    with connection.cursor() as cursor:
        for name, (pattern, statement) in REPLACED_FUNCTIONS.items():
            cursor.execute(FIND_BODY, [name])
            assert pattern in cursor.fetchone()[0], name
            cursor.execute(statement)
            cursor.execute(FIND_BODY, [name])
            assert pattern not in cursor.fetchone()[0], name


def test_the_check_of_erased_users_that_is_stored_instead_refuses_their_rows_and_no_others(
    owner: Owner, replaced: None
) -> None:
    request_subject(owner, "ana", reason="", now=timezone.now())

    know(replace(owner, user_id="ben"), "Ben likes figs.")
    with pytest.raises(DatabaseError, match="This user was erased"), transaction.atomic():
        UserProfile.objects.create(account_id=owner.account_id, user_id="ana")


def test_the_check_of_rings_that_is_stored_instead_refuses_them(owner: Owner, replaced: None) -> None:
    first, second = (know(owner, text).id for text in ("Oven first.", "Bread second."))
    insert_goal_links(owner.account_id, [GoalLink(first, SUBGOAL_OF, second)])

    with pytest.raises(Unprocessable, match="cycle"), transaction.atomic():
        insert_goal_links(owner.account_id, [GoalLink(second, SUBGOAL_OF, first)])


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ('duplicate key value violates unique constraint "link_once_102147"', "link_once"),
        ('duplicate key value violates unique constraint "link_once"', "link_once"),
        ("division by zero", None),
    ],
)
def test_a_constraint_that_a_shard_names_is_that_of_its_table(message: str, name: str | None) -> None:
    error = IntegrityError(message)
    error.__cause__ = psycopg.IntegrityError(message)

    assert broken_constraint(error) == name
