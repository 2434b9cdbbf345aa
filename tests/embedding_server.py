"""An embedding service on this machine, used through the real client. It answers well until a test changes that."""

import hashlib
import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from django.core.cache import cache
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memory.models.statements import Embedding
from memory.providers.embeddings import embedding_provider
from memory.providers.endpoints import Endpoint, open_client
from memory_project.embedded.models import BUNDLED_MODEL

WIDTH = 8
MODEL = "served-model"


def load_client() -> None:
    """Modules and certificates that it loads at its first use: else within the deadline of some test's request."""
    with open_client(Endpoint(model=MODEL)) as client:
        for resource in (client.embeddings, client.chat.completions):
            assert resource.with_streaming_response


load_client()


def vector_of(text: str) -> Embedding:
    """Always the same for the same text; another for another."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).normal(size=WIDTH).astype(np.float32)
    return vector / np.linalg.norm(vector)


def answer_vectors(vectors: list[list[float]]) -> Response:
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    body = {"object": "list", "model": MODEL, "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    return Response(json.dumps(body), content_type="application/json")


class EmbeddingServer:
    """`texts` is what it was asked for, in order; `answer` may be replaced by a worse one."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.answer: Callable[[list[str]], Response] = self.answer_well

    def answer_well(self, texts: list[str]) -> Response:
        return answer_vectors([vector_of(text).tolist() for text in texts])

    def fail(self, status: int = 500) -> None:
        # an immediate retry is allowed, so that tests need not wait
        self.answer = lambda texts: Response("out of order", status=status, headers={"Retry-After": "0"})

    def recover(self) -> None:
        self.answer = self.answer_well

    def handle(self, request: Request) -> Response:
        texts = json.loads(request.data)["input"]
        self.texts += texts
        return self.answer(texts)


@pytest.fixture
def embedding_server(httpserver: HTTPServer, settings: Settings) -> Iterator[EmbeddingServer]:
    """The configured embedder is a server at hand, and nothing is known of any text."""
    server = EmbeddingServer()
    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(server.handle)
    settings.EMBEDDING_PROVIDER = "openai"
    settings.OPENAI_API_KEY = "test-key"
    settings.OPENAI_BASE_URL = httpserver.url_for("/v1")
    settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS = MODEL, WIDTH
    settings.EMBEDDING_TIMEOUT_SECONDS = 20.0
    embedding_provider.cache_clear()
    cache.clear()
    yield server
    embedding_provider.cache_clear()


@pytest.fixture
def two_topics(embedding_server: EmbeddingServer, settings: Settings) -> None:
    """Vectors are those of the bundled model: alike for texts that name a boiler, and for all others."""
    settings.EMBEDDING_MODEL = BUNDLED_MODEL
    embedding_provider.cache_clear()
    boiler, other = np.eye(WIDTH)[:2].tolist()
    embedding_server.answer = lambda texts: answer_vectors([boiler if "boiler" in text else other for text in texts])
