"""Episodes are found by meaning from their list."""

import math

import pytest
from django.test import Client
from pytest_django import Settings

from memory.models import Account
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.services.embedding.embed import embed_texts
from memory.services.summaries.store import EpisodeDraft, store_episodes
from tests.memory.admin.pages import list_url, shown
from tests.memory.episodes import NOW, draft, store

PUMP, CAKE = "The water pump in the garden was repaired.", "The bakery ordered almond flour for the cake."


@pytest.fixture
def episodes(owner: Owner) -> None:
    drafts = [EpisodeDraft(conversation_id=name, summary=text) for name, text in (("garden", PUMP), ("bakery", CAKE))]
    store_episodes(owner, drafts=drafts, embedded=embed_texts([PUMP, CAKE]), now=NOW)


@pytest.mark.usefixtures("episodes")
def test_the_nearest_come_first_with_their_similarity(staff: Client, account: Account) -> None:
    response = staff.get(list_url("episodicmemory", account=account.id, meaning=PUMP))

    found = [(row.conversation_id, row.similarity) for row in response.context["cl"].result_list]
    assert [conversation_id for conversation_id, _ in found] == ["garden", "bakery"]
    assert math.isclose(found[0][1], 1.0, abs_tol=0.01)
    assert "1.000" in shown(response)


@pytest.mark.usefixtures("episodes")
def test_filters_apply_to_search_results(staff: Client, account: Account) -> None:
    response = staff.get(list_url("episodicmemory", account=account.id, meaning=PUMP, archived__exact=1))

    assert response.context["cl"].result_count == 0


@pytest.mark.usefixtures("episodes")
def test_meaning_is_searched_as_the_chosen_agent(staff: Client, account: Account) -> None:
    response = staff.get(list_url("episodicmemory", account=account.id, meaning=PUMP, meaning_agent="somebody"))

    assert response.context["cl"].result_count == 0


@pytest.mark.usefixtures("episodes")
def test_meaning_is_searched_within_an_account(staff: Client, stranger: Account) -> None:
    elsewhere = staff.get(list_url("episodicmemory", account=stranger.id, meaning=PUMP))
    nowhere = staff.get(list_url("episodicmemory", meaning=PUMP))

    assert elsewhere.context["cl"].result_count == 0
    assert "Choose an account" in shown(nowhere)


def test_the_list_says_when_episodes_wait_for_their_vector(staff: Client, owner: Owner) -> None:
    store(owner, draft("The pump waits."))

    response = staff.get(list_url("episodicmemory", account=owner.account_id, meaning="pump"))

    assert response.context["cl"].result_count == 1
    assert "still wait for their vector" in shown(response)


def test_the_list_says_when_the_embedder_gives_no_answer(staff: Client, owner: Owner, settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "openai"
    settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "http://127.0.0.1:9/v1", "test"
    settings.EMBEDDING_TIMEOUT_SECONDS = 0.5
    embedding_provider.cache_clear()
    store(owner, draft("The pump waits."))

    response = staff.get(list_url("episodicmemory", account=owner.account_id, meaning="pump at noon"))

    embedding_provider.cache_clear()
    assert response.context["cl"].result_count == 1
    assert "The embedder does not answer" in shown(response)


@pytest.mark.parametrize("question", ["x" * 3_000, "a\tb", "'; DROP TABLE memories; --", "🙂", "%"])
def test_any_search_text_gets_a_page_without_an_error(staff: Client, account: Account, question: str) -> None:
    response = staff.get(list_url("episodicmemory", account=account.id, meaning=question))

    assert response.status_code == 200
