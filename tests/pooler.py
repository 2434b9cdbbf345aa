"""A PgBouncer in transaction mode in front of this test's database."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest
from django.db import connection

from memory_project.postgresql.options import store_role_settings
from tests.concurrency import PATIENCE_SECONDS

PROGRAM = shutil.which("pgbouncer")
SESSIONS = 3
"""Sessions with PostgreSQL, fewer than the threads of a web server: transactions of a connection change theirs."""

needs_pgbouncer = pytest.mark.skipif(PROGRAM is None, reason="There is no pgbouncer on the PATH.")

CONFIGURATION = """
[databases]
{name} = host={sockets} user={role}

[pgbouncer]
unix_socket_dir = {folder}
listen_addr =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 300
server_reset_query_always = 0
logfile = {folder}/log
"""


@contextmanager
def pooler(*, role: str = "memory", database: str = "") -> Iterator[str]:
    """Run PgBouncer until the end of the block; yield the URL of a database, by default this test's, through it."""
    name = database or str(connection.settings_dict["NAME"])
    folder = Path(tempfile.mkdtemp(prefix="agent-memory-test-pool-", dir="/tmp"))
    [sockets] = parse_qs(urlsplit(os.environ["DATABASE_URL"]).query)["host"]
    (folder / "ini").write_text(
        CONFIGURATION.format(name=name, sockets=sockets, role=role, folder=folder, sessions=SESSIONS)
    )
    folder.chmod(0o777)
    # it refuses to be root
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen([str(PROGRAM), "-q", *user, str(folder / "ini")], stderr=subprocess.DEVNULL)
    url = f"postgres://{role}@/{name}?host={quote(str(folder))}&port=6432"
    try:
        wait_until_it_answers(url)
        yield url
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_it_answers(url: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            psycopg.connect(url, prepare_threshold=None).close()
            return
        time.sleep(0.05)
    raise AssertionError("PgBouncer does not answer")


@pytest.fixture
def pooler_url(transactional_db: None, settings: object) -> Iterator[str]:
    """The URL of a pooler whose role has its settings, as after `manage.py migrate`."""
    with pooler() as url:
        settings.DATABASE_POOLER_URL = url  # type: ignore[attr-defined]
        store_role_settings()
        yield url
