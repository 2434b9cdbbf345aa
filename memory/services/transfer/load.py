"""Importing an archive: rows in batches of one transaction each, with the place in the transfer's row.

Killed anywhere and run again, an import goes on where it was and stores nothing twice.
"""

import hashlib
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from time import monotonic
from typing import IO, Any
from uuid import UUID

from django.db import DatabaseError, OperationalError, transaction

from memory.audit import record_audit
from memory.errors import Conflict, Unprocessable
from memory.models import Account, Transfer, UnstoredRow
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.custody.marks import has_erased_user
from memory.services.transfer.archive import Archive, open_archive, read_manifest_bytes
from memory.services.transfer.export import Report
from memory.services.transfer.ledgers import (
    LEDGERS,
    find_lead,
    is_ledger,
    mark_unnamed,
    moved_back,
    update_ledgers,
    with_free_stream_ids,
)
from memory.services.transfer.ledgers import TABLE as INJECTIONS
from memory.services.transfer.redis_lines import REDIS_FILE, write_key
from memory.services.transfer.remap import Remap
from memory.services.transfer.rules import ExportedTable
from memory.services.transfer.store import (
    Row,
    count_added_turns,
    note_unstored,
    read_known,
    set_late_references,
    store_rows,
)
from memory_project.batches import batched
from memory_project.postgresql.constraints import broken_constraint

BATCH_ROWS = 500
BATCH_BYTES = 16 * 1024**2
CHECKED_IDS = 5_000
CHECKED_USERS = 1_000
LATE = "late"
Status = Transfer.Status

FIND_FOREIGN = "SELECT 1 FROM {table} WHERE account_id = ANY(%s::uuid[]) AND id = ANY(%s::uuid[]) LIMIT 1"


@dataclass(slots=True)
class LoadStep:
    """A file to store, or one whose late references are to be set."""

    name: str
    file: str
    table: ExportedTable | None


@dataclass(slots=True)
class Load:
    """An import that is going on."""

    transfer: Transfer
    archive: Archive
    remap: Remap | None
    now: datetime
    counts: Counter[str] = field(default_factory=Counter)
    existing: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def account_id(self) -> UUID:
        return self.transfer.account_id


def refuse_erased(account_id: UUID, user_ids: list[str]) -> None:
    if user_ids and has_erased_user(account_id, user_ids):
        raise Conflict("rows of the archive belong to a user that was erased from the account: nothing may name it")


def check_archive(source: IO[bytes], *, now: datetime) -> dict[str, int]:
    """Check the archive in `source` as an import does, and return the number of rows by table. Raises BadArchive."""
    with open_archive(source, now=now) as archive:
        return archive.counts


def load_archive(
    transfer: Transfer, source: IO[bytes], *, now: datetime, report: Report = lambda _counts: None
) -> Transfer:
    """Import the archive in `source`, a seekable stream, for a transfer, and return its row.

    Nothing is stored before the archive was checked as a whole. `report` is called after each batch with the counts.
    Raises BadArchive, Conflict for users that were erased, Unprocessable for rows that the database refuses.
    """
    began = monotonic()
    with open_archive(source, now=now, advance=lambda: report({})) as archive:
        for page in batched(sorted(archive.user_ids), CHECKED_USERS):
            refuse_erased(transfer.account_id, page)
        if transfer.dry_run:
            transfer.counts = archive.counts
            return finish(transfer, now=time_since(now, began))
        if transfer.remaps is None:
            transfer.remaps = uses_foreign_ids(transfer.account_id, archive)
            transfer.save(update_fields=["remaps"])
        load = Load(
            transfer=transfer,
            archive=archive,
            remap=Remap(transfer.account_id, archive.has_id) if transfer.remaps else None,
            now=now,
            counts=Counter(transfer.counts),
            existing=Counter(transfer.existing),
            left_out=Counter(transfer.left_out),
        )
        for step in steps_from(load):
            for _ in batches_of(load, step):
                report(dict(load.counts))
    return finish(transfer, now=time_since(now, began))


