"""`manage.py backup` and `restore`: what they refuse, and that a refusal changes nothing."""

import gzip
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from pytest_django import Settings

from ledger import store
from ledger.journal import flush_journal, restore_all_ledgers
from ledger.models import Injection
from memory.models import Account, Fact
from memory.owner import Owner
from memory.services.backup.create import require_tables
from memory.services.backup.live import count_own_keys, dump_live, merge_streams, read_streams, replace_live
from memory.services.backup.manifest import DATABASE, KEYS, LIVE, MANIFEST, BackupError, digest_of_body
from memory_project.redis import ConversationRef, client
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

SERVER_VARIABLES = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL")
PASSPHRASE = "a passphrase of tests"


@pytest.fixture
def passphrase(tmp_path: Path) -> str:
    file = tmp_path / "passphrase"
    file.write_text(f"{PASSPHRASE}\n")
    return f"--passphrase-file={file}"


@pytest.fixture
def backup(account: Account, owner: Owner, passphrase: str, tmp_path: Path) -> Path:
    """A backup of an account with a fact."""
    know(owner, "The boiler is green.")
    folder = tmp_path / "backup"
    run("backup", str(folder), passphrase)
    return folder


def run(*arguments: str) -> str:
    output = StringIO()
    call_command(*arguments, stdout=output, stderr=StringIO())
    return output.getvalue()


def refusal(*arguments: str) -> str:
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    return str(refused.value)


def change_manifest(folder: Path, **changes: Any) -> None:
    """Change members of a manifest, and its digest with them."""
    body = json.loads((folder / MANIFEST).read_text())
    del body["sha256"]
    body |= changes
    (folder / MANIFEST).write_text(json.dumps(body | {"sha256": digest_of_body(body)}))


def test_a_backup_counts_what_it_holds(backup: Path, passphrase: str) -> None:
    manifest = json.loads((backup / MANIFEST).read_text())

    assert sorted(path.name for path in backup.iterdir()) == sorted([DATABASE, KEYS, LIVE, MANIFEST])
    assert (manifest["rows"]["accounts"], manifest["rows"]["memories"]) == (1, 1)
    assert {path.stat().st_mode & 0o777 for path in backup.iterdir()} == {0o600}
    assert [path.name for path in backup.parent.iterdir() if "unfinished" in path.name] == []
    assert "The boiler is green." in gzip.decompress((backup / DATABASE).read_bytes()).decode()


def test_keys_are_readable_by_the_passphrase_alone(backup: Path, settings: Settings) -> None:
    assert not any(key in (backup / KEYS).read_text() for key in [*settings.ENCRYPTION_KEYS, settings.TOMBSTONE_KEY])


def test_a_dry_run_counts_what_would_be_replaced(backup: Path, passphrase: str) -> None:
    shown = json.loads(run("restore", str(backup), passphrase, "--dry-run", "--json"))

    assert shown["replaced"]["rows"]["memories"] == shown["replaced"]["rows"]["accounts"] == 1
    assert Fact.objects.exists()


