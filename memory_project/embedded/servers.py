"""The servers that all users of the same data share: first one in starts them, last one out stops them."""

from collections.abc import Sequence
from contextlib import suppress

from memory_project.embedded.daemons import Daemon
from memory_project.embedded.locks import FileLock
from memory_project.embedded.paths import ServerPaths, make_socket_folder
from memory_project.embedded.postgres import PostgresServer
from memory_project.embedded.redis import ValkeyServer

# a starter may be replaying a crashed server's log; the last one out may be waiting for a checkpoint
START_SECONDS = 180.0


class SharedServers:
    """A process's share in the servers of a folder: a lock, which even a killed process releases."""

    def __init__(self, place: ServerPaths, servers: Sequence[Daemon]) -> None:
        self._place = place
        self._servers = servers
        self._share: FileLock | None = None

    def acquire(self) -> None:
        """Start what does not run, adopt what does."""
        self._share = FileLock(self._place.lock_of("users"))
        # held alone only by a last one out, who is stopping them
        try:
            self._share.wait_shared(seconds=START_SECONDS)
            self.start_missing()
        except BaseException:
            # one may run already where the other cannot
            self.release()
            raise

    def start_missing(self) -> list[str]:
        """Start every server that does not run; their names."""
        with FileLock(self._place.lock_of("start")) as starting:
            starting.wait_exclusive(seconds=START_SECONDS)
            # here, not before the lock: the last one out removes it, and so may a cleaner of /tmp
            make_socket_folder(self._place)
            missing = [server for server in self._servers if not server.is_running()]
            for server in self._servers:
                # a running one too: it may be about to come up for a starter that was killed
                server.start()
        return [server.name for server in missing]

    def stopped(self) -> list[str]:
        """Return the names of the servers that should run and do not."""
        return [server.name for server in self._servers if not server.is_running()]

    def release(self) -> bool:
        """Release the servers; the last process stops them. Returns True if that was this one."""
        if self._share is None:
            return False
        share, self._share = self._share, None
        with share:
            if not share.try_exclusive():
                return False
            for server in reversed(servers_of(self._place)):
                server.stop()
            with suppress(OSError):
                self._place.sockets.rmdir()
        return True


def servers_of(place: ServerPaths) -> list[Daemon]:
    """Return all servers of a place in the order in which they start. They stop in reverse order."""
    return [PostgresServer(place), ValkeyServer(place)]