def time_since(now: datetime, began: float) -> datetime:
    """Return the time by now, where the clock said `now` when the monotonic one said `began`."""
    return now + timedelta(seconds=monotonic() - began)


def finish(transfer: Transfer, *, now: datetime) -> Transfer:
    with transaction.atomic():
        UnstoredRow.objects.filter(account_id=transfer.account_id, transfer_id=transfer.id).delete()
        transfer.status, transfer.completed_at, transfer.position = Status.COMPLETED, now, ""
        transfer.save(update_fields=["status", "completed_at", "position", "counts", "existing", "left_out"])
    return transfer


def uses_foreign_ids(account_id: UUID, archive: Archive) -> bool:
    """Return True if another account of the installation has a row with an id of the archive."""
    others = list(Account.objects.exclude(id=account_id).values_list("id", flat=True))
    for table in archive.tables if others else ():
        for ids in archive.ids[table.name].pages(CHECKED_IDS):
            if fetch_rows(FIND_FOREIGN.format(table=table.name), [others, ids]):
                return True
    return False


def all_steps(archive: Archive) -> list[LoadStep]:
    """Return the steps of an import in order."""
    steps = [LoadStep(table.name, table.file, table) for table in archive.tables]
    steps += [LoadStep(f"{LATE} {table.name}", table.file, table) for table in archive.tables if table.late_references]
    if REDIS_FILE in archive.manifest["files"]:
        steps.append(LoadStep("redis", REDIS_FILE, None))
    steps += [LoadStep(LEDGERS, table.file, table) for table in archive.tables if table.name == INJECTIONS]
    return steps


def steps_from(load: Load) -> Iterator[LoadStep]:
    """Yield the steps from that on in which the import is."""
    steps = all_steps(load.archive)
    current = load.transfer.position.partition(":")[0]
    names = [step.name for step in steps]
    yield from steps[names.index(current) if current in names else 0 :]


def batches_of(load: Load, step: LoadStep) -> Iterator[None]:
    """Do the batches of a step, from where the import is."""
    name, _, done = load.transfer.position.partition(":")
    place = int(done or 0) if name == step.name else 0
    for rows in split_batches(islice(load.archive.sized_rows(step.file), place, None)):
        place += len(rows)
        if load.remap is not None:
            rows = [remapped(load.remap, step, row) for row in rows]
        with transaction.atomic():
            do_batch(load, step, rows)
            keep_place(load, f"{step.name}:{place}")
        yield


def split_batches(lines: Iterator[tuple[int, Row]]) -> Iterator[list[Row]]:
    """Yield up to BATCH_ROWS rows, and not more than BATCH_BYTES of lines unless one row is larger."""
    rows: list[Row] = []
    size = 0
    for length, row in lines:
        if rows and (len(rows) == BATCH_ROWS or size + length > BATCH_BYTES):
            yield rows
            rows, size = [], 0
        rows.append(row)
        size += length
    if rows:
        yield rows


def remapped(remap: Remap, step: LoadStep, row: Row) -> Row:
    if step.table is not None:
        return remap.row(step.table, row)
    return {name: remap_deep(remap, value) for name, value in row.items()}


def remap_deep(remap: Remap, value: Any) -> Any:
    """Return a value of Redis with new ids wherever they stand: such values are the service's own texts."""
    if isinstance(value, str):
        return remap.text(value)
    return [remap_deep(remap, each) for each in value] if isinstance(value, list) else value


