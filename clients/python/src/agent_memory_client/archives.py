"""Archives as files: what both clients share to write, read and wait for them. Memory stays flat."""

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from agent_memory_client import models
from agent_memory_client.calls import Call, Id
from agent_memory_client.errors import AgentMemoryError, ServiceTimeoutError, TransferFailedError
from agent_memory_client.results import Result
from agent_memory_client.table import OPERATIONS

PART_BYTES = 256 * 1024
DEFAULT_WAIT_SECONDS = 3600.0
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 5.0

ArchivePath = str | os.PathLike[str]


class ArchiveFile:
    """A file that takes the place of another one only when all of it is written."""

    def __init__(self, path: ArchivePath) -> None:
        self._path = Path(path)
        self._part = self._path.with_name(f"{self._path.name}.part")
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        self._file: IO[bytes] = self._part.open("wb")
        return self

    def write(self, data: bytes) -> None:
        """Append to the file."""
        self._file.write(data)
        self._digest.update(data)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if error is None:
            self._part.replace(self._path)
        else:
            self._part.unlink(missing_ok=True)

    @property
    def digest(self) -> str:
        """The SHA-256 of what was written."""
        return self._digest.hexdigest()


class Waiting:
    """The pauses between two looks at an export or an import."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._pause = FIRST_PAUSE_SECONDS

    def pause_after(self, transfer: Result) -> float | None:
        """Return the seconds to wait for a transfer, or None if it is completed.

        Raises TransferFailedError, or ServiceTimeoutError if it takes too long.
        """
        if transfer["status"] == "completed":
            return None
        if transfer["status"] == "failed":
            raise TransferFailedError(transfer)
        if time.monotonic() >= self._until:
            raise ServiceTimeoutError(f"{transfer['id']} is {transfer['status']} after {self._seconds:g} seconds.")
        pause, self._pause = self._pause, min(1.5 * self._pause, MAX_PAUSE_SECONDS)
        return pause


def read_parts(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in parts."""
    with path.open("rb") as file:
        while part := file.read(PART_BYTES):
            yield part


def check_digest(digest: str, export: models.ExportAnswer) -> None:
    """Raise AgentMemoryError if an archive is not the one that the service made."""
    if digest != export.digest:
        raise AgentMemoryError(f"The archive of export {export.id} was altered on the way: its SHA-256 is {digest}.")


def create_export(*, agent_id: str, user_id: str, include_vectors: bool) -> Call[models.ExportAnswer]:
    """Return the call that asks for an export of the account, or of an agent or a user where one is named."""
    scope = {name: value for name, value in (("agent_id", agent_id), ("user_id", user_id)) if value}
    fields = {**scope, "include_vectors": include_vectors}
    return Call(operation=OPERATIONS["create_export"], ids=(), fields=fields, answer=models.ExportAnswer)


def create_import(path: ArchivePath, /, *, dry_run: bool = False) -> Call[models.ImportAnswer]:
    """Import an archive from a file. A job does the work: `import_archive` waits for it."""
    return Call(
        operation=OPERATIONS["create_import"],
        ids=(),
        fields={"dry_run": dry_run},
        answer=models.ImportAnswer,
        archive=Path(path),
    )


def download_export(export_id: Id, /) -> Call[Any]:
    """Return the call whose answer is the archive of an export."""
    return Call(operation=OPERATIONS["download_export"], ids=(export_id,), fields={}, answer=None)


def download_newest_export(**scope: Any) -> Call[Any]:
    """Return the call whose answer is the newest archive of the account, or of an agent or a user."""
    return Call(operation=OPERATIONS["download_newest_export"], ids=(), fields=scope, answer=None)
