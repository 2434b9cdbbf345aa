"""Restoring a backup: everything is verified first, then PostgreSQL, keys and Redis are replaced and migrated."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader

from ledger.journal import restore_all_ledgers
from memory.models.statements import execute_statement
from memory.services.backup.create import MEGABYTE, Report
from memory.services.backup.database import (
    count_other_connections,
    count_rows,
    list_tables,
    restore_database,
    server_major,
)
from memory.services.backup.keys import (
    check_environment,
    check_folder,
    fingerprint_keys,
    open_keys,
    present_keys,
    store_keys,
)
from memory.services.backup.live import count_own_keys, replace_live
from memory.services.backup.manifest import DATABASE, KEYS, LIVE, BackupError, Manifest, read_manifest
from memory_project.embedded.locks import FileLock
from memory_project.embedded.postgres import MAJOR_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """A verified backup, and what it would replace. `keys` is None where the keys stay as they are."""

    folder: Path
    manifest: Manifest
    keys: dict[str, str] | None
    replaced_rows: dict[str, int]
    replaced_keys: int

    def replaces(self) -> bool:
        """Return whether there is anything that a restore would replace."""
        return bool(self.replaced_rows) or self.replaced_keys > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Counts of what was restored. `lacks_keys` where no present key opens what the backup's keys encrypted."""

    rows: int
    live_keys: int
    ledgers: int
    lacks_keys: bool


def check_keys_of_backup(folder: Path, *, is_asked: bool) -> None:
    """Check that there is a backup and, `is_asked` for keys, that it holds some. Raises BackupError."""
    if not folder.is_dir():
        raise BackupError(f"There is no folder {folder}.")
    if is_asked and KEYS not in read_manifest(folder).files:
        raise BackupError("The backup holds no keys: give --without-keys, and put the keys here by yourself.")


def plan_restore(folder: Path, *, passphrase: str | None) -> RestorePlan:
    """Verify a backup, and look at what is here. Changes nothing; raises BackupError.

    Without a passphrase, the keys stay as they are.
    """
    manifest = read_manifest(folder)
    check_versions(manifest, server_major())
    keys = read_keys(folder, passphrase)
    if keys is not None:
        check_folder()
    rows = count_rows() if list_tables() else {}
    return RestorePlan(folder=folder, manifest=manifest, keys=keys, replaced_rows=rows, replaced_keys=count_own_keys())


def plan_first_restore(folder: Path, *, passphrase: str | None) -> RestorePlan:
    """Verify a backup as `plan_restore` does, where nothing is installed. Asks no server; raises BackupError."""
    manifest = read_manifest(folder)
    check_versions(manifest, int(MAJOR_VERSION))
    keys = read_keys(folder, passphrase)
    return RestorePlan(folder=folder, manifest=manifest, keys=keys, replaced_rows={}, replaced_keys=0)


def read_keys(folder: Path, passphrase: str | None) -> dict[str, str] | None:
    """Return the keys of a backup; None without a passphrase.

    Raises BackupError for one that does not open them, and where the environment gives other keys.
    """
    if passphrase is None:
        return None
    check_keys_of_backup(folder, is_asked=True)
    keys = open_keys((folder / KEYS).read_text(), passphrase)
    check_environment(keys)
    return keys


def check_versions(manifest: Manifest, server: int) -> None:
    """Check that this version and a server of that major version can hold what the backup has. Raises BackupError."""
    known = set(MigrationLoader(None).disk_migrations)
    applied = {(app, name) for app, names in manifest.migrations.items() for name in names}
    if newer := sorted(applied - known):
        raise BackupError(
            f"The backup was made by version {manifest.version}, which has migrations that this one "
            f"({settings.VERSION}) lacks, such as {newer[0][0]}.{newer[0][1]}: install that version first."
        )
    if manifest.postgresql > server:
        raise BackupError(
            f"The backup is of PostgreSQL {manifest.postgresql}, and this server is {server}: use version "
            f"{manifest.postgresql} or newer."
        )


def restore_backup(plan: RestorePlan, *, replaces: bool, report: Report) -> Restored:
    """Restore a backup: PostgreSQL in one transaction, then the keys and Redis, migrations, and ledgers.

    Raises BackupError where something would be replaced and may not be, and while the service runs. Interrupted after
    PostgreSQL was restored, it has to be repeated.
    """
    if plan.replaces() and not replaces:
        raise BackupError(
            f"There is data already: {len(plan.replaced_rows)} tables with {sum(plan.replaced_rows.values())} rows, "
            f"and {plan.replaced_keys} keys in Redis. Give --replace to delete it (--dry-run says what)."
        )
    with stopped_service():
        total = plan.manifest.files[DATABASE].size_bytes // MEGABYTE
        report(f"PostgreSQL: restoring {total} MB")
        restore_database(
            plan.folder / DATABASE,
            replaces=replaces,
            progress=lambda done: report(f"PostgreSQL: {done // MEGABYTE} of {total} MB restored"),
        )
        if plan.keys is not None:
            store_keys(plan.keys)
        report("Redis: restoring the installation's keys")
        live_keys = replace_live(plan.folder / LIVE)
        report("PostgreSQL: migrating")
        call_command("migrate", interactive=False, verbosity=0)
        execute_statement("ANALYZE")
        report("Redis: rebuilding the ledgers")
        ledgers = restore_all_ledgers().changed
    return Restored(
        rows=sum(plan.manifest.rows.values()), live_keys=live_keys, ledgers=ledgers, lacks_keys=lacks_keys(plan)
    )


@contextmanager
def stopped_service() -> Iterator[None]:
    """Keep the service from starting within the block. Raises BackupError if it runs."""
    with FileLock(settings.DATA_DIR / "up.lock") as lock:
        if not lock.try_exclusive():
            raise BackupError(f"The service runs on {settings.DATA_DIR}: stop it first.")
        if others := count_other_connections():
            raise BackupError(
                f"{others} other connections use the database: stop web server, worker and beat first, on all machines."
            )
        yield


def lacks_keys(plan: RestorePlan) -> bool:
    """Return whether no present key is one of those that the backup's data needs."""
    present = plan.keys or present_keys()
    return set(plan.manifest.encryption_keys).isdisjoint(fingerprint_keys(present))
