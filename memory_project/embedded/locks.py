"""Advisory locks on files: the kernel drops them with the process, so a killed holder leaves none behind."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from memory_project.embedded.errors import LockHeldError

POLL_SECONDS = 0.02


class FileLock:
    """One open lock file. A child that inherits its descriptor holds the lock too, as long as it lives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _give_to_owner_of_folder(self.descriptor, path.parent)

    def try_shared(self) -> bool:
        """Acquire the lock as one of several readers, or turn an exclusive lock into a shared one."""
        return self._try(fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Acquire the lock alone. If this fails on a lock held as shared, the shared one may be lost."""
        return self._try(fcntl.LOCK_EX)

    def wait_shared(self, *, seconds: float) -> None:
        """Wait for the shared lock. Raises LockHeldError after `seconds`."""
        self._wait(fcntl.LOCK_SH, seconds)

    def wait_exclusive(self, *, seconds: float) -> None:
        """Wait for the exclusive lock. Raises LockHeldError after `seconds`."""
        self._wait(fcntl.LOCK_EX, seconds)

    def close(self) -> None:
        """Release the lock. A child that inherited the descriptor keeps it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> "FileLock":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _try(self, operation: int) -> bool:
        try:
            fcntl.flock(self.descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait(self, operation: int, seconds: float) -> None:
        if not wait_until(lambda: self._try(operation), seconds=seconds):
            raise LockHeldError(f"{self.path} has been locked by another process for {seconds:.0f} seconds.")


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until the condition holds; return False if it does not within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def is_locked(path: Path) -> bool:
    """Return whether another process holds `path` exclusively. Probes with a shared lock, so probes never collide."""
    if not path.exists():
        return False
    with FileLock(path) as lock:
        return not lock.try_shared()


def _give_to_owner_of_folder(descriptor: int, folder: Path) -> None:
    if os.geteuid() != 0:
        return
    # made by root in somebody's clone: they must be able to lock it themselves later
    owner = folder.stat()
    os.fchown(descriptor, owner.st_uid, owner.st_gid)
