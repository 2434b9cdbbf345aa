"""`manage.py distribute`: refuses what it cannot distribute, with a sentence, and reads addresses of machines.

What it does on a distributed database is described in `docs/scale.md`: the servers of the tests have no such extension.
"""

from dataclasses import replace

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from memory.models import Link, UserProfile
from memory.models.goals import SUBGOAL_OF
from memory.owner import Owner
from memory.services.custody.subjects import request_subject
from memory_project.postgresql.distributed_functions import FIND_BODY, REPLACED_FUNCTIONS
from memory_project.postgresql.distribution import Machine, parse_machine
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
    first, second = (know(owner, text) for text in ("Oven first.", "Bread second."))
    Link.objects.create(account_id=owner.account_id, source_id=first.id, target_id=second.id, type=SUBGOAL_OF)

    with pytest.raises(DatabaseError, match="goals in a ring"), transaction.atomic():
        Link.objects.create(account_id=owner.account_id, source_id=second.id, target_id=first.id, type=SUBGOAL_OF)
