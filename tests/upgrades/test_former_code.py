"""The last version's own code runs on the schema of this one, as its web servers do while they are replaced."""

import json
import os
import re
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from memory_project.embedded.paths import PROJECT
from tests.upgrades.checksums import ENCRYPTION_KEY
from tests.upgrades.test_additive import version_of
from tests.upgrades.test_upgrades import DUMPS, database_of, manage

REQUESTS = """
import json, os, sys

os.environ["DJANGO_SETTINGS_MODULE"] = "memory_project.settings"
import django

django.setup()
from django.test.utils import setup_test_environment

setup_test_environment()
from memory.models import Account, ApiKey
from memory.services.accounts.register import issue_key
from tests.api_client import ServiceClient
from tests.memory.hot_paths import CHANGING, ERASING, READING, STORING, HotPaths

account = Account.objects.create(name=sys.argv[1])
keys = [issue_key(account, scopes=list(ApiKey.Scope), agent_id=agent_id) for agent_id in ("assistant", "")]
paths = HotPaths(*(ServiceClient(key.secret) for key in keys))
refusals = paths.send_all([*STORING, *READING, *CHANGING, *ERASING])
print(json.dumps({"refusals": refusals, "sent": len(paths.sent)}))
"""
"""Sends the requests of the former version's tests, of nearly all of its operations, for a new account."""
STATUS = re.compile(r"^.*?: \d{3}", re.DOTALL)
MIN_OPERATIONS = 150


def git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""


def find_commit(dump: Path) -> str:
    """Return the commit of the version of a dump: that of its tag, else the one that added the dump."""
    version = dump.name.removesuffix(".sql.gz")
    tagged = git("rev-list", "-1", f"v{version}")
    return (tagged or git("log", "-1", "--format=%H", "--", str(dump))).decode().strip()


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """The tree of the last version."""
    commit = find_commit(max(DUMPS, key=version_of))
    if not commit:
        pytest.skip("the last version is read from the history, which is not here")
    with tarfile.open(fileobj=BytesIO(git("archive", commit))) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def variables_of(tree: Path, url: str) -> dict[str, str]:
    """Return the environment of the code of a tree on a database."""
    data = {} if tree == PROJECT else {"MEMORY_DATA_DIR": str(tree / ".data")}
    return {"DATABASE_URL": url, "MEMORY_ENCRYPTION_KEYS": ENCRYPTION_KEY, "PYTHONPATH": str(tree), **data}


def run_code(tree: Path, url: str, code: str, *arguments: str) -> Any:
    """Run a script with the code of a tree, and return the JSON of the last line that it prints."""
    command, environ = [sys.executable, "-c", code, *arguments], os.environ | variables_of(tree, url)
    done = subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])


def send_requests(former: Path, url: str, *, account: str) -> tuple[list[str], int]:
    """Return which requests to the former code were refused, with their status, and how many operations there were."""
    answer = run_code(former, url, REQUESTS, account)
    return [found[0] for each in answer["refusals"] if (found := STATUS.match(each))], answer["sent"]


@pytest.mark.slow
@pytest.mark.django_db
def test_the_last_version_answers_on_this_schema_as_on_its_own(former: Path) -> None:
    with database_of(max(DUMPS, key=version_of)) as url:
        before, operations = send_requests(former, url, account="before")
        manage("migrate", "--verbosity=0", url=url)
        after, _ = send_requests(former, url, account="after")

    assert after == before
    assert operations > MIN_OPERATIONS
    assert len(before) < operations / 10, before
