"""`manage.py export_archive` and `import_archive`: files, standard input, dry runs, refusals."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.models import Account, Fact, Transfer
from memory.owner import Owner
from tests.memory.facts import know
from tests.memory.transfers import export_bytes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _known(owner: Owner, empty_redis: None) -> None:
    know(owner, "The pump leaks.")


def write(path: Path, *arguments: str, command: str = "export_archive") -> dict[str, Any]:
    errors = StringIO()
    given = ("--account", "workshop", "--output", str(path), "--json", *arguments)
    call_command(command, *given, stderr=errors)
    figures: dict[str, Any] = json.loads(errors.getvalue())
    return figures


def read(path: Path, *arguments: str) -> dict[str, Any]:
    output = StringIO()
    call_command("import_archive", str(path), "--json", *arguments, stdout=output)
    figures: dict[str, Any] = json.loads(output.getvalue())
    return figures


def test_a_file_holds_the_archive_and_is_imported_into_a_new_account(owner: Owner, tmp_path: Path) -> None:
    path = tmp_path / "workshop.zip"

    written = write(path)
    copied = read(path, "--account", "copy", "--create-account")

    assert path.read_bytes() == export_bytes(owner.account_id)
    assert written["size_bytes"] == path.stat().st_size
    assert (copied["rows"]["memories"], copied["remapped"]) == (1, True)
    assert Fact.objects.get(account__name="copy").text == "The pump leaks."


def test_the_command_has_a_short_name(owner: Owner, tmp_path: Path) -> None:
    write(tmp_path / "workshop.zip", command="export")

    assert (tmp_path / "workshop.zip").read_bytes() == export_bytes(owner.account_id)


def test_a_dry_run_checks_and_stores_nothing(tmp_path: Path) -> None:
    write(tmp_path / "workshop.zip")
    Account.objects.create(name="copy")

    assert read(tmp_path / "workshop.zip", "--account", "copy", "--dry-run")["rows"]["memories"] == 1
    assert Fact.objects.count() == 1


def test_a_dry_run_says_that_it_would_create_the_account_and_stores_nothing(tmp_path: Path) -> None:
    path, output = tmp_path / "workshop.zip", StringIO()
    write(path)
    given = ("--account", "brandnew", "--create-account", "--dry-run")

    call_command("import_archive", str(path), *given, stdout=output)

    assert output.getvalue().startswith("The account 'brandnew' would be created.\n")
    assert read(path, *given)["rows"]["memories"] == 1
    assert not Account.objects.filter(name="brandnew").exists()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CommandError, match="The archive was not imported"):
        read(path, *given)


def test_a_file_that_is_no_archive_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("not a zip")

    with pytest.raises(CommandError, match="The archive was not imported: this is no complete zip"):
        read(tmp_path / "text.zip", "--account", "workshop")

    assert Transfer.objects.get().status == "failed"


def test_the_archive_of_an_agent_has_what_belongs_to_it(tmp_path: Path) -> None:
    assert write(tmp_path / "b.zip", "--agent", "assistant", "--include-vectors")["rows"]["memories"] == 1


@pytest.mark.parametrize("kind", ["agent", "user"])
def test_an_agent_or_user_without_rows_is_refused_and_the_file_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ghost.zip"
    path.write_text("before")

    with pytest.raises(CommandError, match=rf"^No row belongs to this {kind}\. Check the id\.$"):
        write(path, f"--{kind}", "ghost", "--replace")

    assert path.read_text() == "before"


def test_an_archive_that_is_there_is_only_replaced_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "workshop.zip"
    path.write_text("before")

    with pytest.raises(CommandError, match=r"workshop\.zip exists: name another file, or give --replace\.$"):
        write(path)
    assert path.read_text() == "before"

    write(path, "--replace")
    assert path.read_bytes().startswith(b"PK")


def test_an_empty_file_takes_the_archive(tmp_path: Path) -> None:
    (tmp_path / "made.zip").touch()

    write(tmp_path / "made.zip")

    assert (tmp_path / "made.zip").read_bytes().startswith(b"PK")


def test_figures_are_sentences_without_json(tmp_path: Path) -> None:
    output = StringIO()
    write(tmp_path / "workshop.zip")
    call_command("import_archive", str(tmp_path / "workshop.zip"), "--account", "workshop", stdout=output)

    assert output.getvalue().startswith("0 rows imported, ")
