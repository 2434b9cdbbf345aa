"""docs/from-the-documents.md lists every documented name with an import path that imports and routes that exist."""

import importlib
import pkgutil
import re
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import settings
from django.urls import resolve

from memory import documented

PAGE = (Path(settings.BASE_DIR) / "docs" / "from-the-documents.md").read_text()
TABLE = PAGE.partition("## Every name, its import, route and key")[2].partition("\n## ")[0]
IMPORTS = sorted(set(re.findall(r"`(memory(?:\.\w+)+)`", TABLE)))
ROUTES = sorted(set(re.findall(r"`(/[\w{}/-]+)`", TABLE)))
DOCUMENTS = ("three_layer", "tiers", "cognitive", "evidence", "sessions")


@pytest.mark.parametrize("path", IMPORTS)
def test_an_import_path_imports(path: str) -> None:
    module, _, name = path.rpartition(".")

    assert getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_name_of_a_document_is_listed(document: str) -> None:
    module = importlib.import_module(f"memory.documented.{document}")

    assert {f"memory.documented.{document}.{name}" for name in module.__all__} <= set(IMPORTS)


def test_the_package_has_a_module_per_document() -> None:
    modules = {module.name for module in pkgutil.iter_modules(documented.__path__)}

    assert set(DOCUMENTS) <= modules


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_is_served(route: str) -> None:
    path = re.sub(r"{\w+}", str(uuid4()), route)

    assert resolve(f"/api/v1{path}")
