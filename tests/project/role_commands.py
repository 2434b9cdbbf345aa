"""Runs all jobs and the commands that change rows, as the role in DATABASE_URL. A folder is the argument.

`tests/project/test_role_commands.py` runs it.
"""

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import django


def main(folder: Path) -> None:
    """Write the name of what was run, each on a line."""
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415 (Django is set up above)
    from django.db import connection  # noqa: PLC0415
    from django.utils import timezone  # noqa: PLC0415

    from memory.maintenance import JOBS  # noqa: PLC0415
    from memory.maintenance.runner import run_at_once  # noqa: PLC0415
    from memory.models import Account, Erasure, JobRun, ServingModelState  # noqa: PLC0415
    from memory.owner import Owner  # noqa: PLC0415
    from tests.memory.facts import know  # noqa: PLC0415

    def run(command: str, *arguments: str) -> None:
        call_command(command, *arguments)
        sys.stdout.write(f"ran {command}\n")

    run("migrate", "--no-input", "--verbosity=0")
    account = Account.objects.create(name="workshop")
    for user in ("ana", "ben"):
        know(Owner(account_id=account.id, agent_id="assistant", user_id=user), f"{user} likes figs.")
    for name, job in JOBS.items():
        done = run_at_once(job, JobRun(job=name), clock=timezone.now)
        assert done.status == JobRun.Status.COMPLETED, (name, done.error)
        sys.stdout.write(f"ran job {name}\n")
    run("vector_index", "--method", "hnsw")
    run("vector_index", "--drop")
    rotate_keys(account, run)
    Erasure.objects.filter(account=account).unfinished().delete()
    run("reembed", "--provider", "tiny", "--width", "16")
    # vectors are dropped once no process can serve the former model any more
    ServingModelState.objects.update(switched_at=timezone.now() - timedelta(hours=1))
    run("reembed", "--finish")
    run("erase_subject", "--account", "workshop", "--user", "ben")
    archive = str(folder / "workshop.zip")
    run("export_archive", "--account", "workshop", "--output", archive)
    run("import_archive", archive, "--account", "copy", "--create-account")
    passphrase = folder / "passphrase"
    passphrase.write_text("a long passphrase of this test")
    run("backup", str(folder / "backup"), "--passphrase-file", str(passphrase))
    # a restored installation is one that nothing else uses, as between two processes
    database: Any = connection
    database.close()
    database.close_pool()
    run("restore", str(folder / "backup"), "--passphrase-file", str(passphrase), "--replace")
    run("preview_retention", "--account", "workshop")
    run("memory_stats")
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, count(*) FROM memories WHERE kind = 'fact' GROUP BY 1")
        sys.stdout.write(f"facts {cursor.fetchall()}\n")


def rotate_keys(account: Any, run: Callable[..., None]) -> None:
    """Rotate the keys of a row in every sealed table, and look whether any is under the former key still."""
    from cryptography.fernet import Fernet  # noqa: PLC0415
    from django.conf import settings  # noqa: PLC0415

    keys, former = settings.ENCRYPTION_KEYS, Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [former, *keys]
    store_sealed_rows(account)
    settings.ENCRYPTION_KEYS = [*keys, former]
    run("rotate_encryption_keys", "--json")
    settings.ENCRYPTION_KEYS = keys
    run("rotate_encryption_keys", "--json", "--dry-run")


def store_sealed_rows(account: Any) -> None:
    """Store a row in every table with encrypted columns."""
    from django.utils import timezone  # noqa: PLC0415

    from memory.models import Erasure, ReasoningTrace, Transfer, TransferPart  # noqa: PLC0415
    from memory.owner import Owner  # noqa: PLC0415
    from memory.services.operations.canary import check_keys  # noqa: PLC0415
    from tests.memory.procedures import invoke  # noqa: PLC0415
    from tests.memory.records import add_record  # noqa: PLC0415

    check_keys()
    owner, now = Owner(account_id=account.id, agent_id="assistant"), timezone.now()
    invoke(owner, tool_input="in", tool_output={"out": 1}, error_message="wrong")
    Erasure.objects.create(account=account, scope="filter", selection={"a": 1}, requested_at=now)
    ReasoningTrace.objects.create(account=account, record_id=add_record(owner).record.id, trace="thought")
    transfer = Transfer.objects.create(account=account, direction="export", status="completed", requested_at=now)
    TransferPart.objects.create(account=account, transfer=transfer, number=0, data="cGFydA==")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
    main(Path(sys.argv[1]))
