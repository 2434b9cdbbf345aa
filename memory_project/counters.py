"""The folder in which the web server's processes share their counters. Imports nothing that counts."""

import logging
import os
import shutil
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def share_counters(data_dir: Path, environ: MutableMapping[str, str]) -> None:
    """Name the folder of this server (the parent of its workers) in the environment, and clear those of dead ones.

    prometheus_client looks there when it is first imported: call this before anything that imports it.
    """
    if VARIABLE in environ:
        return
    folder = data_dir / "metrics" / str(os.getppid())
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        logger.warning("each process counts for itself: %s", err.strerror)
        return
    for other in folder.parent.iterdir():
        if other.name.isdecimal() and not is_running(int(other.name)):
            shutil.rmtree(other, ignore_errors=True)
    environ[VARIABLE] = str(folder)


def is_running(pid: int) -> bool:
    """Whether there is such a process, of whatever user."""
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True
