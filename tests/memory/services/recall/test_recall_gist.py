"""Tests for the gist of a question: embedded in the same request as the question, unless the client sends a vector."""

from dataclasses import replace

import numpy as np
import pytest
from pytest_httpserver import HTTPServer

from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.retrieval.candidates import Bundle
from memory.retrieval.queries import Query
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, embed_query, recall
from tests.embedding_server import MODEL, EmbeddingServer, answer_vectors, vector_of
from tests.memory.episodes import NOW
from tests.memory.gatherings import recall_context
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

QUESTION, GIST = "What did Ana paint?", "What did paint?"
READ = Query(text=QUESTION, names=["Ana"], subjects=["Ana"], gist=GIST)


def run_recall(owner: Owner, *techniques: str, own: ClientVector | None = None) -> Bundle:
    return recall(owner, RecallRequest(query=Query(text=QUESTION), own=own, techniques=techniques), now=NOW)


def test_text_and_gist_are_embedded_in_one_request(
    owner: Owner, embedding_server: EmbeddingServer, httpserver: HTTPServer
) -> None:
    embedded = embed_query(READ, recall_context(owner))

    assert (embedding_server.texts, len(httpserver.log)) == ([QUESTION, GIST], 1)
    assert embedded.vector == pytest.approx(vector_of(QUESTION))
    assert embedded.gist_vector == pytest.approx(vector_of(GIST))


def test_expansions_turn_the_vector_of_the_text_and_that_of_the_gist(
    owner: Owner, embedding_server: EmbeddingServer
) -> None:
    embedded = embed_query(replace(READ, expansions=["Ana painted"]), recall_context(owner))

    mean, mean_gist = (vector_of(text) + vector_of("Ana painted") for text in (QUESTION, GIST))
    assert embedding_server.texts == [QUESTION, "Ana painted", GIST]
    assert embedded.vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    assert embedded.gist_vector == pytest.approx(mean_gist / np.linalg.norm(mean_gist), abs=1e-6)


def test_a_gist_that_is_an_expansion_is_embedded_once(owner: Owner, embedding_server: EmbeddingServer) -> None:
    embedded = embed_query(replace(READ, expansions=[GIST]), recall_context(owner))

    assert embedding_server.texts == [QUESTION, GIST]
    assert embedded.gist_vector == pytest.approx(vector_of(GIST))


def test_a_question_without_a_gist_has_no_vector_of_one(owner: Owner, embedding_server: EmbeddingServer) -> None:
    embedded = embed_query(Query(text="what was painted"), recall_context(owner))

    assert embedding_server.texts == ["what was painted"]
    assert embedded.gist_vector is None


def test_a_dead_embedder_leaves_the_query_unchanged(owner: Owner, embedding_server: EmbeddingServer) -> None:
    embedding_server.fail()

    assert embed_query(READ, recall_context(owner)) is READ


def test_a_reply_without_the_gist_is_discarded(owner: Owner, embedding_server: EmbeddingServer) -> None:
    embedding_server.answer = lambda texts: answer_vectors([vector_of(texts[0]).tolist()])

    embedded = embed_query(READ, recall_context(owner))

    assert (embedded.vector, embedded.gist_vector) == (None, None)


def test_once_the_deadline_has_passed_nothing_is_embedded(owner: Owner, embedding_server: EmbeddingServer) -> None:
    assert embed_query(READ, recall_context(owner, deadline=Deadline.after(-1))) is READ
    assert embedding_server.texts == []


def test_nothing_is_embedded_if_the_client_sends_a_vector(owner: Owner, embedding_server: EmbeddingServer) -> None:
    say(owner, turn("Ana painted a heron."))

    found = run_recall(owner, own=ClientVector(model=MODEL, vector=vector_of("anything")))

    assert (embedding_server.texts, len(found.results)) == ([], 1)


@pytest.mark.parametrize(
    ("techniques", "embedded"),
    [
        pytest.param((), [QUESTION, "Ana painted", GIST], id="all of them"),
        pytest.param(("-query_expansion",), [QUESTION, GIST], id="no expansions"),
        pytest.param(("-names", "-query_expansion"), [QUESTION], id="no names, no gist"),
        pytest.param(("-vector",), [], id="no meaning"),
    ],
)
def test_techniques_decide_which_texts_are_embedded(
    owner: Owner, embedding_server: EmbeddingServer, techniques: tuple[str, ...], embedded: list[str]
) -> None:
    run_recall(owner, *techniques)

    assert embedding_server.texts == embedded


def test_a_search_by_words_alone_embeds_nothing(owner: Owner, embedding_server: EmbeddingServer) -> None:
    say(owner, turn("Ana painted a heron."))

    [only] = run_recall(owner, "lexical").results

    assert embedding_server.texts == []
    assert (only.similarity, only.gist) == (None, None)
