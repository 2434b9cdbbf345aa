"""Processes that are forked from one which has loaded the code for all of them. One that dies is forked again.

The node forks the web server and the worker, and the web server its processes.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from memory_project.embedded.daemons import signal_on_parent_death
from memory_project.supervisor.restarts import MAX_WAIT_SECONDS, Restarts

logger = logging.getLogger(__name__)

SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
TICK_SECONDS = 0.5


@dataclass(slots=True, kw_only=True)
class Fork:
    """A process that is forked: `run` is all that it does. `pid` is 0 while none runs; the next starts at `start_at`.

    `run` begins with blocked signals, and calls `unblock_signals` once it can take them. What is left of the session of
    a process that leads one is killed with it.
    """

    name: str
    run: Callable[[], int]
    grace_seconds: float
    leads_session: bool = False
    pid: int = 0
    started_at: float = 0.0
    start_at: float = 0.0
    restarts: Restarts = field(default_factory=Restarts)

    def start(self, now: float) -> None:
        die_with_parent = signal_on_parent_death(signal.SIGTERM)
        self.started_at = now
        try:
            self.pid = os.fork()
        except OSError as err:
            # out of memory or processes, for example, which is waited out
            logger.error("%s cannot be started: %s", self.name, err.strerror)
            self.start_at = now + MAX_WAIT_SECONDS
            return
        if self.pid:
            return
        code = 1
        try:
            if self.leads_session:
                os.setsid()
            if die_with_parent:
                die_with_parent()
            code = self.run()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            logger.exception("%s ended by an error", self.name)
        finally:
            # nothing of what the first process has yet to do, and no waiting for threads
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def has_ended(self) -> bool:
        """Return whether the process has ended; then kill what is left of its session."""
        if not os.waitpid(self.pid, os.WNOHANG)[0]:
            return False
        if self.leads_session:
            self.kill()
        self.pid = 0
        return True

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            (os.killpg if self.leads_session else os.kill)(self.pid, signal.SIGKILL)


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def unblock_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def keep_running(
    forks: Sequence[Fork],
    *,
    note_end: Callable[[int], None] = lambda _pid: None,
    watch: Callable[[float], None] = lambda _now: None,
) -> None:
    """Run the processes until SIGTERM, SIGINT or SIGHUP.

    `note_end` is called with the id of each one that has died, `watch` at every turn.
    """
    block_signals()
    noted = None
    while noted is None or noted.si_signo == signal.SIGCHLD:
        now = time.monotonic()
        for fork in forks:
            pid = fork.pid
            if pid and fork.has_ended():
                wait = fork.restarts.wait_seconds(now - fork.started_at)
                logger.warning("%s %d ended; starting it again in %.1f s", fork.name, pid, wait)
                note_end(pid)
                fork.start_at = now + wait
            if not fork.pid and now >= fork.start_at:
                fork.start(now)
        watch(now)
        noted = signal.sigtimedwait(SIGNALS, TICK_SECONDS)


def stop_all(forks: Sequence[Fork]) -> None:
    """Ask all processes to stop, and kill those that have not after their time."""
    begun = time.monotonic()
    for fork in forks:
        if fork.pid:
            os.kill(fork.pid, signal.SIGTERM)
    while left := [fork for fork in forks if fork.pid and not fork.has_ended()]:
        for fork in left:
            if time.monotonic() > begun + fork.grace_seconds:
                fork.kill()
        signal.sigtimedwait(SIGNALS, 0.1)
