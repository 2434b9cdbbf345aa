"""An agent over two days, written by somebody who knows the README and nothing else.

Each of the README's Python blocks is a program of its own: another process with only the client installed.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memory.models import Account, Goal, ToolInvocation, Turn
from memory.services.accounts.register import issue_key
from tests.web_server import SharedServers

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCKS = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]


def run_day(program: str, *, url: str, key: str, folder: Path) -> list[str]:
    """Run a program in an empty folder and return the lines that it printed."""
    environ = {
        "AGENT_MEMORY_BASE_URL": url,
        "AGENT_MEMORY_API_KEY": key,
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_quickstart_of_the_client_is_that_of_the_readme() -> None:
    theirs = (ROOT / "clients" / "python" / "README.md").read_text()

    assert BLOCKS.findall(theirs)[:2] == BLOCKS.findall((ROOT / "README.md").read_text())


@pytest.mark.slow
def test_an_agent_of_two_days_needs_nothing_but_the_readme(shared_server: SharedServers, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{shared_server({'EMBEDDING_PROVIDER': 'local'}).port}"
    key = issue_key(Account.objects.create(name="default"), scopes=["read", "write"]).secret
    monday, tuesday = BLOCKS.findall((ROOT / "README.md").read_text())

    first = run_day(monday, url=url, key=key, folder=tmp_path)
    second = run_day(tuesday, url=url, key=key, folder=tmp_path)

    assert first == ["True False"]
    assert "- book the flight to Madeira" in second
    assert any("search_flights failed: timeout after 30 s" in line for line in second)
    assert second[-3:] == [
        "Ana prefers window seats.",
        "search_flights failed 1",
        "['seats 12A and 12B']",
    ]
    assert (Turn.objects.count(), Goal.objects.get().status, ToolInvocation.objects.get().success) == (
        2,
        "completed",
        False,
    )
