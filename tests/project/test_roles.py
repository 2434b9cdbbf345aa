"""Each role of a node by itself: its health, its metrics, its log and its end."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.ports import find_port
from memory.services.operations.canary import check_keys
from memory_project.supervisor.log import format_as_json
from tests.concurrency import PATIENCE_SECONDS
from tests.web_server import database_url

pytestmark = pytest.mark.timeout(600)


@dataclass(slots=True, kw_only=True)
class Role:
    """A role that runs: where it answers probes, and what it has logged."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def get(self, path: str) -> tuple[int, str]:
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        asked.request("GET", path)
        answer = asked.getresponse()
        text = answer.read().decode()
        asked.close()
        return answer.status, text

    def is_live(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.get("/health/live")[0] == 200
        except OSError:
            return False

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def serving(name: str, folder: Path) -> Iterator[Role]:
    port, health, mcp = (find_port() for _ in range(3))
    own = {
        "DATABASE_URL": database_url(),
        "MEMORY_DATA_DIR": str(folder / "data"),
        "MEMORY_LOG_FORMAT": "json",
        "MEMORY_PORT": str(port),
        "MEMORY_HEALTH_PORT": str(health),
        "MEMORY_MCP_PORT": str(mcp),
        "MEMORY_WEB_WORKERS": "1",
        "MEMORY_WORKER_PROCESSES": "1",
        "EMBEDDING_PROVIDER": "tiny",
        "MEMORY_ALLOW_TINY_EMBEDDINGS": "1",
    }
    # pytest-django names the settings, which a role must find by itself
    given = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-m", "memory_project.serve", name]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=given | own, stdout=log, stderr=subprocess.STDOUT)
    role = Role(process=process, port=mcp if name == "mcp" else health, log=folder / "log")
    try:
        deadline = time.monotonic() + 4 * PATIENCE_SECONDS
        while not role.is_live():
            assert time.monotonic() < deadline, role.log.read_text()
            time.sleep(0.1)
        yield role
    finally:
        process.kill()
        process.wait()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "name", ["web", *(pytest.param(name, marks=pytest.mark.slow) for name in ("worker", "beat", "mcp"))]
)
def test_a_role_answers_probes_and_scrapes_logs_json_and_stops(tmp_path: Path, name: str) -> None:
    check_keys()
    with serving(name, tmp_path) as role:
        ready, _ = role.get("/health/ready")
        status, figures = role.get("/metrics")
        ended = role.stop()

    named = {line.split()[2] for line in figures.splitlines() if line.startswith("# TYPE")}
    # uvicorn ends by the signal that it has handled
    assert (status, ended) == (200, -signal.SIGTERM if name == "mcp" else 0)
    # the MCP server's service is not there
    assert ready == (503 if name == "mcp" else 200)
    assert named
    assert all(figure.startswith("memory_") for figure in named)
    logged = [json.loads(line) for line in role.log.read_text().splitlines()]
    assert all({"time", "level", "message"} <= set(line) for line in logged)
    assert not [line for line in logged if line["level"] in {"ERROR", "CRITICAL"}]
    if name == "web":
        [seen] = [line for line in logged if line.get("route") == "/health/ready"]
        assert (seen["logger"], seen["method"], seen["status"]) == ("memory_project.access", "GET", 200)


@pytest.mark.slow
def test_a_role_without_servers_or_with_malformed_settings_says_so_in_one_line(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}
    command = [sys.executable, "-m", "memory_project.serve", "worker"]
    for own, words in (
        ({}, "set DATABASE_URL and REDIS_URL"),
        ({"MEMORY_WEB_WORKERS": "x"}, "MEMORY_WEB_WORKERS must"),
    ):
        given = clean | {"MEMORY_LOG_FORMAT": "json", "MEMORY_DATA_DIR": str(tmp_path)} | own
        ended = subprocess.run(command, env=given, capture_output=True, text=True, check=False)

        assert ended.returncode == 1
        assert words in json.loads(ended.stderr)["message"]


def test_lines_of_all_parts_name_their_part_as_json() -> None:
    own = json.loads(format_as_json("web", '{"level": "INFO", "message": "Listening"}'))
    foreign = json.loads(format_as_json("worker", "Traceback (most recent call last):"))

    assert own == {"part": "web", "level": "INFO", "message": "Listening"}
    assert (foreign["part"], foreign["message"]) == ("worker", "Traceback (most recent call last):")
