"""`manage.py rotate_encryption_keys`: all values are re-encrypted under the first key, and none is lost."""

import json
from collections.abc import Iterator
from concurrent.futures import Future
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from memory.models import EncryptionCanary, ToolInvocation
from memory.owner import Owner
from memory.services.operations.reseal import BatchLimits, find_sealed_tables, rotate_tables
from memory.services.tools import OpenedInvocation, open_invocation, sealed_invocations
from memory_project.encryption import is_current, read_keys
from memory_project.fields import SealedJSONField
from tests.concurrency import PATIENCE_SECONDS, Start, run_in_thread
from tests.memory.procedures import invoke, sealed_bytes

pytestmark = pytest.mark.django_db

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))


@pytest.fixture(autouse=True)
def _old_key(settings: Settings, db: None) -> None:
    settings.ENCRYPTION_KEYS = [OLD]
    # a web server of other tests may have left one, under their key
    EncryptionCanary.objects.all().delete()


@pytest.fixture
def keys_in_file(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """The old key is stored in a file next to the data; the environment sets none."""
    settings.ENCRYPTION_KEYS, settings.ENCRYPTION_KEYS_FILE = [], tmp_path / "encryption_keys"
    settings.ENCRYPTION_KEYS_FILE.write_text(OLD)
    yield settings.ENCRYPTION_KEYS_FILE
    read_keys.cache_clear()


def rotate(*arguments: str) -> dict[str, Any]:
    output = StringIO()
    call_command("rotate_encryption_keys", "--json", *arguments, stdout=output, stderr=StringIO())
    figures: dict[str, Any] = json.loads(output.getvalue())
    return {name: figures[name] for name in ("rotated", "current", "unreadable", "rows")}


def rotate_aloud(*arguments: str) -> tuple[str, str]:
    output, errors = StringIO(), StringIO()
    call_command("rotate_encryption_keys", *arguments, stdout=output, stderr=errors)
    return output.getvalue(), errors.getvalue()


def figures(*, rotated: int = 0, current: int = 0, unreadable: int = 0, rows: int) -> dict[str, int]:
    return {"rotated": rotated, "current": current, "unreadable": unreadable, "rows": rows}


def opened(owner: Owner) -> list[OpenedInvocation]:
    return [open_invocation(row) for row in sealed_invocations(owner).order_by("id")]


def inputs(owner: Owner) -> list[Any]:
    return [each.tool_input for each in opened(owner)]


def test_a_rotation_encrypts_all_values_with_the_new_key(owner: Owner, settings: Settings) -> None:
    invoke(owner, tool_input="in", tool_output={"out": 1}, error_message="wrong")
    invoke(owner, tool_input=["another"])
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    assert rotate() == figures(rotated=4, rows=2)

    settings.ENCRYPTION_KEYS = [NEW]
    first, second = opened(owner)
    assert (first.tool_input, first.tool_output, first.error_message) == ("in", {"out": 1}, "wrong")
    assert (second.tool_input, second.tool_output) == (["another"], None)
    assert not first.sealed
    assert not second.sealed


def test_a_second_run_has_nothing_to_do_and_writes_nothing(owner: Owner, settings: Settings) -> None:
    invoke(owner, tool_input="in")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    rotate()
    before = sealed_bytes()

    with CaptureQueriesContext(connection) as queries:
        assert rotate() == figures(current=1, rows=1)

    assert sealed_bytes() == before
    assert not any(query["sql"].startswith("UPDATE") for query in queries)


def test_a_dry_run_counts_and_changes_nothing(owner: Owner, settings: Settings) -> None:
    invoke(owner, tool_input="in")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    before = sealed_bytes()

    assert rotate("--dry-run") == figures(rotated=1, rows=1)

    assert sealed_bytes() == before


def test_an_unreadable_value_is_kept_counted_and_sets_the_exit_status(owner: Owner, settings: Settings) -> None:
    invoke(owner, tool_input="lost", tool_output="lost")
    lost = sealed_bytes()
    settings.ENCRYPTION_KEYS = [NEW]
    invoke(owner, tool_input="kept")

    output = StringIO()
    with pytest.raises(SystemExit) as exit_status:
        call_command("rotate_encryption_keys", "--json", stdout=output, stderr=StringIO())

    assert exit_status.value.code == 1
    assert json.loads(output.getvalue())["tables"] == {"tool_invocations": figures(current=1, unreadable=2, rows=2)}
    assert sealed_bytes()[:1] == lost


def test_a_missing_key_that_is_configured_again_opens_unreadable_values(owner: Owner, settings: Settings) -> None:
    invoke(owner, tool_input="in")
    settings.ENCRYPTION_KEYS = [NEW]
    with pytest.raises(SystemExit):
        rotate()

    settings.ENCRYPTION_KEYS = [NEW, OLD]

    assert rotate() == figures(rotated=1, rows=1)


def test_another_run_resumes_an_interrupted_rotation(owner: Owner, settings: Settings) -> None:
    for number in range(5):
        invoke(owner, tool_input=number)
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    steps = rotate_tables(find_sealed_tables(), size=BatchLimits(rows=2))
    next(steps)
    steps.close()

    assert [is_current(sealed) for sealed in sealed_bytes()] == [True, True, False, False, False]
    assert rotate() == figures(rotated=3, current=2, rows=5)


def test_batches_go_through_all_rows_once(owner: Owner, settings: Settings) -> None:
    for number in range(5):
        invoke(owner, tool_input=number)
    invoke(owner)
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    batches = [batch.rotated.rows for batch in rotate_tables(find_sealed_tables(), size=BatchLimits(rows=2))]

    assert batches == [2, 2, 1]
    assert all(map(is_current, sealed_bytes()))


@pytest.mark.parametrize(
    ("most", "batches"),
    [(1, [1, 1, 1, 1]), (3_983, [1, 1, 1, 1]), (3_984, [2, 2]), (7_967, [3, 1]), (7_968, [4])],
)
def test_a_batch_has_at_most_the_given_bytes_or_a_single_row(
    owner: Owner, settings: Settings, most: int, batches: list[int]
) -> None:
    for _ in range(4):
        invoke(owner, tool_input="x" * 680, tool_output="x" * 680)
    assert {len(sealed) for column in ("tool_input", "tool_output") for sealed in sealed_bytes(column)} == {996}
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    steps = rotate_tables(find_sealed_tables(), size=BatchLimits(bytes=most))

    assert [batch.rotated.rows for batch in steps] == batches
    assert rotate() == figures(current=8, rows=4)


def test_rows_deleted_meanwhile_do_not_stop_a_rotation(owner: Owner, settings: Settings) -> None:
    for number in range(4):
        invoke(owner, tool_input=number)
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    for batch in rotate_tables(find_sealed_tables(), size=BatchLimits(rows=1)):
        ToolInvocation.objects.filter(id=batch.last).delete()

    assert not ToolInvocation.objects.exists()


def test_every_encrypted_column_is_found_for_rotation() -> None:
    expected = {
        (model._meta.db_table, field.column)
        for model in apps.get_models()
        for field in model._meta.local_concrete_fields
        if isinstance(field, SealedJSONField)
    }

    found = {(table.name, column) for table in find_sealed_tables() for column in table.columns}

    assert found == expected
    assert ("tool_invocations", "tool_input") in found


def test_generate_puts_a_new_key_first_and_rotates_to_it(owner: Owner, keys_in_file: Path) -> None:
    invoke(owner, tool_input="in")

    output, errors = rotate_aloud("--generate")

    assert output.startswith("1 re-encrypted, 0 under the first key already, 0 unreadable, in 1 rows, ")
    assert str(keys_in_file) in errors
    new, old = keys_in_file.read_text().split(",")
    assert old == OLD
    assert new not in output + errors
    keys_in_file.write_text(new)
    assert inputs(owner) == ["in"]


def test_removing_old_keys_is_suggested_only_after_a_complete_rotation(owner: Owner, settings: Settings) -> None:
    invoke(owner, tool_input="in")
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    hints = [rotate_aloud(*arguments)[1] for arguments in (["--dry-run"], [], ["--dry-run"])]

    assert hints[0] == "Leave all keys in MEMORY_ENCRYPTION_KEYS: the old ones are still needed.\n"
    assert hints[1].startswith("Once --dry-run finds nothing more to re-encrypt, take the old keys out of")
    assert hints[2].startswith("All keys in MEMORY_ENCRYPTION_KEYS but the first can go")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--generate"], "put the new one in front there"), (["--generate", "--dry-run"], "not with --dry-run")],
)
def test_invalid_options_are_refused_with_a_message(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("rotate_encryption_keys", *arguments)


def test_without_keys_it_says_so(settings: Settings, tmp_path: Path) -> None:
    settings.ENCRYPTION_KEYS, settings.ENCRYPTION_KEYS_FILE = [], tmp_path / "none"

    with pytest.raises(CommandError, match="MEMORY_ENCRYPTION_KEYS is empty"):
        call_command("rotate_encryption_keys")


@pytest.mark.django_db(transaction=True)
def test_a_rotation_finishes_while_a_client_keeps_writing(owner: Owner, settings: Settings) -> None:
    for number in range(4):
        invoke(owner, tool_input=number)
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    for _ in rotate_tables(find_sealed_tables(), size=BatchLimits(rows=2)):
        run_in_thread(lambda: invoke(owner, tool_input="meanwhile"))

    settings.ENCRYPTION_KEYS = [NEW]
    assert [value for value in inputs(owner) if value != "meanwhile"] == [0, 1, 2, 3]


@pytest.mark.django_db(transaction=True)
def test_two_simultaneous_rotations_encrypt_each_value_once(
    owner: Owner, settings: Settings, start_concurrently: Start
) -> None:
    invoke(owner, tool_input="in")
    settings.ENCRYPTION_KEYS = [NEW, OLD]

    with transaction.atomic():
        [first] = rotate_tables(find_sealed_tables())
        other: Future[Any] = start_concurrently(lambda: list(rotate_tables(find_sealed_tables())))

    [second] = other.result(PATIENCE_SECONDS)
    assert (first.rotated.rotated, second.rotated.rotated, second.rotated.current) == (1, 0, 1)
    assert inputs(owner) == ["in"]
