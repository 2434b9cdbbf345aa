"""The folders in which processes share their counters: one a web server, one a worker. Imports nothing that counts."""

import logging
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path

import psutil

logger = logging.getLogger(__name__)

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
FOLDER = "metrics"
WORKER, SCRAPED = "worker-", "scraped-"
"""Prefixes of the names of folders: of workers whose counts a web server of the node answers, and of processes that
answer theirs themselves. The rest, as in the names of web servers' folders, is the main process's id."""
FILE_BYTES = {"counter": 1 << 20, "histogram": 1 << 22}
"""Sizes of a process's files: far more than the routes and jobs that there are need."""
RELEASED_BYTES = 64
FORMER_SECONDS = 86_400
"""Seconds without a change after which the counts of another machine or container are those of one that is gone."""
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108  a folder of our own in it


def share_counters(data_dir: Path, environ: MutableMapping[str, str]) -> None:
    """Name the folder of this server (the main process) in the environment, and clear those of dead ones.

    prometheus_client looks there when it is first imported: call this before anything that imports it.
    """
    share_in(node_folder(data_dir) / str(os.getpid()), environ)


def share_worker_counters(data_dir: Path, environ: MutableMapping[str, str], *, is_scraped: bool = False) -> None:
    """Share the counters of a Celery worker and of the processes that it forks; of one that is scraped, apart.

    What a dead worker counted stays until a server starts.
    """
    share_in(node_folder(data_dir) / f"{SCRAPED if is_scraped else WORKER}{os.getpid()}", environ)


def node_folder(data_dir: Path) -> Path:
    """Return the folder of this machine or container, among those that share the data: ids of processes repeat."""
    return data_dir / FOLDER / socket.gethostname()


def share_in(folder: Path, environ: MutableMapping[str, str]) -> None:
    if VARIABLE in environ:
        return
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        logger.warning("each process counts for itself: %s", err.strerror)
        return
    if is_new and folder.name.isdecimal():
        clear_dead(folder.parent)
        clear_former(folder.parent)
    environ[VARIABLE] = str(folder)


def reserve_files(environ: MutableMapping[str, str]) -> None:
    """Give this process's files of counts their space on disk. Call it before anything is counted.

    prometheus_client maps sparse files into memory: on a full disk, the first write to a page of one kills the process
    (SIGBUS). Where there is no space, this process counts in memory, and scrapes do not see its counts.
    """
    if VARIABLE not in environ:
        return
    try:
        for kind, size in FILE_BYTES.items():
            with (Path(environ[VARIABLE]) / f"{kind}_{os.getpid()}.db").open("ab") as file:
                os.posix_fallocate(file.fileno(), 0, size)
    except OSError as err:
        logger.warning("this process counts for itself: %s", err.strerror)
        environ[VARIABLE] = tempfile.mkdtemp(
            prefix="agent-memory-", dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
        )


def release_files(pid: int, environ: Mapping[str, str]) -> None:
    """Give back the space that a dead process reserved and did not use; its counts stay."""
    for path in Path(environ[VARIABLE]).glob(f"*_{pid}.db") if VARIABLE in environ else ():
        with suppress(OSError), path.open("r+b") as file:
            # prometheus_client begins a file with the number of bytes in use
            used = int.from_bytes(file.read(4), sys.byteorder)
            file.truncate(max(used, RELEASED_BYTES))


def clear_dead(parent: Path) -> None:
    """Delete the counts of dead processes.

    Only a starting server does this: its own counts begin at zero too, and sums that shrink look like a restart.
    """
    for folder in parent.iterdir():
        pid = folder.name.removeprefix(WORKER).removeprefix(SCRAPED)
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def clear_former(own: Path) -> None:
    """Delete the counts of other machines and containers on this data that have not changed for a day."""
    for folder in own.parent.iterdir():
        if folder == own or not folder.is_dir():
            continue
        with suppress(OSError):
            changed = max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
            if changed < time.time() - FORMER_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


def counted_files(folder: str) -> list[Path]:
    """Return the files of this folder, and those of the workers whose folders are next to it."""
    own = Path(folder)
    return [*own.glob("*.db"), *own.parent.glob(f"{WORKER}*/*.db")]


def all_counted_files(data_dir: Path, measure: str) -> list[Path]:
    """Return the files of all web servers and workers on this data, for one type: "counter" or "histogram"."""
    return sorted((data_dir / FOLDER).glob(f"*/*/{measure}*.db"))
