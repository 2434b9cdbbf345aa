"""Fixtures of commands that embed many texts."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from memory.providers.embeddings import embedding_provider


@pytest.fixture
def tiny_embedder(settings: Settings) -> Iterator[None]:
    settings.EMBEDDING_PROVIDER, settings.MEMORY_ALLOW_TINY_EMBEDDINGS = "tiny", True
    embedding_provider.cache_clear()
    yield
    embedding_provider.cache_clear()
