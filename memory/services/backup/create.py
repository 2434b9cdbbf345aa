"""Making a backup: one snapshot of PostgreSQL, the streams around it, the keys; renamed when it is complete."""

import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from memory.services.backup.database import count_rows, dump_database, exported_snapshot
from memory.services.backup.keys import fingerprint_keys, present_keys, seal_keys
from memory.services.backup.live import dump_live, merge_streams, read_streams
from memory.services.backup.manifest import (
    DATABASE,
    KEYS,
    LIVE,
    BackupError,
    Manifest,
    digest_of_file,
    write_manifest,
)

MEGABYTE = 1_000_000

Report = Callable[[str], None]
"""Takes a line about the progress, for people."""


def create_backup(target: Path, *, passphrase: str | None, now: datetime, report: Report) -> Manifest:
    """Write a backup to `target`, which is absent or empty, and return its manifest.

    Without a passphrase, the backup has no keys. Raises BackupError.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} exists and is not an empty folder: name another one.")
    keys = present_keys()
    sealed = None if passphrase is None else seal_keys(keys, passphrase)
    with unfinished_folder(target) as folder:
        if sealed is not None:
            (folder / KEYS).write_text(sealed)
        before = read_streams()
        with exported_snapshot() as snapshot:
            streams = merge_streams(before, read_streams())
            report("Redis: reading the installation's keys")
            live_keys = dump_live(folder / LIVE, streams)
            report("PostgreSQL: dumping")
            dump_database(
                snapshot, folder / DATABASE, lambda size: report(f"PostgreSQL: {size // MEGABYTE} MB written")
            )
            report("PostgreSQL: counting rows")
            rows, migrations = count_rows(), applied_migrations()
        names = [DATABASE, LIVE, *([KEYS] if sealed else [])]
        manifest = Manifest(
            created_at=now.isoformat(),
            version=settings.VERSION,
            postgresql=snapshot.server,
            migrations=migrations,
            rows=rows,
            live_keys=live_keys,
            encryption_keys=fingerprint_keys(keys),
            files={name: digest_of_file(folder / name) for name in names},
        )
        write_manifest(folder, manifest)
        sync_files(folder)
        folder.replace(target)
    sync_path(target.parent)
    return manifest


def require_tables() -> None:
    """Raise BackupError for a database to which no migration was applied: a backup of it would hold nothing."""
    if not applied_migrations():
        raise BackupError("There is nothing to back up: the database has no tables. Check DATABASE_URL.")


@contextmanager
def unfinished_folder(target: Path) -> Iterator[Path]:
    """Yield a private folder next to the target, which is removed unless it was renamed."""
    folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name}.unfinished-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def applied_migrations() -> dict[str, list[str]]:
    """Return the names of the applied migrations by app."""
    applied: dict[str, list[str]] = defaultdict(list)
    for app, name in sorted(MigrationRecorder(connection).applied_migrations()):
        applied[app].append(name)
    return dict(applied)


def sync_files(folder: Path) -> None:
    """Write files to the disk, readable for their owner only, before the rename says that they are complete."""
    for path in folder.iterdir():
        path.chmod(0o600)
        sync_path(path)
    sync_path(folder)


def sync_path(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
