"""Tests for the usage of a recall's language model: it is added up, and never costs an answer."""

import logging

import pytest
from django.db import connection
from pytest_django import Settings

from memory.models import ModelUsage
from memory.owner import Owner
from memory.providers.language_models import language_model
from memory.retrieval.candidates import Bundle
from memory.retrieval.queries import Query
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, recall
from tests.language_model_server import COMPLETION_TOKENS, MODEL, PROMPT_TOKENS, LanguageModelServer
from tests.memory import episodes
from tests.memory.episodes import NOW, direction
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture(autouse=True)
def model(language_model_server: LanguageModelServer, settings: Settings) -> None:
    settings.RECALL_MODEL = MODEL
    language_model.cache_clear()


def run_recall(owner: Owner) -> Bundle:
    own = ClientVector(model=episodes.MODEL, vector=direction(0))
    return recall(owner, RecallRequest(query=Query(text="Where is the archive?"), own=own), now=NOW)


def test_each_recall_adds_the_usage_of_its_model(owner: Owner) -> None:
    run_recall(owner)
    run_recall(owner)

    usage = ModelUsage.objects.get(account_id=owner.account_id, use="recall", model=MODEL)
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2, 2 * PROMPT_TOKENS, 2 * COMPLETION_TOKENS)


def test_a_failure_to_record_usage_costs_no_answer(owner: Owner, caplog: pytest.LogCaptureFixture) -> None:
    say(owner, turn("the archive moved"))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE model_usage RENAME TO away")

    with caplog.at_level(logging.WARNING):
        bundle = run_recall(owner)

    assert [result.text for result in bundle.results] == ["the archive moved"]
    assert "not recorded: ProgrammingError" in caplog.text
