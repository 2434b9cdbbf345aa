"""A server process in the background: started so that it may outlive us, known to be alive, stopped.

A daemon inherits an exclusive lock, so the kernel answers "is it alive?". A process id cannot: it may be
reused, or belong to a zombie, or to a server that was killed a moment ago and is still dying.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar

import psutil

from memory_project.embedded.errors import EmbeddedServerError, LockHeldError
from memory_project.embedded.locks import POLL_SECONDS, FileLock, is_locked, wait_until
from memory_project.embedded.paths import ServerPaths
from memory_project.embedded.users import ENVIRONMENT

# crash recovery replays what was committed: slow is not broken
READY_SECONDS = 120.0
STOP_SECONDS = 60.0
LOCK_SECONDS = 15.0
MAX_LOG_BYTES = 10_000_000
PR_SET_PDEATHSIG = 1

CHILDREN: "dict[Path, subprocess.Popen[bytes]]" = {}
"""The children of this process by lock file: code that stops one must also wait for its end."""


class Daemon(ABC):
    """A server of a place, which may have been started by us or by an earlier process.

    `start` and `stop` may be called in any state and return when it is done. `program` is how its process is
    recognized, `stop_signal` ends it cleanly, clients or not, and the server itself writes `pid_name` once it is up.
    """

    name: ClassVar[str]
    program: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]
    folder: ClassVar[str]
    """Name of its data folder, its lock and its log."""
    pid_name: ClassVar[str]
    socket_name: ClassVar[str]

    def __init__(self, place: ServerPaths) -> None:
        self._place = place
        self._data = place.base / self.folder
        self._lock = place.lock_of(self.folder)
        self._log = place.log_of(self.folder)

    @abstractmethod
    def _prepare(self) -> None:
        """Make the data folder if there is none; remove what a killed predecessor left."""

    @abstractmethod
    def _command(self) -> Sequence[str]:
        """Return the command line."""

    @abstractmethod
    def _answers(self) -> bool:
        """Return whether the server answers a client, with everything loaded."""

    def socket(self) -> Path:
        """Return the path of the socket on which the server listens."""
        return self._place.sockets / self.socket_name

    def is_running(self) -> bool:
        """Return whether the server lives and its socket still exists."""
        return self._is_alive() and self.socket().exists()

    def pid(self) -> int | None:
        """Return the id of the server's main process; None if it does not run."""
        pid = read_pid(self._data / self.pid_name)
        if pid is None:
            child = self._reap()
            return child.pid if child else None
        return pid if is_process_of(pid, self.program) else None

    def start(self) -> None:
        """Adopt it if it serves; else start it, and wait until it serves. Raises with its last words."""
        if self._is_alive() and not self.socket().exists():
            # swept away by a cleaner of /tmp: nobody can reach it any more
            self.stop()
        # one that was killed a moment ago still counts as alive, and never answers
        if self._is_alive() and self._comes_to_answer():
            return
        self._prepare()
        self._launch()
        if not self._comes_to_answer():
            words = self._log.read_text(errors="replace").strip().splitlines()
            reason = f"{words[-1]} (see {self._log})" if words else f"see {self._log}."
            raise EmbeddedServerError(f"{self.name} stopped while starting: {reason}")

    def stop(self) -> None:
        """Stop it without waiting for its clients, and wait until it is gone; by force where it does not listen."""
        for number in (self.stop_signal, signal.SIGKILL):
            pid = self.pid()
            if pid is not None and self._is_alive():
                os.kill(pid, number)
            if wait_until(lambda: not self._is_alive(), seconds=STOP_SECONDS):
                break
        else:
            raise EmbeddedServerError(f"{self.name} (process {self.pid()}) cannot be stopped.")
        self._bury()

    def _is_alive(self) -> bool:
        """Return whether any process of the server lives, whichever process started it."""
        self._reap()
        return is_locked(self._lock)

    def _launch(self) -> None:
        """Start it in the background. Waits for a predecessor that is still dying."""
        with FileLock(self._lock) as lock, open_log(self._log) as log:
            try:
                lock.wait_exclusive(seconds=LOCK_SECONDS)
            except LockHeldError as err:
                raise EmbeddedServerError(f"{self.name} is still stopping; try again in a moment.") from err
            self._bury()
            CHILDREN[self._lock] = subprocess.Popen(  # noqa: S603  our own command line
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=dict(ENVIRONMENT),
                start_new_session=True,
                pass_fds=(lock.descriptor,),
                preexec_fn=signal_on_parent_death(self.stop_signal) if self._place.dies_with_parent else None,
                **self._place.user.switch(),
            )

    def _comes_to_answer(self) -> bool:
        """Wait until the server answers; return False if it stops instead."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            if not self._is_alive():
                return False
            if time.monotonic() > deadline:
                raise EmbeddedServerError(f"{self.name} does not answer after {READY_SECONDS:.0f} s; see {self._log}.")
            time.sleep(POLL_SECONDS)
        return True

    def _reap(self) -> "subprocess.Popen[bytes] | None":
        """Return our child process if we started it and it lives. A dead one is reaped, or it would stay a zombie."""
        child = CHILDREN.get(self._lock)
        if child is not None and child.poll() is not None:
            del CHILDREN[self._lock]
            return None
        return child

    def _bury(self) -> None:
        """Wait for the predecessor's end.

        A dying process releases its lock before it becomes a zombie, and PostgreSQL takes even a zombie that its lock
        files name for a running server.
        """
        child = CHILDREN.pop(self._lock, None)
        if child is not None:
            child.wait(STOP_SECONDS)


def open_log(path: Path) -> BinaryIO:
    """Open a log to append to. One that has grown long makes room, and is kept once."""
    if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return path.open("ab")


def read_pid(path: Path) -> int | None:
    """Return the process id in a pid file; None if the file does not exist or is incomplete."""
    try:
        words = path.read_text(errors="replace").split()
    except FileNotFoundError:
        return None
    return int(words[0]) if words and words[0].isascii() and words[0].isdecimal() else None


def is_process_of(pid: int, program: str) -> bool:
    """Return whether the process lives and runs `program`: ids are reused, and zombies keep theirs."""
    try:
        return program in " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return False


def signal_on_parent_death(number: signal.Signals) -> Callable[[], None] | None:
    """Return a function for a child to call, so that the kernel sends it `number` when its parent dies.

    Returns None on systems other than Linux.
    """
    if sys.platform != "linux":
        return None
    # looked up before the fork: nothing may be loaded after it
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, int(number)) and None
