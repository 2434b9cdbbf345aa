"""The table of commands in the documentation."""

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
MODULES = [
    path.stem for app in ("memory", "lab") for path in (PROJECT / app / "management" / "commands").glob("[a-z]*.py")
]
FIRST_STEPS = {"migrate", "export"}
"""A step of the installation, and a short name."""


def test_the_table_of_commands_has_all_of_them() -> None:
    text = (PROJECT / "docs" / "operations.md").read_text()
    section = text.partition("\n## Commands\n")[2].partition("\n## ")[0]

    named = {name for line in section.splitlines() if line.startswith("|") for name in re.findall(r"`(\w+)[ `]", line)}

    assert sorted({*MODULES} - FIRST_STEPS - named) == []
