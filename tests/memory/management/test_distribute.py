"""`manage.py distribute`: refuses what it cannot distribute, with a sentence, and reads addresses of machines.

What it does on a distributed database is described in `docs/scale.md`: the servers of the tests have no such extension.
"""

from dataclasses import replace

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from memory.models import UserProfile
from memory.owner import Owner
from memory.services.custody.subjects import request_subject
from memory_project.postgresql.distribution import CHECK_EACH_USER, FIND_JOINED_ROWS, Machine, parse_machine
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


@pytest.mark.django_db
def test_the_check_of_erased_users_that_is_stored_instead_refuses_their_rows_and_no_others(owner: Owner) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FIND_JOINED_ROWS)
        assert cursor.fetchone()
        cursor.execute(CHECK_EACH_USER)
        cursor.execute(FIND_JOINED_ROWS)
        assert not cursor.fetchone()
    request_subject(owner, "ana", reason="", now=timezone.now())

    know(replace(owner, user_id="ben"), "Ben likes figs.")
    with pytest.raises(DatabaseError, match="This user was erased"), transaction.atomic():
        UserProfile.objects.create(account_id=owner.account_id, user_id="ana")
