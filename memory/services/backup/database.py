"""PostgreSQL in a backup: dumped and restored by its own client programs, in one snapshot and one transaction."""

import gzip
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psycopg
from django.db import connection, transaction
from psycopg import sql
from psycopg.pq import Conninfo

from memory.models.statements import fetch_rows
from memory.services.backup.manifest import BackupError
from memory_project.embedded.programs import find_postgres_clients

DUMP_OPTIONS = ("--format=plain", "--compress=6", "--no-owner", "--no-privileges", "--no-comments")
PSQL_OPTIONS = ("--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1")
REPORT_SECONDS = 5.0
CLOSING_SECONDS = 2.0
PIECE_BYTES = 1 << 20

Progress = Callable[[int], None]
"""Takes the number of bytes done."""

TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname
"""

OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""

# what belongs to an extension stays: whoever restores may not be allowed to create it
DROP_ALL = b"""
SET client_min_messages = warning;
DO $drop$
DECLARE statement text;
BEGIN
    FOREACH statement IN ARRAY (
        SELECT coalesce(array_agg(format('DROP %s IF EXISTS %s CASCADE', named.type, named.identity)), '{}')
        FROM (
            SELECT 'pg_class'::regclass AS catalog, oid FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
            UNION ALL
            SELECT 'pg_proc'::regclass, oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace
            UNION ALL
            SELECT 'pg_ts_config'::regclass, oid FROM pg_ts_config WHERE cfgnamespace = 'public'::regnamespace
            UNION ALL
            SELECT 'pg_ts_dict'::regclass, oid FROM pg_ts_dict WHERE dictnamespace = 'public'::regnamespace
        ) own, pg_identify_object(own.catalog, own.oid, 0) named
        WHERE NOT EXISTS (
            SELECT FROM pg_depend d
            WHERE d.classid = own.catalog AND d.objid = own.oid AND d.refobjid <> own.oid
                AND d.deptype IN ('a', 'e', 'i')
        )
    ) LOOP
        EXECUTE statement;
    END LOOP;
END
$drop$;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot of the database, which lasts as long as the transaction that exported it."""

    id: str
    server: int
    """Major version of the server."""


@contextmanager
def exported_snapshot() -> Iterator[Snapshot]:
    """Yield a snapshot that all parts of a backup read. The block is one read-only transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # a dump takes as long as it takes
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SELECT pg_export_snapshot()")
        [name] = cursor.fetchone() or ("",)
        yield Snapshot(id=name, server=server_major())


def server_major() -> int:
    """Return the major version of the server of this connection."""
    native: Any = connection
    return int(native.pg_version) // 10_000


def count_rows() -> dict[str, int]:
    """Return the number of rows of each table."""
    counts: dict[str, int] = {}
    with connection.cursor() as cursor:
        for table in list_tables():
            cursor.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table)))
            counts[table] = cursor.fetchone()[0]
    return counts


def list_tables() -> list[str]:
    """Return the tables of the database that belong to no extension."""
    return [name for (name,) in fetch_rows(TABLES)]


def count_other_connections() -> int:
    """Return the number of clients of the database besides this process, whose own connections are closed for it."""
    given = connection_parameters()
    closing: Any = connection
    closing.close()
    closing.close_pool()
    deadline = time.monotonic() + CLOSING_SECONDS
    with psycopg.connect(**given, autocommit=True) as probe:
        while (found := probe.execute(OTHERS).fetchone()) and found[0] and time.monotonic() < deadline:
            time.sleep(0.05)
        return int(found[0]) if found else 0


def dump_database(snapshot: Snapshot, target: Path, progress: Progress) -> None:
    """Write the database, as it is in the snapshot, as compressed SQL. Raises BackupError."""
    program = choose_program("pg_dump", snapshot.server)
    command = [str(program), *DUMP_OPTIONS, f"--snapshot={snapshot.id}", f"--file={target}"]
    with subprocess.Popen(  # noqa: S603  our own command line
        command, env=client_environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            errors = wait_for_dump(process, target, progress)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise BackupError(f"pg_dump failed: {last_line(errors)}")


def wait_for_dump(process: "subprocess.Popen[str]", target: Path, progress: Progress) -> str:
    """Wait for the end of a dump, with reports of how long the file is. Returns what it wrote about errors."""
    while True:
        try:
            return process.communicate(timeout=REPORT_SECONDS)[1]
        except subprocess.TimeoutExpired:
            progress(target.stat().st_size if target.exists() else 0)


def restore_database(dump: Path, *, replaces: bool, progress: Progress) -> None:
    """Restore a dump in one transaction, which replaces all tables if it may.

    Raises BackupError, and then nothing is changed.
    """
    program = choose_program("psql", server_major())
    command = [str(program), *PSQL_OPTIONS]
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(  # noqa: S603  our own command line
            command, env=client_environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors
        ) as process:
            try:
                feed(process, dump, replaces=replaces, progress=progress)
            except BaseException:
                # without its COMMIT nothing is changed
                process.kill()
                raise
        if process.returncode != 0:
            errors.seek(0)
            raise BackupError(
                f"The database was not restored, and nothing was changed: {last_line(errors.read().decode())}"
            )


def feed(process: "subprocess.Popen[bytes]", dump: Path, *, replaces: bool, progress: Progress) -> None:
    """Send the dump to psql, between BEGIN and COMMIT. Ends early where psql did."""
    stream: IO[bytes] = process.stdin  # type: ignore[assignment]  # a pipe was asked for
    try:
        stream.write(b"BEGIN;\n" + (DROP_ALL if replaces else b""))
        with dump.open("rb") as packed, gzip.open(packed) as plain:
            reported_at = time.monotonic()
            while piece := plain.read(PIECE_BYTES):
                stream.write(piece)
                if time.monotonic() - reported_at > REPORT_SECONDS:
                    reported_at = time.monotonic()
                    progress(packed.tell())
        stream.write(b"\nCOMMIT;\n")
        stream.close()
    except BrokenPipeError:
        return


def choose_program(name: str, server: int) -> Path:
    """Return the client program of the lowest version that fits the server. Raises BackupError."""
    found = [(major_of(path), path) for path in find_postgres_clients(name)]
    fitting = sorted((major, path) for major, path in found if major >= server)
    if not fitting:
        raise BackupError(
            f"No {name} of PostgreSQL {server} or newer was found: install the client programs of that version, so "
            f"that {name} is on the PATH."
        )
    return fitting[0][1]


def major_of(program: Path) -> int:
    """Return the major version of a client program; 0 where it does not run."""
    try:
        done = subprocess.run([program, "--version"], check=False, capture_output=True, text=True, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r"\) (\d+)", done.stdout)
    return int(found[1]) if found else 0


def client_environment() -> dict[str, str]:
    """Return the environment in which client programs reach the database of this process.

    No argument names the password: other users of the machine can read arguments.
    """
    given = connection_parameters()
    variables = {each.keyword.decode(): each.envvar.decode() for each in Conninfo.get_defaults() if each.envvar}
    named = {variables[name]: value for name, value in given.items() if name in variables and value}
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/", **named}


def connection_parameters() -> dict[str, Any]:
    """Return the parameters by which this process is connected, without the options of its sessions."""
    connection.ensure_connection()
    native: Any = connection.connection
    given = {**native.info.get_parameters(), "password": native.info.password}
    given.pop("options", None)
    return given


def last_line(errors: str) -> str:
    lines = [line for line in errors.strip().splitlines() if line]
    important = [line for line in lines if "ERROR" in line or "error" in line]
    return ([*lines, *important] or ["no reason was given."])[-1]
