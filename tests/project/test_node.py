"""Parts that are forked from one process: one that dies is forked again, without the other and without leftovers."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.concurrency import PATIENCE_SECONDS, wait_until

NODE = """
import os, subprocess, sys, time
from pathlib import Path
from memory_project.node import run_parts
from memory_project.supervisor.forks import Fork, unblock_signals

folder = Path(sys.argv[1])

def note(name):
    unblock_signals()
    child = subprocess.Popen(["sleep", "600"])
    with (folder / name).open("a") as file:
        file.write(f"{os.getpid()} {child.pid}\\n")
    time.sleep(600)
    return 0

names = ("web", "worker")
parts = [Fork(name=name, run=lambda name=name: note(name), grace_seconds=5, leads_session=True) for name in names]
sys.exit(run_parts(parts, []))
"""


def lives(folder: Path, name: str) -> list[tuple[int, int]]:
    """Return the process of each life of a part, with what it has started."""
    file = folder / name
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(own), int(child)) for own, child in map(str.split, lines)]


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_part_that_dies_is_forked_again_without_leftovers_and_the_other_goes_on(tmp_path: Path) -> None:
    node = subprocess.Popen([sys.executable, "-c", NODE, str(tmp_path)])
    try:
        wait_until(lambda: bool(lives(tmp_path, "web") and lives(tmp_path, "worker")))
        [(worker, of_worker)] = lives(tmp_path, "worker")
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len(lives(tmp_path, "worker")) == 2)

        assert is_gone(of_worker)
        assert len(lives(tmp_path, "web")) == 1
        node.send_signal(signal.SIGTERM)
        assert node.wait(PATIENCE_SECONDS) == 0
    finally:
        node.kill()
        node.wait()

    wait_until(
        lambda: all(is_gone(pid) for name in ("web", "worker") for life in lives(tmp_path, name) for pid in life)
    )


LISTENING = """
import signal, socket, sys, time
from memory_project.node import run_parts
from memory_project.supervisor.forks import Fork, unblock_signals

listener = socket.create_server(("127.0.0.1", 0))

def drain():
    signal.signal(signal.SIGTERM, lambda *_: listener.close())
    unblock_signals()
    print(listener.getsockname()[1], flush=True)
    while True:
        time.sleep(0.1)

sys.exit(run_parts([Fork(name="web", run=drain, grace_seconds=15, leads_session=True)], [listener]))
"""


@pytest.mark.slow
def test_a_node_that_stops_refuses_connections_once_its_web_server_does() -> None:
    node = subprocess.Popen([sys.executable, "-c", LISTENING], stdout=subprocess.PIPE, text=True)
    try:
        assert node.stdout is not None
        port = int(node.stdout.readline())
        node.send_signal(signal.SIGTERM)

        def is_refused() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except ConnectionRefusedError:
                return True
            except ConnectionResetError:
                # in the queue of the socket when it was closed: the next one is refused
                return False
            return False

        wait_until(is_refused)
        assert node.poll() is None
        assert node.wait(PATIENCE_SECONDS) == 0
    finally:
        node.kill()
        node.communicate()