def do_batch(load: Load, step: LoadStep, rows: list[Row]) -> None:
    if step.table is None:
        store_keys(load, rows)
        return
    if step.name == LEDGERS:
        update_ledgers(load.account_id, load.transfer.id, rows)
        return
    if step.name == INJECTIONS:
        # the same whenever an interrupted import goes on
        lead = find_lead(load.archive.latest_change, requested_at=load.transfer.requested_at)
        rows = with_free_stream_ids(load.account_id, moved_back(rows, lead) if lead else rows)
    known = read_known(load.account_id, load.transfer.id, step.table, rows)
    try:
        if step.name.startswith(LATE):
            set_late_references(load.account_id, step.table, rows, known)
            return
        if step.table.is_of_users:
            refuse_erased(load.account_id, sorted({row["user_id"] for row in rows} - {""}))
        outcome = store_rows(load.account_id, step.table, rows, known)
    except OperationalError:
        # a deadlock or a lost connection: the batch is repeated
        raise
    except DatabaseError as err:
        refused = broken_constraint(err) or type(err).__name__
        raise Unprocessable(f"the database refuses rows of {step.file}: {refused}") from err
    note_unstored(load.account_id, load.transfer.id, outcome.unstored)
    load.counts[step.name] += len(outcome.stored)
    known_here = sum(existing is not None for existing in outcome.unstored.values())
    load.existing[step.name] += known_here
    load.left_out[step.name] += len(outcome.unstored) - known_here
    if step.table.name == "memories" and outcome.stored:
        count_added_turns(load.account_id, outcome.stored)


def store_keys(load: Load, lines: list[Row]) -> None:
    """Store keys of Redis. Ledgers are made from rows, and not counted."""
    now_ms = int(load.now.timestamp() * 1_000)
    mark_unnamed(load.account_id, [line for line in lines if is_ledger(line["key"])])
    others = [line for line in lines if not is_ledger(line["key"])]
    written = sum(write_key(load.account_id, line, now_ms=now_ms) for line in others)
    load.counts["redis"] += written
    load.existing["redis"] += len(others) - written


def keep_place(load: Load, position: str) -> None:
    """Keep the place and the counts in the batch's transaction. Raises Conflict if the transfer was deleted."""
    transfer = load.transfer
    columns: dict[str, Any] = {"position": position, "counts": dict(load.counts), "existing": dict(load.existing)}
    columns["left_out"] = dict(+load.left_out)
    for name, value in columns.items():
        setattr(transfer, name, value)
    rows = Transfer.objects.filter(account_id=transfer.account_id, id=transfer.id)
    if not rows.update(**columns):
        raise Conflict("the import was deleted while it was running")


def begin_file_import(account: Account, source: IO[bytes], *, dry_run: bool, now: datetime) -> Transfer:
    """Return the import of this file that was interrupted or failed, or a new one. Its manifest identifies it."""
    try:
        with zipfile.ZipFile(source) as archive:
            digest = hashlib.sha256(read_manifest_bytes(archive)).hexdigest()
    except (zipfile.BadZipFile, KeyError, OSError, EOFError):
        digest = ""
    values: dict[str, Any] = {"direction": Transfer.Direction.IMPORT, "in_parts": False, "dry_run": dry_run}
    rows = Transfer.objects.in_account(account.id).resumable().filter(digest=digest, **values)
    if digest and not dry_run and (left := rows.order_by("-id").first()):
        return resume(left)
    transfer = Transfer.objects.create(
        account=account, digest=digest, status=Status.RUNNING, requested_by="command", requested_at=now,
        started_at=now, **values
    )  # fmt: skip
    if not dry_run:
        actor = Owner(account_id=account.id, actor="command")
        record_audit(actor, operation="import", memory_type="account", affected_ids=[transfer.id])
    return transfer


def resume(transfer: Transfer) -> Transfer:
    """Return an import that goes on where it was interrupted, or where it failed."""
    transfer.status, transfer.error, transfer.completed_at, transfer.expires_at = Status.RUNNING, "", None, None
    transfer.save(update_fields=["status", "error", "completed_at", "expires_at"])
    return transfer


def fail_import(transfer: Transfer, error: str, *, now: datetime) -> None:
    """End an import that cannot go on."""
    rows = Transfer.objects.filter(account_id=transfer.account_id, id=transfer.id)
    rows.update(status=Status.FAILED, error=error[:1_000], completed_at=now)
