"""Tests of embedding: each distinct text once, from the cache if possible, and never an error for writers."""

import time
from threading import Event

import numpy as np
import pytest
from pytest_django import Settings
from werkzeug import Response

from memory.providers.embeddings import embedding_provider
from memory.services.embedding.embed import MAX_TEXTS_PER_CALL, EmbeddedTexts, embed_texts
from tests.dripping_server import DrippingServer
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, answer_vectors, vector_of


def test_each_distinct_text_is_embedded_once(embedding_server: EmbeddingServer) -> None:
    embedded = embed_texts(["one", "two", "one"])

    assert embedding_server.texts == ["one", "two"]
    np.testing.assert_allclose(embedded.vectors["one"], vector_of("one"), atol=1e-6)
    assert (embedded.model, embedded.width, embedded.error) == (MODEL, WIDTH, "")


def test_a_cached_text_is_not_sent_again(embedding_server: EmbeddingServer) -> None:
    first = embed_texts(["met before"])

    second = embed_texts(["met before", "new"])

    assert embedding_server.texts == ["met before", "new"]
    np.testing.assert_array_equal(first.vectors["met before"], second.vectors["met before"])


@pytest.mark.parametrize("changed", [{"EMBEDDING_MODEL": "another-model"}, {"EMBEDDING_DIMENSIONS": 4}], ids=str)
def test_a_text_cached_for_another_model_or_width_is_sent_again(
    embedding_server: EmbeddingServer, settings: Settings, changed: dict[str, object]
) -> None:
    embed_texts(["met before"])
    for name, value in changed.items():
        setattr(settings, name, value)
    embedding_provider.cache_clear()
    embedding_server.answer = lambda texts: answer_vectors([[1.0] * settings.EMBEDDING_DIMENSIONS for _ in texts])

    embedded = embed_texts(["met before"])

    assert embedding_server.texts == ["met before", "met before"]
    assert embedded.vectors["met before"].shape == (settings.EMBEDDING_DIMENSIONS,)


def test_blank_texts_are_left_out(embedding_server: EmbeddingServer) -> None:
    assert embed_texts(["", "  \n"]).vectors == {}
    assert embedding_server.texts == []


def test_a_write_embeds_a_limited_number_of_texts(embedding_server: EmbeddingServer) -> None:
    embedded = embed_texts([f"text {number}" for number in range(MAX_TEXTS_PER_CALL + 5)])

    assert len(embedded.vectors) == MAX_TEXTS_PER_CALL


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Response("broken", status=500), "provider_unavailable"),
        (Response('{"error": {"message": "no such key"}}', status=401), "provider_refused"),
        (Response("<html>hello</html>", content_type="text/html"), "provider_reply_invalid"),
        (answer_vectors([]), "provider_reply_invalid"),
        (answer_vectors([[1.0] * (WIDTH + 1)]), "provider_reply_invalid"),
        (answer_vectors([[0.0] * WIDTH]), "provider_reply_invalid"),
        (answer_vectors([[float("nan")] * WIDTH]), "provider_reply_invalid"),
    ],
    ids=["500", "401", "html", "too few", "too wide", "zeros", "nan"],
)
def test_an_invalid_answer_costs_only_the_vector(
    embedding_server: EmbeddingServer, answer: Response, code: str
) -> None:
    embedding_server.answer = lambda texts: answer

    embedded = embed_texts(["a text"])

    assert (embedded.vectors, embedded.error) == ({}, code)


def test_an_endpoint_that_is_down_before_its_width_is_known_raises_nothing(
    embedding_server: EmbeddingServer, settings: Settings
) -> None:
    settings.EMBEDDING_DIMENSIONS = 0
    embedding_provider.cache_clear()
    embedding_server.fail(status=401)

    assert embed_texts(["a text"]) == EmbeddedTexts(model=MODEL, width=0, vectors={}, error="provider_refused")


def test_asking_for_the_width_takes_no_longer_than_the_deadline(
    embedding_server: EmbeddingServer, dripping_server: DrippingServer, settings: Settings
) -> None:
    settings.EMBEDDING_DIMENSIONS, settings.EMBEDDING_TIMEOUT_SECONDS = 0, 8.0
    settings.OPENAI_BASE_URL = dripping_server.url
    embedding_provider.cache_clear()
    began = time.monotonic()

    assert embed_texts(["a text"], deadline_seconds=0.2).error == "provider_unavailable"
    assert time.monotonic() - began < 6


@pytest.mark.slow
def test_the_time_to_ask_for_the_width_counts_against_the_deadline(
    embedding_server: EmbeddingServer, settings: Settings
) -> None:
    settings.EMBEDDING_DIMENSIONS, settings.EMBEDDING_TIMEOUT_SECONDS = 0, 20.0
    embedding_provider.cache_clear()

    def answer_late(texts: list[str]) -> Response:
        Event().wait(4)
        return embedding_server.answer_well(texts)

    embedding_server.answer = answer_late

    embedded = embed_texts(["a text"], deadline_seconds=7.5)

    assert (embedded.width, embedded.error) == (WIDTH, "provider_unavailable")


def test_a_model_that_is_too_wide_costs_only_the_vector(embedding_server: EmbeddingServer, settings: Settings) -> None:
    settings.EMBEDDING_DIMENSIONS = 0
    embedding_provider.cache_clear()
    embedding_server.answer = lambda texts: answer_vectors([[1.0] * 4001 for _ in texts])

    assert embed_texts(["a text"]).error == "provider_reply_invalid"
