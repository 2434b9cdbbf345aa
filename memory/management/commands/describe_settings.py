"""`manage.py describe_settings`: docs/configuration.md, made from the declarations of all settings."""

import ast
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

import memory_project.settings
from memory import conf
from memory_project import up
from memory_project.env import DECLARED

PAGE = Path(settings.BASE_DIR) / "docs" / "configuration.md"
INTRODUCTION = """\
# Configuration

The service reads its settings from environment variables when it starts. A malformed value stops the start with a
sentence that names the variable and what it may be. `manage.py describe_settings --write` makes this page.
"""
SECTIONS: dict[str, ModuleType] = {
    "Installation": memory_project.settings,
    "Memory": conf,
    "`make up`": up,
}


class Command(BaseCommand):
    help = "Print the documentation of all settings as Markdown, or write it to docs/configuration.md."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help=f"write it to {PAGE.name} instead of printing it")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["write"]:
            PAGE.write_text(configuration_page())
        else:
            self.stdout.write(configuration_page())


def configuration_page() -> str:
    """Return docs/configuration.md: a table per module that declares settings, one setting a row."""
    sections = [f"## {title}\n\n{settings_table(module)}" for title, module in SECTIONS.items()]
    return "\n".join([INTRODUCTION, *sections])


def settings_table(module: ModuleType) -> str:
    rows = ["| variable | default | allowed | meaning |", "|---|---|---|---|"]
    for name, description in described_settings(module):
        declared = DECLARED[name]
        is_phrase = not declared.default or " " in declared.default
        default = (declared.default or "empty") if is_phrase else f"`{declared.default}`"
        rows.append(f"| `{name}` | {default} | {declared.allowed or 'any text'} | {description} |")
    return "\n".join([*rows, ""])


def described_settings(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Find the settings that a module declares, with what is said of each: below it, or where it is declared."""
    body = ast.parse(Path(str(module.__file__)).read_text()).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        for name in declared_names(statement):
            match following:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield name, " ".join(text.split())
                case _:
                    yield name, DECLARED[name].description


def declared_names(statement: ast.stmt) -> list[str]:
    """Return the setting that a statement at the top of a module declares, if any."""
    if not isinstance(statement, ast.Assign | ast.Expr):
        return []
    texts = [node.value for node in ast.walk(statement) if isinstance(node, ast.Constant)]
    return [text for text in texts if isinstance(text, str) and text in DECLARED][:1]
