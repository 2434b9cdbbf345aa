"""Valkey, which speaks Redis: started and asked. Nothing is ever evicted: ledger and job queue live in it."""

import signal
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import redis

from memory_project.embedded.daemons import Daemon

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


class ValkeyServer(Daemon):
    """The Valkey of one place. Once it has stopped, what was written is on disk."""

    name, program, stop_signal = "Valkey", "valkey-server", signal.SIGTERM
    folder, pid_name, socket_name = "valkey", "valkey.pid", "valkey.sock"

    def _prepare(self) -> None:
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
            str(self._data / self.pid_name),
        )
        return [str(self._place.programs.valkey), *SETTINGS, *durable, *files]

    def _answers(self) -> bool:
        client = redis.Redis(unix_socket_path=str(self.socket()), socket_timeout=5)
        try:
            return bool(client.ping())
        except redis.ResponseError:
            # it refuses even a PING while its disk is full
            return True
        except (redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError):
            return False
        finally:
            client.close()
