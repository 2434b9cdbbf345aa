"""Every code block of the READMEs and of `docs/` runs, in the order of its page, against a real service.

- `python` blocks run in this process, on the database of the service, and share their names within a page.
  The Python client finds the address and the key in its environment variables.
- `sh` blocks run in bash, with the key of a fresh account in `KEY`, the address of the API in `BASE`, and the commands
  of the project on the service's database. A block that exits with an error fails.
- A `json` block right below a block is what its last command printed: members that are not mentioned may be there,
  `"…"` stands for any value, and a list may go on behind its last `"…"`.
- Blocks of other languages (`text`, `toml`, `nginx`) are not run. A `sh` or `python` block is left out only where
  `<!-- tested by tests/… -->` stands above it and names an existing file.
"""

import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser

from memory.models import Account
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.web_server import SharedServers, database_url

ROOT = Path(__file__).resolve().parent.parent.parent
FIRST_PAGE = ROOT / "README.md"
"""The page whose blocks are no slow test."""
CLIENT_PAGE = ROOT / "clients" / "python" / "README.md"
ALL_PAGES = (FIRST_PAGE, CLIENT_PAGE, *sorted((ROOT / "docs").rglob("*.md")))
PAGES = [page for page in ALL_PAGES if "```" in page.read_text()]
TESTED_ELSEWHERE = re.compile(r"<!-- tested by (tests/\S+) -->\s*\Z")
BLOCK_SECONDS = 240
ANY = "…"


class PageRunner:
    """Runs the blocks of one page: keeps what the last one printed, and the names that its blocks share."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        self._environ = environ
        self._shell_state = folder / "state.sh"
        self._shell_state.touch()
        self._names: dict[str, Any] = {}
        self._printed = ""

    def run(self, page: Path) -> None:
        runners = {"python": self.run_python, "sh": self.run_shell, "json": self.check_json}
        document = Document.parse(str(page), *(CodeBlockParser(name, run) for name, run in runners.items()))
        for example in document.examples():
            if not is_tested_elsewhere(example):
                example.evaluate()

    def run_python(self, example: Example) -> None:
        code = compile("\n" * example.line + example.parsed, example.path, "exec")
        with redirect_stdout(StringIO()) as printed:
            exec(code, self._names)  # the page's own code
        self._printed = printed.getvalue()

    def run_shell(self, example: Example) -> None:
        keep = f"\n{{ declare -f; export -p; }} > {self._shell_state}\n"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"set -a; source {self._shell_state}\n{example.parsed}{keep}"],
            cwd=ROOT,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=BLOCK_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"line {example.line}: {done.stderr[-2_000:]}{done.stdout[-2_000:]}"
        self._printed = done.stdout

    def check_json(self, example: Example) -> None:
        expected, printed = json.loads(example.parsed), last_json(self._printed)

        assert differences(expected, printed) == [], f"line {example.line}: {printed}"


def is_tested_elsewhere(example: Example) -> bool:
    """Return True if the block is left out here by naming the test that covers it, which must exist."""
    found = TESTED_ELSEWHERE.search(example.document.text[: example.start])
    if found:
        assert (ROOT / found[1].partition("::")[0]).exists(), f"line {example.line} names {found[1]}, which is gone"
    return found is not None


def last_json(printed: str) -> Any:
    """Parse what was printed: all of it as one document, or else its last line."""
    try:
        return json.loads(printed)
    except json.JSONDecodeError:
        return json.loads(printed.strip().splitlines()[-1])


def differences(expected: Any, found: Any, path: str = "$") -> list[str]:
    """List where `found` lacks something of `expected`."""
    if expected == ANY:
        return []
    if isinstance(expected, dict) and isinstance(found, dict):
        missing = [f"{path}.{name} is missing" for name in expected if name not in found]
        shared = [name for name in expected if name in found]
        return missing + [
            line for name in shared for line in differences(expected[name], found[name], f"{path}.{name}")
        ]
    if isinstance(expected, list) and isinstance(found, list):
        is_open = expected[-1:] == [ANY]
        wanted = expected[:-1] if is_open else expected
        if len(found) < len(wanted) or (len(found) > len(wanted) and not is_open):
            return [f"{path} has {len(found)} elements, not {len(wanted)}"]
        return [
            line for index, item in enumerate(wanted) for line in differences(item, found[index], f"{path}[{index}]")
        ]
    return [] if expected == found else [f"{path} is {found!r}, not {expected!r}"]


@pytest.fixture
def page_runner(
    transactional_db: None,
    empty_redis: None,
    shared_server: SharedServers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> PageRunner:
    """A runner against a service that embeds with the shipped model."""
    service = shared_server({"EMBEDDING_PROVIDER": "local"})
    account = Account.objects.create(name="default")
    environ = os.environ | {
        "DATABASE_URL": database_url(),
        "KEY": issue_key(account, scopes=READ_WRITE_OPERATE).secret,
        "BASE": f"http://127.0.0.1:{service.port}/api/v1",
        "TMPDIR": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    monkeypatch.setenv("AGENT_MEMORY_BASE_URL", environ["BASE"])
    monkeypatch.setenv("AGENT_MEMORY_API_KEY", environ["KEY"])
    return PageRunner(environ, tmp_path)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page == FIRST_PAGE else pytest.mark.slow) for page in PAGES],
    ids=[str(page.relative_to(ROOT)) for page in PAGES],
)
def test_every_code_block_of_a_page_runs(page: Path, page_runner: PageRunner) -> None:
    page_runner.run(page)


@pytest.mark.parametrize(
    ("expected", "found", "lines"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": "…"}, {"a": [1]}, []),
        ({"a": 1}, {"b": 2}, ["$.a is missing"]),
        ([1, "…"], [1, 2, 3], []),
        ([1], [1, 2], ["$ has 2 elements, not 1"]),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, ["$.a[0].b is 'y', not 'x'"]),
    ],
)
def test_differences_from_the_expected_json_are_listed(expected: Any, found: Any, lines: list[str]) -> None:
    assert differences(expected, found) == lines
