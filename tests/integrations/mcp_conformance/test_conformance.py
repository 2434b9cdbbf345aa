"""The conformance suite of MCP passes, but for the scenarios that the files beside this one name with their reasons.

It needs npm, and gets Node 22 by it where there is an older one. Skipped without.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.ports import find_port
from memory.models import Account
from memory.services.accounts.register import READ_WRITE, issue_key
from tests.concurrency import PATIENCE_SECONDS
from tests.integrations.environments import FOLDER, OURS, ROOT, run
from tests.integrations.test_mcp import wait_for

SUITE, NODE = "@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22"
MIN_NODE = 22
LISTS = Path(__file__).parent
SUITE_SECONDS = 400


@pytest.fixture(scope="module")
def suite() -> tuple[str, ...]:
    """Return the command of the suite."""
    if not shutil.which("npm"):
        pytest.skip("the conformance suite of MCP needs npm")
    folder = FOLDER / SUITE.replace("/", "-")
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / ".conformance").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            folder.mkdir(exist_ok=True)
            packages = (SUITE,) if read_node_version("node") >= MIN_NODE else (SUITE, NODE)
            run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages)
            (folder / "made").touch()
    binaries = folder / "node_modules" / ".bin"
    node = shutil.which("node", path=f"{binaries}{os.pathsep}{os.environ['PATH']}") or "node"
    if read_node_version(node) < MIN_NODE:
        pytest.skip(f"the conformance suite of MCP needs Node {MIN_NODE}")
    return node, str(binaries / "conformance")


def read_node_version(node: str) -> int:
    """Return the first number of a Node's version, 0 without Node."""
    if not shutil.which(node):
        return 0
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    return int(said.strip().lstrip("v").split(".")[0])


@contextmanager
def serve(url: str, key: str, contents: str) -> Iterator[str]:
    port = find_port()
    paths = os.pathsep.join(map(str, (ROOT, *OURS)))
    command = [sys.executable, "-m", "tests.integrations.mcp_conformance.serve", str(port), url, key, contents]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize("contents", ["contents", "served"])
def test_the_conformance_suite_fails_only_where_it_is_expected_to(
    suite: tuple[str, ...], url: str, account: Account, contents: str, revision: str, tmp_path: Path
) -> None:
    key = issue_key(account, scopes=READ_WRITE, agent_id="assistant").secret
    expected = LISTS / f"{contents}-{revision}.yml"

    with serve(url, key, contents) as address:
        done = subprocess.run(
            [*suite, "server", "--url", address, "--requirements", revision, "--expected-failures", str(expected)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SUITE_SECONDS,
            check=False,
        )

    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert "Baseline check passed" in done.stdout
