"""A reranker on this machine that speaks all three protocols, asked through the real client.

It scores a text by the words that it shares with the question, until a test changes that.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any

import pytest
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memory.providers.rerankers import reranking_provider

MODEL = "served-reranker"
KEY = "rerank-secret"

Asked = dict[str, Any]
Answer = Callable[[Asked], Response]


def shared_words(question: str, text: str) -> float:
    return float(len(set(question.casefold().split()) & set(text.casefold().split())))


def answer_scores(asked: Asked, scores: Sequence[float]) -> Response:
    """Answer in the protocol of the request, the last text first: the order is in `index`, not in the list."""
    name = "relevance_score" if "documents" in asked else "score"
    items = [{"index": at, name: score} for at, score in reversed(list(enumerate(scores)))]
    return Response(json.dumps({"results": items} if "documents" in asked else items), content_type="application/json")


class RerankerServer:
    """`requests` are the bodies that it was asked with, in order; `answer` may be replaced by a worse one."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.headers: list[dict[str, str]] = []
        self.score: Callable[[str, str], float] = shared_words
        self.answer: Answer = self.answer_well
        self.released = Event()

    def answer_well(self, asked: Asked) -> Response:
        texts = asked["documents"] if "documents" in asked else asked["texts"]
        return answer_scores(asked, [self.score(asked["query"], text) for text in texts])

    def fail(self, status: int = 500, text: str = "out of order", **headers: str) -> None:
        self.answer = lambda asked: Response(text, status=status, headers={"Retry-After": "0", **headers})

    def reply(self, body: str) -> None:
        self.answer = lambda asked: Response(body, content_type="application/json")

    def hang(self) -> None:
        """Do not answer until the test is over."""
        self.answer = lambda asked: Response(str(self.released.wait(30)))

    def drip(self) -> None:
        """Send a byte now and then, until the test is over."""

        def bytes_of_nothing() -> Iterator[bytes]:
            while not self.released.wait(0.05):
                yield b" "

        self.answer = lambda asked: Response(bytes_of_nothing(), content_type="application/json")

    def handle(self, request: Request) -> Response:
        asked = json.loads(request.data)
        self.requests.append(asked)
        self.headers.append(dict(request.headers))
        return self.answer(asked)


@pytest.fixture
def reranker_server(httpserver: HTTPServer, settings: Settings) -> Iterator[RerankerServer]:
    """The configured reranker is a server at hand."""
    server = RerankerServer()
    httpserver.expect_request("/rerank", method="POST").respond_with_handler(server.handle)
    settings.RERANK_URL = httpserver.url_for("/rerank")
    settings.RERANK_SHAPE = "cohere"
    settings.RERANK_MODEL, settings.RERANK_API_KEY = MODEL, KEY
    settings.RERANK_TIMEOUT_SECONDS = 20.0
    reranking_provider.cache_clear()
    yield server
    server.released.set()
    reranking_provider.cache_clear()
