"""Files and folders that the documents name exist, and so do the names that they say are in them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "clients/python/README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PATH = re.compile(r"`((?:memory|memory_project|ledger|lab|tests|docs|templates)/[\w./-]*)`")
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
NAME_IN_FILE = re.compile(r"`(\w+)` in `([\w/]+\.py)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_named_in_documents_exist(page: Path) -> None:
    named = PATH.findall(page.read_text())

    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_linked_files_exist(page: Path) -> None:
    linked = LINK.findall(page.read_text())

    assert [path for path in linked if not (page.parent / path).exists()] == []


def test_names_that_documents_place_in_a_file_are_in_it() -> None:
    named = {pair for page in PAGES for pair in NAME_IN_FILE.findall(page.read_text())}

    lost = [(name, path) for name, path in sorted(named) if not re.search(rf"\b{name}\b", (ROOT / path).read_text())]

    assert named
    assert lost == []
