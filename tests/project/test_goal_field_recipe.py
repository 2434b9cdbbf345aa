"""The recipe for a field of a goal in docs/contributing.md, applied to a copy of the project as it is written there."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import template

ROOT = Path(__file__).resolve().parent.parent.parent
COPIED = ("ledger", "manage.py", "memory", "memory_project", "pyproject.toml", "templates")
MARKER = "<!-- tested by tests/project/test_goal_field_recipe.py -->"
BLOCK = re.compile(rf"{MARKER}\n```(\w+)\n(.*?)\n```\n", re.DOTALL)
MAX_PLACES = 4
DATABASE = "goal_field_recipe"
STORE_GOAL = "from tests.project.goal_field_client import store_goal; store_goal()"
USE_FIELD = """
from tests.project.goal_field_client import use_field
use_field("effort_hours", stored=3, changed=5, corrected=8)
"""


def read_recipe() -> tuple[str, str]:
    """Return the diff and the commands of the recipe."""
    blocks = dict(BLOCK.findall((ROOT / "docs" / "contributing.md").read_text()))
    assert set(blocks) == {"diff", "sh"}
    return blocks["diff"], blocks["sh"]


def apply_diff(diff: str, folder: Path) -> int:
    """Apply the changes to the files in the folder and return the number of places. Each place must be unique."""
    places = 0
    for name, change in re.findall(r"^--- (\S+)\n(.*?)(?=^--- |\Z)", diff + "\n", re.DOTALL | re.MULTILINE):
        lines = change.splitlines()
        before, after = ("\n".join(line[1:] for line in lines if line[0] in side) + "\n" for side in (" -", " +"))
        text = (folder / name).read_text()
        assert text.count(before) == 1, f"{name} has not one place that reads {before!r}"
        (folder / name).write_text(text.replace(before, after))
        places += 1
    return places


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """The environment of a migrated database of this test's own."""
    template.wait_until_made()
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {DATABASE} TEMPLATE {template.NAME}".encode())
        yield os.environ | {
            "DATABASE_URL": url.replace("/memory?", f"/{DATABASE}?"),
            "EMBEDDING_PROVIDER": "tiny",
            "MEMORY_ALLOW_TINY_EMBEDDINGS": "1",
            # the tests are imported from here, everything else from the copy
            "PYTHONPATH": str(ROOT),
        }
        server.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)".encode())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project without tests and data."""
    for name in COPIED:
        copy: Any = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.slow
def test_a_field_added_by_the_recipe_is_stored_answered_changed_documented_and_edited(
    project: Path, environment: dict[str, str]
) -> None:
    diff, commands = read_recipe()

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        return done.stdout

    run("manage.py", "shell", "--no-imports", "--command", STORE_GOAL)
    assert apply_diff(diff, project) <= MAX_PLACES
    for command in commands.splitlines():
        run(*command.split()[1:])
    shown = json.loads(run("manage.py", "shell", "--no-imports", "--command", USE_FIELD))

    [migration] = {path.name for path in project.glob("memory/migrations/*.py")} - {
        path.name for path in ROOT.glob("memory/migrations/*.py")
    }
    assert migration.endswith("_goal_effort_hours.py")
    answers = ["CompletedGoal", "GoalWithRelated", "StoredGoal"]
    assert shown == {
        "created": 3,
        "read": 3,
        "patched": 5,
        "listed": 5,
        "refused": 400,
        "default": 0,
        "older": 0,
        "form": 5,
        "saved": 302,
        "row": 8,
        "documented": sorted([*answers, "NewGoalRequest", "GoalChangeRequest"]),
        "required": answers,
    }
