"""PostgreSQL with pgvector: made, started and asked."""

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from urllib.parse import quote

import psycopg
from psycopg import sql

from memory_project.embedded.daemons import Daemon, is_process_of, read_pid
from memory_project.embedded.errors import EmbeddedServerError

MAJOR_VERSION = "18"
ROLE = "memory"
"""The superuser, who owns the tables."""
APPLICATION_ROLE = "memory_app"
"""An ordinary role, by which web server, worker and most commands read and write rows."""
DATABASE = "memory"
INITDB_SECONDS = 120
INITDB_OPTIONS = ("-U", ROLE, "-A", "trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-instructions")
FIND_DATABASE = "SELECT FROM pg_database WHERE datname = %s"
FIND_ROLE = "SELECT FROM pg_roles WHERE rolname = %s"
# statistics alone: the progress of an index that the owner builds
MAKE_ROLE = """
CREATE ROLE {0} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
GRANT pg_read_all_stats TO {0}
"""
# parallel index builds want more shared memory than containers usually have there
ENOUGH_DEV_SHM_BYTES = 1 << 30

SETTINGS = (
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "max_connections=200",
    "shared_buffers=256MB",
    "timezone=UTC",
    # after a crash, one call instead of one for each of thousands of files
    *(("recovery_init_sync_method=syncfs",) if sys.platform == "linux" else ()),
    "log_timezone=UTC",
    # a failing statement carries memories: they do not belong in a log
    "log_min_error_statement=panic",
    "log_error_verbosity=terse",
    "log_checkpoints=off",
)
UNDURABLE_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""Settings of servers that end with their tests."""


class PostgresServer(Daemon):
    """The PostgreSQL of one place."""

    name, program, stop_signal = "PostgreSQL", "postgres", signal.SIGINT
    folder, pid_name, socket_name = "postgres", "postmaster.pid", ".s.PGSQL.5432"

    def url(self) -> str:
        """Return the URL of the superuser for DATABASE_OWNER_URL, which libpq understands too."""
        return self._url_of(ROLE)

    def application_url(self) -> str:
        """Return the URL of the application's role for DATABASE_URL. Migrations give it its rights."""
        return self._url_of(APPLICATION_ROLE)

    def start(self) -> None:
        """Start it as any server, and make its database and the application's role if there are none."""
        super().start()
        with self._connect() as connection:
            if connection.execute(FIND_DATABASE, [DATABASE]).rowcount == 0:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
            if connection.execute(FIND_ROLE, [APPLICATION_ROLE]).rowcount == 0:
                connection.execute(sql.SQL(MAKE_ROLE).format(sql.Identifier(APPLICATION_ROLE)))

    def _prepare(self) -> None:
        self._make_data()
        self._remove_stale_pid()

    def _command(self) -> Sequence[str]:
        settings = [*SETTINGS, f"unix_socket_directories={self._place.sockets}", _shared_memory_setting()]
        if self._place.dies_with_parent:
            settings += UNDURABLE_SETTINGS
        options = [part for setting in settings for part in ("-c", setting)]
        return [str(self._place.programs.postgres), "-D", str(self._data), *options]

    def _answers(self) -> bool:
        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(
            host=str(self._place.sockets), user=ROLE, dbname="postgres", connect_timeout=5, autocommit=True
        )

    def _url_of(self, role: str) -> str:
        return f"postgres://{role}@/{DATABASE}?host={quote(str(self._place.sockets))}"

    def _make_data(self) -> None:
        version_file = self._data / "PG_VERSION"
        if version_file.exists():
            version = version_file.read_text().strip()
            if version != MAJOR_VERSION:
                raise EmbeddedServerError(
                    f"{self._data} was made by PostgreSQL {version} and this is {MAJOR_VERSION}; move it away."
                )
        elif self._data.exists() and any(self._data.iterdir()):
            raise EmbeddedServerError(
                f"{self._data} is not a complete PostgreSQL data folder; move it away and run again."
            )
        else:
            self._initialize()

    def _initialize(self) -> None:
        """Run initdb next to the final folder and rename it when complete: a killed initdb leaves nothing half made."""
        unfinished = self._data.with_name("postgres.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._place.user.own(unfinished)
        command = [str(self._place.programs.initdb), "-D", str(unfinished), *INITDB_OPTIONS]
        done = self._place.user.run(command, seconds=INITDB_SECONDS)
        if done.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise EmbeddedServerError(f"PostgreSQL could not make its data folder {self._data}: {reason}")
        if self._data.exists():
            self._data.rmdir()
        unfinished.rename(self._data)

    def _remove_stale_pid(self) -> None:
        """Remove a pid file of a dead server: PostgreSQL mistakes any process with that id for the old server."""
        pid_file = self._data / self.pid_name
        pid = read_pid(pid_file)
        if pid is not None and is_process_of(pid, str(self._data)):
            raise EmbeddedServerError(f"Another PostgreSQL (process {pid}) runs in {self._data}; stop it first.")
        pid_file.unlink(missing_ok=True)
        # names the same process; its folder is ours alone
        self.socket().with_name(".s.PGSQL.5432.lock").unlink(missing_ok=True)


def _shared_memory_setting() -> str:
    try:
        space = os.statvfs("/dev/shm")  # noqa: S108  it is what PostgreSQL uses
    except OSError:
        return "dynamic_shared_memory_type=mmap"
    enough = space.f_bavail * space.f_frsize >= ENOUGH_DEV_SHM_BYTES
    return f"dynamic_shared_memory_type={'posix' if enough else 'mmap'}"
