"""docs/configuration.md matches the declarations of the settings."""

import re
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from memory.management.commands.describe_settings import PAGE, SECTIONS, described_settings
from memory_project.env import DECLARED

DESCRIBED = [row for module in SECTIONS.values() for row in described_settings(module)]


def test_the_settings_page_matches_the_declarations() -> None:
    page = StringIO()

    call_command("describe_settings", stdout=page)

    assert PAGE.read_text() == page.getvalue(), "run `manage.py describe_settings --write`"


def test_every_declared_setting_is_described_once() -> None:
    assert sorted(name for name, _ in DESCRIBED) == sorted(DECLARED)


@pytest.mark.parametrize(("name", "description"), DESCRIBED)
def test_a_description_is_a_sentence(name: str, description: str) -> None:
    assert description[:1].isupper() or description[:1] == "`", name
    assert description.endswith("."), name


def test_every_variable_that_is_read_is_declared() -> None:
    code = [path.read_text() for path in (Path(settings.BASE_DIR) / "memory_project").rglob("*.py")]
    read = {
        name for text in code for name in re.findall(r"""environ(?:\.get\(|\[)["'](MEMORY_\w+|REDIS_\w+)["']""", text)
    }

    assert read <= set(DECLARED)
