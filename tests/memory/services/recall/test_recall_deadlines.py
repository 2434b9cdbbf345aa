"""Tests that a recall is answered in time, whatever is slow or down, and says what it went without."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from pytest_django import Settings
from werkzeug import Response

from memory.owner import Owner
from memory.providers.rerankers import reranking_provider
from memory.retrieval.candidates import Bundle
from memory.retrieval.queries import Query
from memory.services.memories.store import ClientVector
from memory.services.prompt_context.build import build_prompt_context
from memory.services.recall.recall import RecallRequest, recall
from tests.embedding_server import MODEL as SERVED
from tests.embedding_server import EmbeddingServer, vector_of
from tests.memory.context import request_for
from tests.memory.episodes import MODEL, NOW, direction
from tests.memory.turns import say, turn
from tests.reranker_server import RerankerServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

GENEROUS_SECONDS = 10.0
"""Seconds added to a deadline, for a busy machine."""
OWN = ClientVector(model=MODEL, vector=direction(0))


def run_recall(
    owner: Owner, text: str = "where is the archive", *, own: ClientVector | None = None, **fields: Any
) -> Bundle:
    return recall(owner, RecallRequest(query=Query(text=text), own=own, **fields), now=NOW)


def result_texts(bundle: Bundle) -> list[str]:
    return [result.text for result in bundle.results]


@contextmanager
def in_time(deadline_ms: int) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < deadline_ms / 1_000 + GENEROUS_SECONDS


def ample_deadline_ms(run: Callable[[], object]) -> int:
    """Return ten times what the run takes here and now, so that load extends both: from 8 seconds to 18.

    More would let the reranker's own timeout end a call to it.
    """
    began = time.monotonic()
    run()
    return min(max(8_000, round(10 * 1_000 * (time.monotonic() - began))), 18_000)


def extend_rerank_timeout(settings: Settings) -> None:
    """Let the recall's deadline, not the reranker's timeout, end a call to the reranker."""
    settings.RERANK_TIMEOUT_SECONDS = 20.0
    reranking_provider.cache_clear()


@pytest.fixture
def archive_turns(owner: Owner) -> None:
    say(owner, turn("the archive moved", angle=0.1), turn("the archive is in Bern", angle=0.5))


@pytest.fixture
def silent_embedder(embedding_server: EmbeddingServer) -> Iterator[EmbeddingServer]:
    """Return an embedder that answers when the test is over."""
    released = Event()
    embedding_server.answer = lambda texts: Response(str(released.wait(30)))
    yield embedding_server
    released.set()


@pytest.mark.usefixtures("archive_turns")
def test_the_configured_reranker_has_the_last_word(owner: Owner, reranker_server: RerankerServer) -> None:
    asked = "is the archive in Bern"

    assert result_texts(run_recall(owner, asked, own=OWN)) == ["the archive is in Bern", "the archive moved"]
    reranker_server.score = lambda question, text: -float(len(text))
    assert result_texts(run_recall(owner, asked, own=OWN)) == ["the archive moved", "the archive is in Bern"]
    assert [request["query"] for request in reranker_server.requests] == [asked, asked]


@pytest.mark.usefixtures("archive_turns")
@pytest.mark.parametrize("technique", ["-rerank", "-vector"])
def test_a_request_may_disable_the_reranker(owner: Owner, reranker_server: RerankerServer, technique: str) -> None:
    run_recall(owner, own=OWN, techniques=[technique])

    assert len(reranker_server.requests) == (technique != "-rerank")


@pytest.mark.usefixtures("archive_turns")
def test_a_slow_reranker_is_abandoned_at_the_deadline(
    owner: Owner, reranker_server: RerankerServer, settings: Settings
) -> None:
    before = result_texts(run_recall(owner, own=OWN, techniques=["-rerank"]))
    extend_rerank_timeout(settings)
    reranker_server.hang()

    with in_time(2_000):
        bundle = run_recall(owner, own=OWN, deadline_ms=2_000)

    assert result_texts(bundle) == before
    assert bundle.degraded == ["rerank_deadline"]


@pytest.mark.slow
def test_a_slow_reranker_leaves_time_for_adjacent_turns(
    owner: Owner, reranker_server: RerankerServer, settings: Settings
) -> None:
    say(owner, turn("good morning"), turn("the archive moved"), turn("where to?"), conversation_id="earlier")
    question = request_for(query="archive", own=OWN, top_k=1)
    deadline_ms = ample_deadline_ms(lambda: build_prompt_context(owner, question, now=NOW))
    request = replace(question, recall_request=replace(question.recall_request, deadline_ms=deadline_ms))
    extend_rerank_timeout(settings)
    reranker_server.hang()

    with in_time(deadline_ms):
        context = build_prompt_context(owner, request, now=NOW)

    assert [item.text for item in context.items] == ["good morning", "the archive moved", "where to?"]
    assert "rerank_deadline" in context.degraded


@pytest.mark.usefixtures("archive_turns")
@pytest.mark.parametrize("status", [401, 500])
def test_a_reranker_that_fails_costs_its_order_only(owner: Owner, reranker_server: RerankerServer, status: int) -> None:
    reranker_server.fail(status)

    bundle = run_recall(owner, own=OWN)

    assert len(bundle.results) == 2
    assert bundle.degraded == ["rerank_failed"]


def test_a_slow_embedder_leaves_time_to_search_by_words(owner: Owner, silent_embedder: EmbeddingServer) -> None:
    say(owner, turn("the archive moved"))

    # no longer than an embedder is given at most: without its share it would leave no time for words
    with in_time(2_000):
        bundle = run_recall(owner, deadline_ms=2_000)

    assert result_texts(bundle) == ["the archive moved"]
    assert [result.similarity for result in bundle.results] == [None]
    assert bundle.degraded == ["embedder_unavailable"]


@pytest.mark.parametrize("status", [401, 500])
def test_recall_searches_by_words_while_the_embedder_is_down(
    owner: Owner, embedding_server: EmbeddingServer, status: int
) -> None:
    embedding_server.fail(status)
    say(owner, turn("the archive moved"))
    say(owner, turn("nothing of it"), conversation_id="c2")

    bundle = run_recall(owner, deadline_ms=3_000)

    assert result_texts(bundle) == ["the archive moved"]
    assert [result.similarity for result in bundle.results] == [None]
    assert bundle.degraded == ["embedder_unavailable"]


def test_recall_searches_by_meaning_with_the_embedder(owner: Owner, embedding_server: EmbeddingServer) -> None:
    question = "where is it"
    for text, said in (("other words", question), ("the archive moved", "something else")):
        own = ClientVector(model=SERVED, vector=vector_of(said))
        say(owner, replace(turn(text), own=own), conversation_id=text)

    first = run_recall(owner, question).results[0]

    assert (first.text, round(first.similarity or 0.0, 2)) == ("other words", 1.0)
    assert embedding_server.texts == [question]


def test_memories_without_a_vector_degrade(owner: Owner, embedding_server: EmbeddingServer) -> None:
    say(owner, turn("the archive moved"))

    assert "embedding_pending" in run_recall(owner).degraded


@pytest.mark.usefixtures("archive_turns")
@pytest.mark.parametrize("deadline_ms", [1, 2, 5])
def test_a_very_short_deadline_degrades(
    owner: Owner, reranker_server: RerankerServer, silent_embedder: EmbeddingServer, deadline_ms: int
) -> None:
    reranker_server.hang()

    with in_time(deadline_ms):
        bundle = run_recall(owner, deadline_ms=deadline_ms)

    assert "embedder_unavailable" in bundle.degraded
    left_out = {"lexical_deadline", "rerank_deadline", "rerank_failed"} & set(bundle.degraded)
    assert bool(bundle.results) or "lexical_deadline" in left_out
    assert left_out


@pytest.mark.usefixtures("archive_turns")
def test_no_retriever_starts_after_the_deadline(owner: Owner) -> None:
    bundle = run_recall(owner, own=OWN, deadline_ms=0)

    assert bundle.results == []
    assert {"lexical_deadline", "vector_deadline", "pinned_deadline"} <= set(bundle.degraded)
