"""`manage.py reembed`: the documented way from one embedding model to another."""

import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memory.models import ServingModelState
from memory.owner import Owner
from memory.services.embedding.change import record_serving_model
from memory.services.embedding.serving import serving_model
from tests.embedding_server import answer_vectors
from tests.memory.reembedding import (
    begin,
    count_vectors,
    forget_models,
    found_by_meaning,
    go_on,
    remember,
    settle,
    tiny,
)
from tests.memory.reembedding import tiny_models as tiny_models

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tiny_models")]

PAGE = Path(__file__).resolve().parent.parent.parent.parent / "docs" / "operations.md"
COMMAND = re.compile(r"^ *\.venv/bin/python manage\.py (reembed .+)$", re.MULTILINE)


@pytest.fixture
def endpoint(httpserver: HTTPServer, settings: Settings) -> Iterator[str]:
    """An endpoint with models of any width, as the dimensions of each request say; 8 without."""
    settings.OPENAI_BASE_URL = httpserver.url_for("/v1")
    settings.EMBEDDING_TIMEOUT_SECONDS = 20.0
    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(answer_any_width)
    cache.clear()
    yield settings.OPENAI_BASE_URL
    cache.clear()


def answer_any_width(request: Request) -> Response:
    asked: dict[str, Any] = json.loads(request.data)
    width = asked.get("dimensions", 8)
    drawn = (np.random.default_rng(sum(text.encode())).normal(size=width) for text in asked["input"])
    return answer_vectors([vector.tolist() for vector in drawn])


def reembed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("reembed", *arguments, stdout=out)
    return out.getvalue()


def test_the_documented_commands_change_the_model(owner: Owner, endpoint: str) -> None:
    remember(owner, "The boiler was repaired")
    commands = [shlex.split(line)[1:] for line in COMMAND.findall(PAGE.read_text())]
    served = [[*line, "--provider", "openai"] if "--model" in line else line for line in commands]

    printed = []
    for line in served:
        settle()
        printed.append(reembed(*line))

    assert [line[-1] for line in commands] == ["--dry-run", "1024", "--json", "--finish"]
    assert "Would change to text-embedding-3-large (1024 dimensions): 1 memories to embed" in printed[0]
    assert "Searches are served by text-embedding-3-large (1024 dimensions)." in printed[1]
    assert "Vectors of tiny-64 (64 dimensions), which served before, are kept" in printed[1]
    status = json.loads(printed[2])
    assert (status["serving"]["width"], status["former"]["model"], status["phase"]) == (1024, "tiny-64", "idle")
    assert count_vectors() == {"text-embedding-3-large": 1}
    assert found_by_meaning(owner, "The boiler was repaired")[0] == ["The boiler was repaired"]


def test_a_dry_run_changes_nothing(owner: Owner) -> None:
    remember(owner, "The boiler was repaired")

    plan = json.loads(reembed("--provider", "tiny", "--width", "384", "--dry-run", "--json"))

    assert plan == {
        "dry_run": True,
        "next": {"model": "tiny-384", "width": 384, "provider": "tiny"},
        "to_embed": 1,
        "embedded": 0,
        "megabytes": 0,
    }
    assert (count_vectors(), ServingModelState.objects.get().next) == ({"tiny-64": 1}, None)


def test_without_a_model_the_configured_one_is_changed_to(owner: Owner, endpoint: str, settings: Settings) -> None:
    remember(owner, "The boiler was repaired")
    record_serving_model()
    settings.EMBEDDING_PROVIDER, settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS = "openai", "other", 16
    forget_models()

    during = found_by_meaning(owner, "The boiler was repaired")
    printed = reembed()

    assert during == (["The boiler was repaired"], ["embedding_model_differs"])
    assert "Searches are served by other (16 dimensions)." in printed
    assert (serving_model().name, count_vectors()) == ("other", {"tiny-64": 1, "other": 1})
    assert found_by_meaning(owner, "The boiler was repaired") == (["The boiler was repaired"], [])


def test_a_change_that_is_under_way_can_be_left_to_the_worker_and_given_up(owner: Owner) -> None:
    remember(owner, "The boiler was repaired")

    begun = reembed("--provider", "tiny", "--width", "384", "--no-wait")
    given_up = reembed("--abort")

    assert "A change to tiny-384 (384 dimensions) is going on (walk)" in begun
    assert "A change" not in given_up
    assert count_vectors() == {"tiny-64": 1}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--provider", "local", "--width", "7"], "have 384 dimensions, not 7"),
        (["--provider", "local", "--model", "e5"], "name the folder of e5 by --folder"),
        (["--provider", "openai", "--base-url", "http://me:secret@host/v1"], "must hold no password"),
        (["--provider", "tiny", "--width", "64"], "serves already"),
        (["--finish"], "no former embedding model"),
        (["--finish", "--dry-run"], "leave --abort and --finish out"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(arguments: list[str], sentence: str) -> None:
    record_serving_model()

    with pytest.raises(CommandError, match=sentence):
        reembed(*arguments)


def test_an_endpoint_that_does_not_have_the_width_is_refused(endpoint: str, httpserver: HTTPServer) -> None:
    httpserver.clear()
    httpserver.expect_request("/v1/embeddings").respond_with_response(answer_vectors([[1.0, 0.0]]))

    with pytest.raises(CommandError, match=r"vectors are \[2\] wide, not 16"):
        reembed("--provider", "openai", "--model", "narrow", "--width", "16")


@pytest.mark.slow
def test_a_change_that_was_stopped_goes_on_with_the_same_command(owner: Owner) -> None:
    remember(owner, "one", "two", "three")
    begin(tiny(384))
    go_on(until="index", size=2)

    assert "served by tiny-384" in reembed("--provider", "tiny", "--width", "384")
    started_at = ServingModelState.objects.get().started_at
    assert started_at is not None
    assert started_at < timezone.now()
