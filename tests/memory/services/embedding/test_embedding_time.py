"""Tests of `EmbeddingBudget`: what fits into the time is embedded, the rest is left to the job."""

import pytest
from pytest_django import Settings

from memory.services.embedding.embed import MAX_TEXTS_PER_CALL, EmbeddingBudget
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer

pytestmark = pytest.mark.django_db

TEXTS = [f"text {number}" for number in range(MAX_TEXTS_PER_CALL + 50)]


def test_more_texts_than_a_write_may_bring_are_embedded_once_each(embedding_server: EmbeddingServer) -> None:
    embedded = EmbeddingBudget(60).embed([*TEXTS, *TEXTS])

    assert list(embedded.vectors) == TEXTS
    assert sorted(embedding_server.texts) == sorted(TEXTS)
    assert (embedded.model, embedded.width, embedded.error) == (MODEL, WIDTH, "")


def test_without_time_the_embedder_is_not_asked(embedding_server: EmbeddingServer) -> None:
    embedded = EmbeddingBudget(0).embed(TEXTS)

    assert (embedded.model, embedded.vectors, embedded.error) == (MODEL, {}, "")
    assert embedding_server.texts == []


def test_the_time_runs_down_over_several_calls(embedding_server: EmbeddingServer) -> None:
    time = EmbeddingBudget(0.001)

    time.embed(TEXTS[:1])
    later = time.embed(TEXTS[1:2])

    assert time.left_seconds < 0
    assert (later.vectors, later.error) == ({}, "")


def test_an_embedder_that_is_down_is_not_asked_again(embedding_server: EmbeddingServer, settings: Settings) -> None:
    settings.EMBEDDING_TIMEOUT_SECONDS = 1.0
    embedding_server.fail(401)

    embedded = EmbeddingBudget(60).embed(TEXTS)

    assert (embedded.vectors, embedded.error) == ({}, "provider_refused")
    assert set(embedding_server.texts) <= set(TEXTS[:MAX_TEXTS_PER_CALL])
