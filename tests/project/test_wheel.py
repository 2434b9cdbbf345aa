"""The wheel, built and installed into an environment of its own, far from the clone: it starts, stores and recalls."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from lab.ports import find_port
from tests.project.test_up import SECONDS, SERVER_VARIABLES, data_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = ("lab", "ledger", "memory", "memory_project", "templates")
FILES = ("LICENSE", "README.md", "manage.py", "pyproject.toml", "setup.py")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment with the wheel, which finds its dependencies in ours."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in SOURCES:
        shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(PROJECT / name, source)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    (Path(site) / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python.parent


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with data_folder() as data:
        kept = {name: value for name, value in os.environ.items() if name not in {*SERVER_VARIABLES, "PYTHONPATH"}}
        own = {"MEMORY_DATA_DIR": str(data), "MEMORY_PORT": str(find_port()), "MEMORY_LOG_FORMAT": "json"}
        own |= {"MEMORY_MCP_PORT": "none", "MEMORY_HEALTH_PORT": "none"}
        yield kept | own


def test_an_installed_wheel_starts_stores_and_recalls(programs: Path, environ: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [programs / "agent-memory", "up"], env=environ, cwd=tmp_path, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + 2 * SECONDS
        while "ready: http" not in (text := log.read_text()):
            assert process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.2)
        lines = [json.loads(line) for line in text.splitlines()]
        [key] = [line["api_key"] for line in lines if "api_key" in line]

        def ask(path: str, body: dict[str, Any]) -> Any:
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            url = f"http://127.0.0.1:{environ['MEMORY_PORT']}/api/v1{path}"
            with urlopen(Request(url, data=json.dumps(body).encode(), headers=headers), timeout=SECONDS) as answer:
                return json.load(answer)

        ask("/memories", {"agent_id": "assistant", "text": "Ana prefers window seats."})
        [found] = ask("/recall", {"agent_id": "assistant", "query": "Which seats?", "top_k": 1})["results"]
        with urlopen(f"http://127.0.0.1:{environ['MEMORY_PORT']}/api/docs", timeout=SECONDS) as page:
            assert page.status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)

    assert found["text"] == "Ana prefers window seats."
    assert process.returncode == 0
    assert [line for line in log.read_text().splitlines() if not line.startswith("{")] == []


def test_the_command_says_what_it_can_do(programs: Path, environ: dict[str, str], tmp_path: Path) -> None:
    helped = subprocess.run(
        [programs / "agent-memory", "--help"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    version = subprocess.run(
        [programs / "agent-memory", "manage", "version"], cwd=tmp_path, env=environ, capture_output=True, check=True
    )

    assert re.findall(r"^    agent-memory (\S+)", helped.stdout, re.MULTILINE) == [
        "up",
        "serve",
        "manage",
        "make-secrets",
    ]
    assert version.stdout.strip()
