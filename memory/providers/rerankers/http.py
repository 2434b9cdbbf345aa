"""Rerankers over HTTP: the protocols of Cohere, of Jina, and of Hugging Face's text-embeddings-inference."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import httpx2
from pydantic import Field, TypeAdapter

from memory.errors import ProviderReplyInvalid
from memory.providers.connections import Deadline, keep_time, time_limit, trusted_authorities
from memory.providers.endpoints import Endpoint, StrictReply, ask_patiently, parse_reply, read_reply, translate_status
from memory.providers.processes import PerProcess
from memory_project.batches import batched

MAX_TEXTS_PER_REQUEST = 32
"""Texts per request: the default limit of text-embeddings-inference."""
# a cross-encoder reads some 500 to 8,000 tokens of both together, and cuts the rest off itself
LONGEST_QUESTION, LONGEST_TEXT = 1_000, 4_000
"""Characters of a question and of a text that are sent."""
REPLY_BYTES_PER_TEXT, REPLY_BYTES_OVERHEAD = 1_000, 100_000

Score = Annotated[float, Field(allow_inf_nan=False)]


class RerankItem(StrictReply):
    index: int
    score: Score = Field(alias="relevance_score")


class RerankReply(StrictReply):
    results: list[RerankItem]


class ShortReplyItem(StrictReply):
    """An item of text-embeddings-inference, which answers with a bare list of them."""

    index: int
    score: Score


Scores = list[tuple[int, float]]
"""Scores, each with the index of its text."""
SHORT_REPLY = TypeAdapter(list[ShortReplyItem])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A protocol: the body of a request for a model, a question and texts, and the scores in a reply."""

    body: Callable[[str, str, Sequence[str]], dict[str, Any]]
    read: Callable[[bytes], Scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankEndpoint(Endpoint):
    """The endpoint of a reranker. `base_url` is the whole address."""

    what: ClassVar[str] = "rerank endpoint"

    shape: Shape


class HttpReranker:
    """Reranks over HTTP, with retries under one deadline and checks of each reply. Thread-safe.

    Follows no redirection: the key and the texts go where the settings say, and nowhere else. Of the question the first
    1,000 characters are sent, of a text the first 4,000.
    """

    def __init__(self, endpoint: RerankEndpoint) -> None:
        self.model = endpoint.model
        self._endpoint = endpoint
        self._client = PerProcess(self._open_client)

    def score(self, question: str, texts: Sequence[str], *, deadline: Deadline) -> list[float]:
        batches = batched(texts, MAX_TEXTS_PER_REQUEST)
        return [score for batch in batches for score in self._ask(question, batch, deadline)]

    def _open_client(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self._endpoint.api_key}"} if self._endpoint.api_key else {}
        return keep_time(httpx2.Client(headers=headers, follow_redirects=False, verify=trusted_authorities()))

    def _ask(self, question: str, texts: Sequence[str], deadline: Deadline) -> list[float]:
        sent = [text[:LONGEST_TEXT] for text in texts]
        body = self._endpoint.shape.body(self.model, question[:LONGEST_QUESTION], sent)

        def ask() -> list[float]:
            return scores_in_order(self._endpoint.shape, self._exchange(body, len(texts), deadline), count=len(texts))

        return ask_patiently(ask, endpoint=self._endpoint, deadline=deadline)

    def _exchange(self, body: dict[str, Any], count: int, deadline: Deadline) -> bytes:
        seconds = deadline.remaining_seconds(at_most=self._endpoint.timeout_seconds)
        with (
            time_limit(seconds),
            self._client.get().stream("POST", self._endpoint.base_url, json=body, timeout=seconds) as response,
        ):
            if not response.is_success:
                raise translate_status(response, what=self._endpoint.what)
            most_bytes = REPLY_BYTES_OVERHEAD + REPLY_BYTES_PER_TEXT * count
            return read_reply(response.iter_bytes(), most_bytes=most_bytes)


def scores_in_order(shape: Shape, body: bytes, *, count: int) -> list[float]:
    """Return the scores by the index of their texts, each once. Raises ProviderReplyInvalid."""
    scores = parse_reply(shape.read, body, what="a rerank answer")
    if sorted(index for index, _score in scores) != list(range(count)):
        raise ProviderReplyInvalid(
            f"the reply holds {len(scores)} scores, wrongly numbered or not the {count} asked for"
        )
    return [score for _index, score in sorted(scores)]


def cohere_body(model: str, question: str, texts: Sequence[str]) -> dict[str, Any]:
    return {"model": model, "query": question, "documents": list(texts), "top_n": len(texts)}


def jina_body(model: str, question: str, texts: Sequence[str]) -> dict[str, Any]:
    # by default it repeats the texts
    return {**cohere_body(model, question, texts), "return_documents": False}


def tei_body(_model: str, question: str, texts: Sequence[str]) -> dict[str, Any]:
    # it serves one model, and refuses what is too long unless it may cut it
    return {"query": question, "texts": list(texts), "truncate": True}


def read_results(body: bytes) -> Scores:
    return [(item.index, item.score) for item in RerankReply.model_validate_json(body).results]


def read_list(body: bytes) -> Scores:
    return [(item.index, item.score) for item in SHORT_REPLY.validate_json(body)]


SHAPES: Mapping[str, Shape] = {
    "cohere": Shape(body=cohere_body, read=read_results),
    "jina": Shape(body=jina_body, read=read_results),
    "tei": Shape(body=tei_body, read=read_list),
}
"""Protocols by their name in RERANK_SHAPE. To add one: two functions, and a line here and in the setting's choices."""
