"""`manage.py distribute`: refuses what it cannot distribute, with a sentence, and reads addresses of machines.

What it does on a distributed database is described in `docs/scale.md`: the servers of the tests have no such extension.
"""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from memory_project.postgresql.distribution import Machine, parse_machine


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
