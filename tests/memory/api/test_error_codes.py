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
from memory_project.http.error_codes import ERROR_CODES, render_pages, type_of
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


def test_docs_has_a_page_for_each_code_and_one_for_all() -> None:
    pages = [ROOT / "docs" / "errors.md", *(ROOT / "docs" / "errors").glob("*.md")]
    texts = {str(page.relative_to(ROOT / "docs")): page.read_text() for page in pages}

    assert texts == dict(render_pages()), "Run: python -m memory_project.http.error_codes docs"


@pytest.mark.django_db
def test_the_type_of_a_problem_leads_to_the_page_of_its_code(api: ServiceClient) -> None:
    problem = api.get("/facts?colour=red").json()

    html = Client().get(problem["type"]).content.decode()

    assert "<h1>invalid</h1>" in html
    assert "&quot;code&quot;: &quot;invalid&quot;" in html
    assert not re.search(r"<style|style=|<script>|\son\w+=|`", html)


@pytest.mark.django_db
@pytest.mark.parametrize("code", ERROR_CODES)
def test_every_code_has_a_page(code: str) -> None:
    answer = Client().get(type_of(code))

    assert (answer.status_code, f"<h1>{code}</h1>" in answer.content.decode()) == (200, True)


@pytest.mark.django_db
def test_a_page_lists_all_codes_and_there_is_none_of_another_code() -> None:
    html = Client().get("/api/docs/errors").content.decode()

    assert set(re.findall(r'<section id="(\w+)">', html)) == set(ERROR_CODES)
    assert not re.search(r"<style|style=|<script>|\son\w+=|`", html)
    assert Client().get("/api/docs/errors/nonsense").status_code == 404
