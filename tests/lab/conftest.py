"""Fixtures of commands that embed many texts."""

import signal
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


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """Let Ctrl-C interrupt this process, also where a shell started it in the background with SIGINT ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)
