"""One server process in the background: started so that it may outlive us, known to be alive, stopped.

A daemon inherits an exclusive lock, so the kernel answers "is it alive?". A process id cannot: it may be
reused, or belong to a zombie, or to a server that was killed a moment ago and is still dying.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memory_project.embedded.errors import EmbeddedServerError, LockHeldError
from memory_project.embedded.locks import POLL_SECONDS, FileLock, is_locked
from memory_project.embedded.users import ENVIRONMENT, ServerUser

# crash recovery replays what was committed: slow is not broken
READY_SECONDS = 120.0
STOP_SECONDS = 60.0
LOCK_SECONDS = 15.0
MAX_LOG_BYTES = 10_000_000
PR_SET_PDEATHSIG = 1

CHILDREN: "dict[Path, subprocess.Popen[bytes]]" = {}
"""The children of this process by lock file: whoever stops one must also wait for its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonFiles:
    """`pid` is written by the server itself, once it is up."""

    lock: Path
    pid: Path
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonKind:
    """`program` is how its process is recognized; `stop_signal` ends it cleanly, clients or not."""

    name: str
    program: str
    stop_signal: signal.Signals


class Daemon:
    """A server that may have been started by us or by an earlier process."""

    def __init__(self, kind: DaemonKind, files: DaemonFiles, user: ServerUser) -> None:
        self.kind = kind
        self.files = files
        self._user = user

    def is_alive(self) -> bool:
        """Return whether any process of the server lives, whichever process started it."""
        self._reap()
        return is_locked(self.files.lock)

    def pid(self) -> int | None:
        """Its process id, if it is the server that bears it."""
        pid = read_pid(self.files.pid)
        if pid is None:
            child = self._reap()
            return child.pid if child else None
        return pid if is_process_of(pid, self.kind.program) else None

    def launch(self, command: Sequence[str], *, dies_with_parent: bool) -> None:
        """Start it in the background. Waits for a predecessor that is still dying."""
        with FileLock(self.files.lock) as lock, open_log(self.files.log) as log:
            try:
                lock.wait_exclusive(seconds=LOCK_SECONDS)
            except LockHeldError as err:
                raise EmbeddedServerError(f"{self.kind.name} is still stopping; try again in a moment.") from err
            self._bury()
            switch = self._user.must_switch
            CHILDREN[self.files.lock] = subprocess.Popen(  # noqa: S603  our own command line
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=dict(ENVIRONMENT),
                start_new_session=True,
                pass_fds=(lock.descriptor,),
                user=self._user.uid if switch else None,
                group=self._user.gid if switch else None,
                extra_groups=[] if switch else None,
                preexec_fn=signal_on_parent_death(self.kind.stop_signal) if dies_with_parent else None,
            )

    def ensure(self, launch: Callable[[], None], *, socket: Path, answers: Callable[[], bool]) -> None:
        """Adopt it if it serves; else `launch` it, and wait until it does. Raises with its last words."""
        if self.is_alive() and not socket.exists():
            # swept away by a cleaner of /tmp: nobody can reach it any more
            self.stop()
        # one that was killed a moment ago still counts as alive, and never answers
        if self.is_alive() and self._comes_to_answer(answers):
            return
        launch()
        if not self._comes_to_answer(answers):
            raise EmbeddedServerError(f"{self.kind.name} stopped while starting: {self._last_words()}")

    def _comes_to_answer(self, answers: Callable[[], bool]) -> bool:
        """Wait until the server answers; return False if it stops instead."""
        deadline = time.monotonic() + READY_SECONDS
        while not answers():
            if not self.is_alive():
                return False
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"{self.kind.name} does not answer after {READY_SECONDS:.0f} s; see {self.files.log}."
                )
            time.sleep(POLL_SECONDS)
        return True

    def stop(self) -> None:
        """Stop it and wait until it is gone; by force where it does not listen."""
        for number in (self.kind.stop_signal, signal.SIGKILL):
            pid = self.pid()
            if pid is not None and self.is_alive():
                os.kill(pid, number)
            if self._gone_within(STOP_SECONDS):
                break
        else:
            raise EmbeddedServerError(f"{self.kind.name} (process {self.pid()}) cannot be stopped.")
        self._bury()

    def _reap(self) -> "subprocess.Popen[bytes] | None":
        """Our child, where we started it and it lives. A dead one is taken note of, or it would stay a zombie."""
        child = CHILDREN.get(self.files.lock)
        if child is not None and child.poll() is not None:
            del CHILDREN[self.files.lock]
            return None
        return child

    def _bury(self) -> None:
        """Wait for the predecessor's end.

        A dying process releases its lock before it becomes a zombie, and PostgreSQL takes even a zombie that its lock
        files name for a running server.
        """
        child = CHILDREN.pop(self.files.lock, None)
        if child is not None:
            child.wait(STOP_SECONDS)

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _last_words(self) -> str:
        words = self.files.log.read_text(errors="replace").strip().splitlines()
        return f"{words[-1]} (see {self.files.log})" if words else f"see {self.files.log}."


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
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    command = Path(f"/proc/{pid}/cmdline")
    if not Path("/proc/self/cmdline").exists():
        return True
    try:
        return program.encode() in command.read_bytes()
    except OSError:
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
