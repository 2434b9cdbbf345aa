"""Real Celery workers, each a process (group) of its own on the test's database and broker."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.db import connection

from memory_project.embedded.paths import PROJECT
from tests.concurrency import wait_until

PATIENCE_SECONDS = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    process: "subprocess.Popen[bytes]"
    log: Path

    def is_ready(self) -> bool:
        return " ready." in self.log.read_text()

    def finished_tasks(self) -> int:
        return self.log.read_text().count(" succeeded in ")

    def kill(self) -> None:
        """SIGKILL to it and to its children, as an out-of-memory killer or a power cut would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextmanager
def worker_started(
    folder: Path, name: str, *, include: str = "", tree: str = str(PROJECT), **variables: str
) -> Iterator[Worker]:
    """A worker with one child that is ready for tasks, with the code of a tree; killed at the end."""
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "memory_project.celery",
        "worker",
        "-l",
        "INFO",
        "-c",
        "1",
        "-n",
        name,
    ]
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--without-gossip", "--without-mingle", *(["--include", include] if include else [])],
            cwd=tree,
            env=environment() | variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    worker = Worker(process=process, log=log)
    try:
        wait_until(worker.is_ready)
        yield worker
    finally:
        worker.kill()


def environment() -> dict[str, str]:
    """This process's, with the test's own database."""
    url = urlsplit(os.environ["DATABASE_URL"])
    database = url._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    return {**os.environ, "DATABASE_URL": database, "MEMORY_TASK_LOG_LEVEL": "INFO"}
