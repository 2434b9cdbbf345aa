"""`manage.py erase_subject`: erase a user, see the receipt, verify it, let the user come back."""

import json
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory import conf
from memory.models import Erasure, Memory
from memory.owner import Owner
from tests.memory.facts import know

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch, empty_redis: None) -> None:
    monkeypatch.setattr(conf, "ERASURE_WAIT_SECONDS", 0)


def run(*arguments: str) -> dict[str, Any]:
    output = StringIO()
    call_command("erase_subject", "--account", "workshop", "--json", *arguments, stdout=output)
    figures: dict[str, Any] = json.loads(output.getvalue())
    return figures


def test_a_user_is_erased_and_the_receipt_verified(owner: Owner) -> None:
    know(replace(owner, user_id="ana"), "Likes figs.")
    assert run("--user", "ana", "--dry-run")["counts"]["memories"] == 1
    assert Memory.objects.exists()

    done = run("--user", "ana", "--reason", "asked")

    assert done["receipt"]["counts"]["fact"] == 1
    assert not Memory.objects.exists()
    assert run("--verify", done["receipt"]["erasure_id"])["is_valid"]


def test_a_changed_receipt_is_not_valid(owner: Owner) -> None:
    erasure_id = run("--user", "ana")["receipt"]["erasure_id"]
    Erasure.objects.update(signature="0" * 64)

    with pytest.raises(CommandError, match="not one that this installation signed"):
        run("--verify", erasure_id)


def test_a_user_that_was_not_erased_cannot_be_readmitted(owner: Owner) -> None:
    with pytest.raises(CommandError, match="no such mark"):
        run("--user", "ana", "--readmit")

    run("--user", "ana")
    assert run("--user", "ana", "--readmit") == {"readmitted": True}


def test_it_says_if_no_row_belongs_to_the_user(owner: Owner) -> None:
    for arguments in (("--user", "ghost", "--dry-run"), ("--user", "ghost")):
        output = StringIO()

        call_command("erase_subject", "--account", "workshop", *arguments, stdout=output)

        assert output.getvalue().startswith("No row belongs to this user. Check the id.\n")
