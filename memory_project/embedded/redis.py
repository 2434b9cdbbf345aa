"""Valkey, which speaks Redis: started and asked. Nothing is ever evicted: ledger and job queue live in it."""

import signal
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import redis

from memory_project.embedded.daemons import Daemon, DaemonFiles, DaemonKind
from memory_project.embedded.paths import ServerPaths

KIND = DaemonKind(name="Valkey", program="valkey-server", stop_signal=signal.SIGTERM)
STORE_DATABASE = 0
BROKER_DATABASE = 1

SETTINGS = (
    *("--port", "0"),
    *("--unixsocketperm", "700"),
    # two for each process of a parallel test run, and the first two
    *("--databases", "128"),
    *("--maxmemory-policy", "noeviction"),
    *("--save", ""),
    *("--daemonize", "no"),
)
DURABLE_SETTINGS = ("--appendonly", "yes", "--appendfsync", "everysec")


def store_url(socket: Path, *, database: int = STORE_DATABASE) -> str:
    """Return the URL for REDIS_URL."""
    return f"unix://{quote(str(socket))}?db={database}"


def broker_url(socket: Path, *, database: int = BROKER_DATABASE) -> str:
    """Return the URL for CELERY_BROKER_URL: the same server in Celery's spelling."""
    return f"redis+socket://{quote(str(socket))}?virtual_host={database}"


class ValkeyServer:
    """The Valkey of one place."""

    name = KIND.name

    def __init__(self, place: ServerPaths) -> None:
        self._place = place
        self._data = place.base / "valkey"
        files = DaemonFiles(lock=place.lock_of("valkey"), pid=self._data / "valkey.pid", log=place.log_of("valkey"))
        self._daemon = Daemon(KIND, files, place.user)

    def socket(self) -> Path:
        """Return the path of the socket on which the server listens."""
        return self._place.sockets / "valkey.sock"

    def is_running(self) -> bool:
        """Return whether the server lives and its socket still exists."""
        return self._daemon.is_alive() and self.socket().exists()

    def pid(self) -> int | None:
        """Return the server's process id; None if it does not run."""
        return self._daemon.pid()

    def start(self) -> None:
        """Start it unless it runs, and wait until everything is loaded."""
        self._daemon.ensure(self._launch, socket=self.socket(), answers=self._answers)

    def stop(self) -> None:
        """Stop it; what was written is on disk then."""
        self._daemon.stop()

    def _launch(self) -> None:
        self._make_data()
        self._daemon.launch(self._command(), dies_with_parent=self._place.dies_with_parent)

    def _make_data(self) -> None:
        if not self._data.exists():
            self._data.mkdir(mode=0o700)
            self._place.user.own(self._data)

    def _command(self) -> Sequence[str]:
        durable = ("--appendonly", "no") if self._place.dies_with_parent else DURABLE_SETTINGS
        files = (
            "--unixsocket",
            str(self.socket()),
            "--dir",
            str(self._data),
            "--pidfile",
            str(self._data / "valkey.pid"),
        )
        return [str(self._place.programs.valkey), *SETTINGS, *durable, *files]

    def _answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket()), socket_timeout=5)
        try:
            return bool(client.ping())
        except (redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError):
            return False
        finally:
            client.close()
