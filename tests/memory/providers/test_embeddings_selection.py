from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from memory.providers.embeddings import embedding_provider, token_counter
from memory.providers.embeddings.local import LocalEmbeddings
from memory.providers.embeddings.openai import OpenAIEmbeddings
from memory.tokens import estimate_tokens


@pytest.fixture(autouse=True)
def unconfigured(settings: Settings) -> Iterator[None]:
    """The settings of a machine without any configuration."""
    settings.EMBEDDING_PROVIDER = settings.EMBEDDING_MODEL = settings.EMBEDDING_MODEL_DIR = ""
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = ""
    settings.EMBEDDING_DIMENSIONS = 1536
    settings.MEMORY_ALLOW_TINY_EMBEDDINGS = False
    embedding_provider.cache_clear()
    yield
    embedding_provider.cache_clear()


def test_the_offline_model_is_used_without_configuration() -> None:
    provider = embedding_provider()

    assert isinstance(provider, LocalEmbeddings)
    assert (provider.model, provider.width) == ("all-MiniLM-L6-v2", 384)


def test_tokens_are_counted_by_the_offline_model_and_estimated_for_an_endpoint(settings: Settings) -> None:
    count, piecemeal = token_counter(), "kubectl hxqzv " * 10
    assert count(piecemeal) > estimate_tokens(piecemeal)

    settings.OPENAI_API_KEY = "sk"
    embedding_provider.cache_clear()

    assert token_counter() is estimate_tokens


@pytest.mark.parametrize("unknown", ["a" * 99_000, "\U0001f600" * 1_000, "สวัสดี" * 1_000], ids=["run", "emoji", "Thai"])
def test_a_long_run_of_unknown_characters_counts_at_least_its_estimate(unknown: str) -> None:
    count = token_counter()

    assert count(unknown) >= estimate_tokens(unknown)
    assert count(f"{unknown}\n{unknown}\n") == 2 * count(f"{unknown}\n")


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENAI_BASE_URL"])
def test_a_key_or_an_endpoint_is_used(settings: Settings, name: str) -> None:
    setattr(settings, name, "http://127.0.0.1:9/v1")

    provider = embedding_provider()

    assert isinstance(provider, OpenAIEmbeddings)
    assert (provider.model, provider.width) == ("text-embedding-3-small", 1536)


def test_the_offline_model_can_be_selected_despite_a_configured_key(settings: Settings) -> None:
    settings.OPENAI_API_KEY = "sk"
    settings.EMBEDDING_PROVIDER = "local"

    assert isinstance(embedding_provider(), LocalEmbeddings)


def test_the_provider_is_made_once() -> None:
    assert embedding_provider() is embedding_provider()


def test_an_endpoint_without_key_or_address_is_refused(settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "openai"

    with pytest.raises(ImproperlyConfigured, match="OPENAI_API_KEY"):
        embedding_provider()


def test_the_tiny_embedder_refuses_to_serve(settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "tiny"

    with pytest.raises(ImproperlyConfigured, match="MEMORY_ALLOW_TINY_EMBEDDINGS=1"):
        embedding_provider()


def test_the_tiny_embedder_serves_where_it_is_allowed(settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "tiny"
    settings.MEMORY_ALLOW_TINY_EMBEDDINGS = True

    assert embedding_provider().model == "tiny-64"


def test_an_unknown_provider_is_refused_and_the_known_are_named(settings: Settings) -> None:
    settings.EMBEDDING_PROVIDER = "magic"

    with pytest.raises(ImproperlyConfigured, match=r"'magic'.*local, openai, tiny"):
        embedding_provider()


def test_a_folder_that_is_not_there_is_refused(settings: Settings, tmp_path: Path) -> None:
    settings.EMBEDDING_MODEL_DIR = str(tmp_path / "missing")

    with pytest.raises(ImproperlyConfigured, match=r"holds no config\.json"):
        embedding_provider()