def test_a_dry_run_where_nothing_is_installed_verifies_the_backup_and_makes_nothing(
    backup: Path, passphrase: str, tmp_path: Path
) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in SERVER_VARIABLES}
    command = [sys.executable, "manage.py", "restore", str(backup), passphrase, "--dry-run"]

    done = subprocess.run(
        command,
        cwd=Path(__file__).parents[3],
        env=environ | {"MEMORY_DATA_DIR": str(tmp_path / "new")},
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "is complete. It would replace 0 rows by" in done.stdout
    assert not (tmp_path / "new").exists()


def test_data_that_is_there_is_not_replaced_unasked(backup: Path, passphrase: str) -> None:
    assert "--replace" in refusal("restore", str(backup), passphrase)
    assert Fact.objects.exists()


@pytest.mark.parametrize("name", [DATABASE, KEYS, LIVE])
def test_an_altered_file_is_refused(backup: Path, passphrase: str, name: str) -> None:
    with (backup / name).open("ab") as stream:
        stream.write(b"\n")

    assert "altered" in refusal("restore", str(backup), passphrase, "--replace")


def test_a_manifest_that_was_altered_is_refused(backup: Path, passphrase: str) -> None:
    text = (backup / MANIFEST).read_text()
    (backup / MANIFEST).write_text(text.replace('"accounts": 1', '"accounts": 2'))

    assert "altered" in refusal("restore", str(backup), passphrase, "--replace")


def test_an_incomplete_folder_is_refused(backup: Path, passphrase: str) -> None:
    (backup / LIVE).unlink()
    assert "missing" in refusal("restore", str(backup), passphrase)

    (backup / MANIFEST).unlink()
    assert "not a complete backup" in refusal("restore", str(backup), passphrase)


def test_another_passphrase_is_refused(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "passphrase").write_text("another passphrase")

    assert "passphrase" in refusal("restore", str(backup), f"--passphrase-file={tmp_path / 'passphrase'}", "--replace")


def test_no_passphrase_is_asked_for_where_there_are_no_keys(account: Account, tmp_path: Path) -> None:
    run("backup", str(tmp_path / "bare"), "--without-keys")

    assert refusal("restore", str(tmp_path / "none"), "--dry-run") == f"There is no folder {tmp_path / 'none'}."
    assert "The backup holds no keys" in refusal("restore", str(tmp_path / "bare"), "--dry-run")
    assert "is complete" in run("restore", str(tmp_path / "bare"), "--dry-run", "--without-keys")


def test_newer_formats_and_migrations_are_refused(backup: Path, passphrase: str) -> None:
    change_manifest(backup, migrations={"memory": ["9999_from_tomorrow"]})
    assert "memory.9999_from_tomorrow" in refusal("restore", str(backup), passphrase, "--replace")

    change_manifest(backup, format=2)
    assert "format 2" in refusal("restore", str(backup), passphrase, "--replace")


def test_other_keys_in_the_environment_are_refused(
    backup: Path, passphrase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_TOMBSTONE_KEY", "another key of tombstones")

    assert "MEMORY_TOMBSTONE_KEY" in refusal("restore", str(backup), passphrase, "--replace")


def test_a_folder_that_holds_something_is_not_written_to(account: Account, tmp_path: Path) -> None:
    (tmp_path / "something").touch()

    assert "not an empty folder" in refusal("backup", str(tmp_path), "--without-keys")


def test_nothing_is_backed_up_of_a_database_without_tables() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations")
        with pytest.raises(BackupError, match="the database has no tables"):
            require_tables()
        transaction.set_rollback(True)


def test_a_failing_dump_leaves_nothing(account: Account, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir(mode=0o700)

    assert "passphrase" in refusal("backup", str(tmp_path / "full" / "backup"))
    assert list((tmp_path / "full").iterdir()) == []


def test_keys_of_every_type_come_back_and_those_of_others_stay(account: Account, tmp_path: Path) -> None:
    prefix = f"account:{account.id}"
    client().set(f"{prefix}:value:a", "1", ex=1_000)
    client().hset(f"{prefix}:working_memory:{{c}}", mapping={"plan": "ü"})
    client().rpush(f"{prefix}:working:ana:web:{{c}}:thoughts", "first", "second")
    client().zadd(f"{prefix}:agent:{{a}}:::memory", {"x": 1.5, "y": 2})
    client().xadd("audit:reads", {"account": str(account.id), "entry": "{}"}, id="5-1")
    client().set("other", "stays")
    stored = everything_live()

    streams = read_streams()
    dump_live(tmp_path / LIVE, merge_streams(streams, streams))
    client().set(f"{prefix}:value:later", "2")
    replace_live(tmp_path / LIVE)

    assert everything_live() == stored
    assert 900 < int(str(client().ttl(f"{prefix}:value:a"))) <= 1_000


def everything_live() -> dict[str, Any]:
    """Return the serialized values by key."""
    return {str(key): repr(value_of(str(key))) for key in client().scan_iter()}


def value_of(key: str) -> Any:
    kind = str(client().type(key))
    readers: dict[str, Any] = {
        "string": client().get,
        "hash": client().hgetall,
        "list": lambda name: client().lrange(name, 0, -1),
        "zset": lambda name: client().zrange(name, 0, -1, withscores=True),
        "stream": client().xrange,
    }
    return readers[kind](key)


def test_ledgers_come_back_as_they_were_at_the_snapshot(account: Account, tmp_path: Path) -> None:
    restore_all_ledgers()
    conversation = ConversationRef(account_id=account.id, conversation_id="c")
    store.mark(conversation, "flushed", "1")
    flush_journal(100)
    store.mark(conversation, "waiting", "2")
    before = read_streams()
    flush_journal(100)
    rows = list(Injection.objects.values_list("id", flat=True))
    dump_live(tmp_path / LIVE, merge_streams(before, read_streams()))
    store.mark(conversation, "later", "3")
    flush_journal(100)

    # the database as it was, beside a newer Redis
    Injection.objects.exclude(id__in=rows[:1]).delete()
    replace_live(tmp_path / LIVE)
    restore_all_ledgers()

    assert store.get_all(conversation) == {"flushed": "1", "waiting": "2"}
    assert store.mark(conversation, "later").first


def test_own_keys_are_counted(account: Account) -> None:
    client().set("other", "1")
    client().set(f"account:{account.id}:value:a", "1")

    assert count_own_keys() == 1
