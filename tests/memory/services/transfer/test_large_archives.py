"""Large archives in flat memory, and processes that are killed while they export or import."""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.db import connection, transaction

from memory.models import Account, Memory
from memory.owner import Owner
from tests.memory.maintenance.workers import environment
from tests.memory.notes import jot
from tests.memory.transfers import count_rows, export_bytes
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

MANAGE = """
import os, resource, sys, django
from django.core.management import call_command
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
django.setup()
call_command(*sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
SLOW_IMPORT = MANAGE.replace(
    "call_command(",
    """
from time import sleep
from memory.services.transfer import load
keep_place = load.keep_place
load.keep_place = lambda *place: (keep_place(*place), sleep(1))
call_command(""",
)
FEW, MANY = 300, 30_000
MULTIPLY = """
INSERT INTO memories (id, account_id, kind, identity, agent_id, user_id, channel, conversation_id, text, language,
    content_hash, wording, token_count, salience, access_count, event_time, created_at, updated_at, archived,
    quarantined, has_secret, buried, pinned, source, trust, version, metadata, embed_attempts, embed_error)
SELECT gen_random_uuid(), account_id, kind, 'n' || n, agent_id, user_id, channel, conversation_id,
    repeat('word' || n || ' ', 60), language, content_hash, n, token_count, salience, 0, event_time, created_at,
    updated_at, false, false, false, false, false, source, trust, 1, '{}', 0, ''
FROM memories CROSS JOIN generate_series(1, %s) AS n WHERE account_id = %s AND kind = 'note'
"""


def manage(*arguments: str) -> int:
    """Run a command in a process of its own and return its peak of memory in KiB."""
    done = subprocess.run(
        [sys.executable, "-c", MANAGE, *arguments], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


def fill(account: Account, number: int) -> None:
    """Store notes."""
    jot(Owner(account_id=account.id, agent_id="assistant"), "A note.")
    with connection.cursor() as cursor:
        cursor.execute(MULTIPLY, [number, account.id])


def test_memory_stays_flat_however_large_the_archive_is(empty_redis: None, tmp_path: Path) -> None:
    peaks: dict[str, list[int]] = {"export": [], "import": []}
    for number in (FEW, MANY):
        account = Account.objects.create(name=f"of-{number}")
        fill(account, number)
        path = str(tmp_path / f"{number}.zip")
        peaks["export"].append(manage("export_archive", "--account", account.name, "--output", path))
        copy = ("--account", f"copy-{number}", "--create-account")
        peaks["import"].append(manage("import_archive", path, *copy))
        assert count_rows(Account.objects.get(name=f"copy-{number}").id)["memories"] == number + 1

    for few, many in peaks.values():
        assert many - few < 24_000, peaks


def run_and_kill(is_due: Callable[[], bool], *arguments: str, code: str = MANAGE) -> None:
    """Run a command until it has come as far as wanted, and kill it there."""
    environ = environment() | {"MEMORY_LOCK_TIMEOUT_SECONDS": "0"}
    with subprocess.Popen([sys.executable, "-c", code, *arguments], env=environ) as process:
        while not is_due():
            assert process.poll() is None, "It ended before it was to be killed."
            time.sleep(0.005)
        process.kill()


def has_memories(account: Account, number: int) -> bool:
    return Memory.objects.filter(account=account).count() >= number


def test_a_killed_import_goes_on_where_it_was(owner: Owner, empty_redis: None, tmp_path: Path) -> None:
    for number in range(40):
        say(owner, *[turn(f"message {each}") for each in range(100)], conversation_id=f"talk-{number}")
    path = tmp_path / "archive.zip"
    path.write_bytes(export_bytes(owner.account_id))
    copy = Account.objects.create(name="copy")
    command = ("import_archive", str(path), "--account", "copy")

    for number in (1, 1_000, 2_000, 3_000):
        run_and_kill(partial(has_memories, copy, number), *command, code=SLOW_IMPORT)
    manage(*command)

    assert count_rows(copy.id) == count_rows(owner.account_id) | {"memory_vectors": 0}


def test_a_killed_export_leaves_no_file(owner: Owner, empty_redis: None, tmp_path: Path) -> None:
    fill(Account.objects.get(id=owner.account_id), 20_000)
    path = tmp_path / "archive.zip"

    command = ("export_archive", "--account", "workshop", "--output", str(path))

    with transaction.atomic(), connection.cursor() as cursor:
        # of the last tables: it comes no further
        cursor.execute("LOCK TABLE turn_records IN ACCESS EXCLUSIVE MODE")
        run_and_kill(lambda: any(tmp_path.glob(".archive.zip.*")), *command)
    assert not path.exists()
    manage(*command)

    assert path.read_bytes() == export_bytes(owner.account_id)
