"""What a recall's language model took is added up, and is never in the way of the answer."""

import logging

import pytest
from django.db import connection
from pytest_django import Settings

from memory.models import ModelUsage
from memory.owner import Owner
from memory.providers.language_models import language_model
from memory.retrieval.candidates import Bundle
from memory.retrieval.queries import Query
from memory.services.memories.store import OwnVector
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


def ask(owner: Owner) -> Bundle:
    own = OwnVector(model=episodes.MODEL, vector=direction(0))
    return recall(owner, RecallRequest(query=Query(text="Where is the archive?"), own=own), now=NOW)


def test_each_recall_adds_what_its_model_took(owner: Owner) -> None:
    ask(owner)
    ask(owner)

    usage = ModelUsage.objects.get(account_id=owner.account_id, use="recall", model=MODEL)
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (2, 2 * PROMPT_TOKENS, 2 * COMPLETION_TOKENS)


def test_a_sum_that_cannot_be_written_costs_no_answer(owner: Owner, caplog: pytest.LogCaptureFixture) -> None:
    say(owner, turn("the archive moved"))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE model_usage RENAME TO away")

    with caplog.at_level(logging.WARNING):
        bundle = ask(owner)

    assert [result.text for result in bundle.results] == ["the archive moved"]
    assert "not recorded: ProgrammingError" in caplog.text
