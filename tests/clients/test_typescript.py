"""The TypeScript client: its generated files, `tsc --strict`, and its own tests against the service.

They need Node with npm, and are skipped without. The packages of npm are kept in `.environments/`.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.integrations.environments import FOLDER, UNREACHABLE, run
from tests.web_server import SharedServers

PROJECT = Path(__file__).resolve().parents[2] / "clients" / "typescript"
PAGES = (PROJECT / "README.md", PROJECT.parents[1] / "docs" / "guides" / "typescript.md")
SOURCES = ("src", "test", "package.json", "tsconfig.json", "tsconfig.test.json")
BLOCK = re.compile(r"^```ts\n(.*?)^```$", re.M | re.S)
IMPORT = re.compile(r"^import .*$", re.M)
INSTALL = re.compile(r"^npm .*?(?=\s*#|$)", re.M)
NODE_SECONDS = 240


def load_generator() -> Any:
    spec = importlib.util.spec_from_file_location("typescript_generate", PROJECT / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_operations_are_up_to_date() -> None:
    assert (PROJECT / "src" / "operations.ts").read_text() == load_generator().write_operations(), "Run: make client"


def test_the_client_needs_no_packages() -> None:
    assert "dependencies" not in json.loads((PROJECT / "package.json").read_text())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the client with its tools, and with the blocks of its pages as tests."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("no Node: the TypeScript client was not tested")
    copy = tmp_path / "typescript"
    copy.mkdir()
    for name in SOURCES:
        source = PROJECT / name
        shutil.copytree(source, copy / name) if source.is_dir() else shutil.copy(source, copy)
    (copy / "node_modules").symlink_to(install_packages())
    (copy / "test" / "pages.test.ts").write_text(write_page_tests())
    return copy


def write_page_tests() -> str:
    """Return a test for each page of the documentation: its blocks, in order."""
    pages = [page.read_text() for page in PAGES]
    imports = dict.fromkeys(IMPORT.findall("\n".join("\n".join(BLOCK.findall(page)) for page in pages)))
    tests = [
        f'test("page {number}", async () => {{\n{IMPORT.sub("", "".join(BLOCK.findall(page)))}}});'
        for number, page in enumerate(pages)
    ]
    tools = ['import assert from "node:assert/strict";', 'import { test } from "node:test";']
    own = [line.replace('"agent-memory-client"', '"../src/index.js"') for line in imports]
    return "\n".join([*tools, *own, "console.assert = assert;", *tests])


def install_packages() -> Path:
    """Return the folder of the packages that the lock of npm names."""
    digest = hashlib.sha256((PROJECT / "package-lock.json").read_bytes()).hexdigest()[:8]
    folder = FOLDER / f"typescript-{digest}"
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / ".typescript").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            folder.mkdir(exist_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(PROJECT / name, folder)
            run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder))
            (folder / "made").touch()
    return folder / "node_modules"


def run_node(project: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    path = f"{project / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=project,
        env={**os.environ, **environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=NODE_SECONDS,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_types_are_those_of_the_openapi_document(project: Path) -> None:
    call_command("spectacular", format="openapi-json", file=str(project / "openapi.json"))
    document = load_generator().shorten(json.loads((project / "openapi.json").read_text()))
    (project / ".document.json").write_text(json.dumps(document))

    done = run_node(project, "npm", "run", "types")

    assert done.returncode == 0, done.stderr
    assert (project / "src" / "schema.ts").read_text() == (PROJECT / "src" / "schema.ts").read_text(), (
        "Run: make client-typescript"
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_client_compiles_strictly_and_passes_its_tests(
    project: Path, transfer_worker: None, empty_redis: None, shared_server: SharedServers, api_key: str
) -> None:
    url = f"http://127.0.0.1:{shared_server({}).port}"

    compiled = run_node(project, "tsc", "--project", "tsconfig.json", "--noEmit")
    tested = run_node(project, "npm", "test", AGENT_MEMORY_BASE_URL=url, AGENT_MEMORY_API_KEY=api_key)

    assert compiled.returncode == 0, compiled.stdout
    assert tested.returncode == 0, tested.stdout[-6_000:] + tested.stderr[-2_000:]
    assert re.search(r"^# pass (\d+)$", tested.stdout, re.M), tested.stdout[-2_000:]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_documented_commands_install_a_fresh_clone_into_another_project(tmp_path: Path, page: Path) -> None:
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("no Node: the TypeScript client was not installed")
    made = shutil.ignore_patterns("node_modules", "dist", "build")
    shutil.copytree(PROJECT, tmp_path / "clone" / "clients" / "typescript", ignore=made)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "package.json").write_text("{}")

    for command in INSTALL.findall(page.read_text()):
        if command.startswith("npm install"):
            run_in(tmp_path / "agent", *command.replace("./", "../clone/").split())
        else:
            run_in(tmp_path / "clone", *command.split())

    loaded = run_in(
        tmp_path / "agent", "node", "-e", 'import("agent-memory-client").then((it) => console.log(it.Client))'
    )
    assert "class Client" in loaded


def run_in(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=NODE_SECONDS, check=False)
    if done.returncode and any(sign in done.stderr for sign in UNREACHABLE):
        pytest.skip(f"no environment: {' '.join(command)}: {done.stderr[-500:]}")
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout
