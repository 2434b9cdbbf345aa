"""The codes of problems: each is documented, and its `type` leads to the documentation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from rest_framework import exceptions

from memory import errors
from memory.api.problems import STATUS_OF
from memory_project.http.error_codes import ERROR_CODES, render_markdown
from tests.api_client import ServiceClient

ROOT = Path(__file__).parents[3]
FOLDERS = ("memory/api", "memory_project/http", "memory_project/web", "ledger")
SOURCES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
PLACES = {"Problem": 1, "_unavailable": 0}
"""Functions that take a code, with its place among the arguments."""


def codes_in_sources() -> Iterator[str]:
    """Yield the codes that the edges name."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                place = PLACES.get(node.func.id)
                given = [node.args[place]] if place is not None and len(node.args) > place else []
                named = [
                    each.value for each in node.keywords if each.arg == "code" and node.func.id == "ProblemDetails"
                ]
                yield from (str(each.value) for each in [*given, *named] if isinstance(each, ast.Constant))


def codes_of_exceptions() -> Iterator[str]:
    """Yield the codes of exceptions of the service and of DRF."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.MemoryServiceError) and {*kind.__mro__} & {*STATUS_OF}:
            yield kind.code
    for kind in vars(exceptions).values():
        if isinstance(kind, type) and issubclass(kind, exceptions.APIException):
            yield kind.default_code


def test_every_code_that_the_service_can_answer_is_documented() -> None:
    named = {*codes_in_sources(), *codes_of_exceptions(), "invalid_id", "bad_request"}

    # of APIException itself, which nothing raises
    assert named - {"error"} == set(ERROR_CODES)


def test_the_page_in_docs_has_the_documented_codes() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()

    assert text.splitlines() == [*render_markdown()], "Run: python -m memory_project.http.error_codes > docs/errors.md"


@pytest.mark.django_db
def test_the_type_of_a_problem_leads_to_the_section_of_its_code(api: ServiceClient) -> None:
    page, _, section = api.get("/facts?colour=red").json()["type"].partition("#")

    html = Client().get(page).content.decode()

    assert f'<section id="{section}">' in html
    assert set(re.findall(r'<section id="(\w+)">', html)) == set(ERROR_CODES)
    assert not re.search(r"<style|style=|<script>|\son\w+=|`", html)
