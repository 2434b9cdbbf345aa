"""Exports and imports that were requested: their rows, the parts of their archives, and the work on them."""

import base64
import hashlib
import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from io import RawIOBase
from time import monotonic
from typing import IO, Any, cast
from uuid import UUID

from django.db import DatabaseError, OperationalError, transaction
from django.db.models import QuerySet
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from memory import conf
from memory.audit import record_audit
from memory.errors import Conflict, MemoryServiceError, Unprocessable, require_found
from memory.models import JobRun, Transfer, TransferPart, UnstoredRow
from memory.owner import Owner
from memory.services.conversations.lifecycle import is_valid_id
from memory.services.custody.marks import refuse_erased_user
from memory.services.operations.jobs import request_run
from memory.services.transfer.archive import BadArchive
from memory.services.transfer.export import export_archive
from memory.services.transfer.load import load_archive, time_since
from memory.services.transfer.selection import TransferScope
from memory_project.encryption import SealBroken
from memory_project.postgresql.locks import try_advisory_lock

logger = logging.getLogger(__name__)

TRANSFER_JOB = "transfer"
PART_BYTES = 512 * 1024
MAX_UNFINISHED = 10
"""Exports and imports of an account that are queued or run."""
MAX_ERROR_CHARACTERS = 1_000
ZIP_BEGIN, ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
"""Signatures of a file's header, and of the end of the directory."""
MAX_ZIP_END_BYTES = 22 + 65_535
"""The end of the directory with the longest comment."""
UNEXPECTED = (
    *(DatabaseError, RedisError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    RecursionError,
)
"""Errors of values in an archive that passed its checks."""
Direction, Status = Transfer.Direction, Transfer.Status


class PartWriter(RawIOBase):
    """A stream that stores what is written to it as parts of an archive, each in a transaction of its own."""

    def __init__(self, transfer: Transfer) -> None:
        self._transfer, self._pending = transfer, bytearray()
        self.number, self.size_bytes, self.digest = 0, 0, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pending += data
        while len(self._pending) >= PART_BYTES:
            self._store(bytes(self._pending[:PART_BYTES]))
            del self._pending[:PART_BYTES]
        return len(data)

    def finish(self) -> None:
        """Store what is left."""
        if self._pending:
            self._store(bytes(self._pending))
            self._pending.clear()

    def restart(self) -> None:
        """Delete what is stored, for another attempt."""
        TransferPart.objects.filter(account_id=self._transfer.account_id, transfer_id=self._transfer.id).delete()
        self._pending.clear()
        self.number, self.size_bytes, self.digest = 0, 0, hashlib.sha256()

    def _store(self, data: bytes) -> None:
        self.digest.update(data)
        with transaction.atomic():
            lock_transfer(self._transfer)
            TransferPart.objects.create(
                account_id=self._transfer.account_id,
                transfer=self._transfer,
                number=self.number,
                data=base64.b64encode(data).decode(),
            )
        self.number, self.size_bytes = self.number + 1, self.size_bytes + len(data)


def lock_transfer(transfer: Transfer) -> None:
    """Lock the row of a transfer. Raises Conflict if it was deleted, as the erasure of a user does."""
    rows = Transfer.objects.filter(account_id=transfer.account_id, id=transfer.id)
    if not rows.select_for_update(no_key=True).values_list("id").first():
        raise Conflict("the archive was deleted while it was written")


def read_parts(transfer: Transfer) -> Iterator[bytes]:
    """Yield the parts of an archive, one query and at most PART_BYTES each."""
    parts = TransferPart.objects.filter(account_id=transfer.account_id, transfer_id=transfer.id)
    number = 0
    while part := parts.filter(number=number).first():
        yield base64.b64decode(part.data)
        number += 1


def request_export(owner: Owner, scope: TransferScope, *, include_vectors: bool = False, now: datetime) -> Transfer:
    """Queue an export of the account, or of an agent or a user of it.

    Raises Unprocessable for both, and Conflict for a user that was erased, or where MAX_UNFINISHED archives wait.
    """
    refuse_many_transfers(owner.account_id)
    if scope.agent_id and scope.user_id:
        raise Unprocessable("name an agent or a user, not both: an archive is of one of them, or of the account")
    if scope.name and not is_valid_id(scope.name):
        raise Unprocessable("an id has 1 to 100 characters, no NUL and no lone surrogate")
    refuse_erased_user(scope.account_id, scope.user_id)
    draft = Transfer(
        account_id=scope.account_id,
        direction=Direction.EXPORT,
        agent_id=scope.agent_id,
        user_id=scope.user_id,
        include_vectors=include_vectors,
    )
    with transaction.atomic():
        return queue_transfer(owner, draft, now=now)


def request_import(owner: Owner, chunks: Iterable[bytes], *, dry_run: bool = False, now: datetime) -> Transfer:
    """Keep an archive in parts and queue its import, in one transaction.

    Whether the archive can be imported shows when the import runs. Raises BadArchive for what is no complete zip by its
    first and last bytes, and Conflict where MAX_UNFINISHED archives wait.
    """
    refuse_many_transfers(owner.account_id)
    draft = Transfer(account_id=owner.account_id, direction=Direction.IMPORT, dry_run=dry_run)
    draft.requested_at, draft.requested_by = now, owner.actor
    with transaction.atomic():
        draft.save(force_insert=True)
        writer = PartWriter(draft)
        for chunk in zip_chunks(chunks):
            writer.write(chunk)
        writer.finish()
        draft.size_bytes, draft.digest = writer.size_bytes, writer.digest.hexdigest()
        draft.expires_at = now + archive_ttl()
        if not dry_run:
            take_over(draft)
        return queue_transfer(owner, draft, now=now)


def zip_chunks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a zip. Raises BadArchive if it does not begin with a file and end with its directory."""
    head = tail = b""
    for chunk in chunks:
        if len(head) < len(ZIP_BEGIN):
            head += chunk[: len(ZIP_BEGIN)]
        if not head.startswith(ZIP_BEGIN[: len(head)]):
            break
        tail = (tail + chunk)[-MAX_ZIP_END_BYTES:]
        yield chunk
    if not head.startswith(ZIP_BEGIN) or ZIP_END not in tail:
        raise BadArchive("the body is no complete zip: send the archive of an export, as it was downloaded")


def take_over(draft: Transfer) -> None:
    """Let an import go on where an import of the same archive failed after it had stored rows."""
    rows = Transfer.objects.in_account(draft.account_id).imports().resumable().filter(status=Status.FAILED)
    failed = rows.filter(digest=draft.digest, in_parts=True).order_by("-id").first()
    if failed is None:
        return
    for name in ("remaps", "position", "counts", "existing", "left_out"):
        setattr(draft, name, getattr(failed, name))
    UnstoredRow.objects.filter(account_id=draft.account_id, transfer_id=failed.id).update(transfer_id=draft.id)
    # its rows are the other one's now
    Transfer.objects.filter(account_id=draft.account_id, id=failed.id).update(position="")


def refuse_many_transfers(account_id: UUID) -> None:
    if Transfer.objects.in_account(account_id).unfinished().count() >= MAX_UNFINISHED:
        raise Conflict(f"{MAX_UNFINISHED} exports and imports of the account are not completed; wait for one of them")


def queue_transfer(owner: Owner, draft: Transfer, *, now: datetime) -> Transfer:
    draft.requested_by, draft.requested_at = owner.actor, now
    draft.save()
    actor = Owner(account_id=owner.account_id, actor=owner.actor)
    record_audit(actor, operation=draft.direction, memory_type="account", affected_ids=[draft.id])
    if not JobRun.objects.filter(account_id=owner.account_id, job=TRANSFER_JOB).queued().exists():
        request_run(actor, job=TRANSFER_JOB)
    return draft


def find_transfer(rows: QuerySet[Transfer], direction: str, transfer_id: UUID) -> Transfer:
    """Return an export or import among rows of an account. Raises NotFound."""
    return require_found(rows.filter(direction=direction, id=transfer_id).first(), direction)


def find_newest_export(scope: TransferScope, *, include_vectors: bool, now: datetime) -> Transfer:
    """Return the newest complete archive of a scope. Raises NotFound."""
    rows = Transfer.objects.in_account(scope.account_id).exports().filter(status=Status.COMPLETED, expires_at__gt=now)
    rows = rows.filter(agent_id=scope.agent_id, user_id=scope.user_id, include_vectors=include_vectors)
    return require_found(rows.order_by("-id").first(), "archive: ask for one with POST /exports")


def archive_ttl() -> timedelta:
    return timedelta(hours=conf.ARCHIVE_HOURS)


def run_transfer(transfer: Transfer, *, now: datetime, renew: Callable[[], None]) -> Transfer:
    """Do an export or import to its end, and return its row. `renew` is called at least after every 500 rows.

    What it cannot do fails it, with a sentence in `error`. The caller has its lock. Raises OperationalError, the errors
    of a Redis that does not answer: it goes on later.
    """
    began = monotonic()
    transfer.status, transfer.started_at = Status.RUNNING, transfer.started_at or now
    transfer.save(update_fields=["status", "started_at"])
    try:
        run = run_export if transfer.direction == Direction.EXPORT else run_import
        run(transfer, now=now, renew=renew)
    except (OperationalError, RedisConnectionError, RedisTimeoutError):
        raise
    except (MemoryServiceError, SealBroken, *UNEXPECTED) as err:
        # whatever an archive contains must not stop the transfers of others
        error = "it holds what cannot be stored" if isinstance(err, UNEXPECTED) else str(err)
        logger.warning("%s %s failed: %s", transfer.direction, transfer.id, type(err).__name__)
        ended = time_since(now, began)
        columns = {"status": Status.FAILED, "error": error[:MAX_ERROR_CHARACTERS], "completed_at": ended}
        rows = Transfer.objects.filter(account_id=transfer.account_id, id=transfer.id)
        rows.update(**columns, expires_at=ended + archive_ttl())
        TransferPart.objects.filter(account_id=transfer.account_id, transfer_id=transfer.id).delete()
        transfer.status, transfer.error = Status.FAILED, error[:MAX_ERROR_CHARACTERS]
    return transfer


def lock_id(transfer_id: UUID) -> int:
    """Return the key of the advisory lock of a transfer."""
    return int.from_bytes(transfer_id.bytes[8:], "big", signed=True)


def transfer_lock(transfer_id: UUID) -> AbstractContextManager[bool]:
    """Lock a transfer until the end of the block; False if another worker or command has it."""
    return try_advisory_lock(lock_id(transfer_id))


def run_export(transfer: Transfer, *, now: datetime, renew: Callable[[], None]) -> None:
    """Write the archive into parts. Parts of an attempt that was killed go first."""
    began = monotonic()
    writer = PartWriter(transfer)
    writer.restart()

    def report(counts: dict[str, int]) -> None:
        renew()
        rows = Transfer.objects.filter(account_id=transfer.account_id, id=transfer.id)
        rows.update(counts={name or "current": number for name, number in counts.items()})

    scope = TransferScope(account_id=transfer.account_id, agent_id=transfer.agent_id, user_id=transfer.user_id)
    counts = export_archive(
        scope,
        cast("IO[bytes]", writer),
        include_vectors=transfer.include_vectors,
        include_traces=False,
        restart=writer.restart,
        report=report,
    )
    writer.finish()
    ended = time_since(now, began)
    with transaction.atomic():
        lock_transfer(transfer)
        transfer.status, transfer.completed_at, transfer.expires_at = Status.COMPLETED, ended, ended + archive_ttl()
        transfer.size_bytes, transfer.digest, transfer.counts = writer.size_bytes, writer.digest.hexdigest(), counts
        transfer.save()


def run_import(transfer: Transfer, *, now: datetime, renew: Callable[[], None]) -> None:
    """Import the archive in the parts, and delete these."""
    with spooled_archive(transfer, renew) as source:
        load_archive(transfer, source, now=now, report=lambda _counts: renew())
    TransferPart.objects.filter(account_id=transfer.account_id, transfer_id=transfer.id).delete()


@contextmanager
def spooled_archive(transfer: Transfer, renew: Callable[[], None]) -> Iterator[IO[bytes]]:
    """Yield the archive as a file, which can be read at any place."""
    with tempfile.TemporaryFile() as spool:
        for part in read_parts(transfer):
            spool.write(part)
            renew()
        spool.seek(0)
        yield spool


def delete_archives(account_id: UUID) -> int:
    """Delete all exports and imports of the account with their archives; return how many. Running ones end."""
    ids = list(Transfer.objects.in_account(account_id).values_list("id", flat=True))
    rows: Any = Transfer.objects.filter(account_id=account_id, id__in=ids)
    # the database deletes their parts
    return int(rows._raw_delete(rows.db) or 0)
