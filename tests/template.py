"""The database that each worker's is a copy of: migrated once, while the workers collect their tests.

`python -m tests.template` makes it, on the servers that the environment names. What goes wrong it says itself.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

NAME = "template_memory"
FAILED = f"{NAME}_failed"
IN_THE_MAKING = f"{NAME}_in_the_making"
PATIENCE_SECONDS = 300
LOOK_SECONDS = 0.1
MADE = "SELECT datname FROM pg_database WHERE datname = ANY(%s)"


@contextmanager
def being_made() -> Iterator[None]:
    """Make the template in a process of its own, which ends with the block at the latest."""
    with subprocess.Popen([sys.executable, "-m", "tests.template"], start_new_session=True) as maker:
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                # what migrates as well
                os.killpg(maker.pid, signal.SIGTERM)


def make() -> None:
    """Make the template. A database under its final name is whole."""
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {IN_THE_MAKING}".encode())
        environment = os.environ | {"DATABASE_URL": url.replace("/memory?", f"/{IN_THE_MAKING}?")}
        migrate = [sys.executable, "manage.py", "migrate", "--verbosity=0", "--skip-checks"]
        # a process of its own, whose connections end with it
        failed = subprocess.run(migrate, env=environment, check=False).returncode
        server.execute(f"ALTER DATABASE {IN_THE_MAKING} RENAME TO {FAILED if failed else NAME}".encode())


def wait_until_made() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        while not (made := server.execute(MADE, [[NAME, FAILED]]).fetchall()) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
    assert made == [(NAME,)], "the databases' template is not made: see above what failed"


if __name__ == "__main__":
    make()
