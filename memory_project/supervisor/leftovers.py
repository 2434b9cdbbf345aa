"""Processes that outlived their part: a mark in their environment finds them, whatever group they went to."""

import os
import signal
import time
from pathlib import Path

MARK_VARIABLE = "MEMORY_PART_OF"
POLL_SECONDS = 0.05


def marked_processes(mark: str) -> list[int]:
    """Ids of the living processes that were started with this mark. Empty where there is no /proc."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if wanted in _environment_of(entry)]


def end_marked(mark: str, *, grace_seconds: float) -> int:
    """Stop them, by force after `grace_seconds`; how many there were."""
    found = marked_processes(mark)
    _signal_all(found, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while marked_processes(mark) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    _signal_all(marked_processes(mark), signal.SIGKILL)
    return len(found)


def _environment_of(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        # gone meanwhile, a zombie, or not ours
        return []


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
