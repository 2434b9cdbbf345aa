"""Searches by the client's vector alone, without a text: all routes that take `query_embedding`."""

from typing import Any

import pytest

from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, EmbeddingServer, vector_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

TEXT = "The keel broke."
MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "/recall": ("/facts", {"claim": TEXT, "confidence": 0.9}),
    "/memories/search": ("/memories/keel", {"value": TEXT, "tier": "long_term"}),
    "/episodic/search": ("/episodic/store", {"conversation_id": "c1", "summary": TEXT}),
    "/strategies/find": ("/strategies", {"description": TEXT}),
}
QUESTION_FIELDS = dict.fromkeys(MEMORIES, "query") | {"/strategies/find": "task_description"}


@pytest.fixture(params=MEMORIES)
def path(request: pytest.FixtureRequest, api: ServiceClient) -> str:
    """A route of searches, with one memory that it can find."""
    kept_at, memory = MEMORIES[request.param]
    write = api.put if kept_at.startswith("/memories/") else api.post
    assert write(kept_at, {"agent_id": "assistant"} | memory).status_code in (200, 201)
    return str(request.param)


def test_a_vector_without_a_text_is_a_search(api: ServiceClient, path: str, embedding_server: EmbeddingServer) -> None:
    embedding_server.texts.clear()
    vector = {"query_embedding": vector_of(TEXT).tolist(), "embedding_model": MODEL}

    answer = api.post(path, {"agent_id": "assistant", **vector})

    assert answer.status_code == 200, answer.content
    assert [hit["similarity"] for hit in answer.json()["results"]] == [pytest.approx(1, abs=1e-2)]
    assert embedding_server.texts == []


def test_neither_a_text_nor_a_vector_is_refused(api: ServiceClient, path: str) -> None:
    answer = api.post(path, {"agent_id": "assistant"})

    assert answer.status_code == 400
    assert "query_embedding" in answer.json()["errors"][QUESTION_FIELDS[path]][0]


@pytest.mark.parametrize("path", ["/recall", "/memories/search"], indirect=True)
def test_the_technique_vector_alone_needs_no_text(api: ServiceClient, path: str) -> None:
    asked = {"agent_id": "assistant", "query_embedding": vector_of(TEXT).tolist(), "embedding_model": MODEL}

    by_meaning = api.post(path, asked | {"techniques": ["vector"]})
    by_words = api.post(path, asked | {"techniques": ["lexical"]})

    assert len(by_meaning.json()["results"]) == 1
    assert by_words.status_code == 422
    assert "without a text" in by_words.json()["detail"]


def test_a_vector_of_a_model_that_no_memory_has_a_vector_of_is_said(api: ServiceClient, path: str) -> None:
    asked = {"agent_id": "assistant", "query_embedding": [1.0, 0.0, 0.0], "embedding_model": "unknown"}

    by_vector = api.post(path, asked).json()
    by_words = api.post(path, asked | {QUESTION_FIELDS[path]: TEXT}).json()

    assert (by_vector["results"], by_vector["degraded"]) == ([], ["embedding_model_unknown"])
    assert len(by_words["results"]) == 1
    assert "embedding_model_unknown" in by_words["degraded"]
