"""Rerankers behind an address: the protocols of Cohere, of Jina, and of Hugging Face's text-embeddings-inference."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import httpx2
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from memory.errors import ProviderReplyInvalid
from memory.providers.connections import keep_time, time_limit, trusted_authorities
from memory.providers.deadlines import Deadline
from memory.providers.endpoints import Endpoint, ask_patiently, read_reply, translate_status
from memory.providers.processes import PerProcess

MAX_TEXTS_PER_REQUEST = 32
"""As many as text-embeddings-inference takes unless told otherwise."""
# a cross-encoder reads some 500 to 8,000 tokens of both together, and cuts the rest off itself
LONGEST_QUESTION, LONGEST_TEXT = 1_000, 4_000
"""Characters that are sent."""
REPLY_BYTES_PER_TEXT, REPLY_BYTES_BESIDE = 1_000, 100_000

Score = Annotated[float, Field(allow_inf_nan=False)]


class RerankItem(BaseModel):
    model_config = ConfigDict(strict=True)

    index: int
    relevance_score: Score


class RerankReply(BaseModel):
    model_config = ConfigDict(strict=True)

    results: list[RerankItem]


class ShortReplyItem(BaseModel):
    """An item of text-embeddings-inference, which answers with a bare list of them."""

    model_config = ConfigDict(strict=True)

    index: int
    score: Score


Scores = list[tuple[int, float]]
"""Each with the index of its text."""
SHORT_REPLY = TypeAdapter(list[ShortReplyItem])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A protocol: the body of a request for a model, a question and texts, and the scores in a reply."""

    body: Callable[[str, str, Sequence[str]], dict[str, Any]]
    read: Callable[[bytes], Scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankEndpoint(Endpoint):
    """`base_url` is the whole address."""

    what: ClassVar[str] = "rerank endpoint"

    shape: Shape


class HttpReranker:
    """Retried under one deadline, and believed only after its answer was checked; thread-safe.

    Follows no redirection: the key and the texts go where the settings say, and nowhere else. Of the question the first
    1,000 characters are sent, of a text the first 4,000.
    """

    def __init__(self, endpoint: RerankEndpoint) -> None:
        self.model = endpoint.model
        self._endpoint = endpoint
        self._client = PerProcess(partial(open_rerank_client, endpoint))

    def score(self, question: str, texts: Sequence[str], *, deadline: Deadline) -> list[float]:
        return [score for batch in batch_texts(texts) for score in self._ask(question, batch, deadline)]

    def _ask(self, question: str, texts: Sequence[str], deadline: Deadline) -> list[float]:
        body = self._endpoint.shape.body(self.model, question[:LONGEST_QUESTION], texts)

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
            most_bytes = REPLY_BYTES_BESIDE + REPLY_BYTES_PER_TEXT * count
            return read_reply(response.iter_bytes(), most_bytes=most_bytes)


def open_rerank_client(endpoint: RerankEndpoint) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    return keep_time(httpx2.Client(headers=headers, follow_redirects=False, verify=trusted_authorities()))


def batch_texts(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), MAX_TEXTS_PER_REQUEST):
        yield [text[:LONGEST_TEXT] for text in texts[start : start + MAX_TEXTS_PER_REQUEST]]


def scores_in_order(shape: Shape, body: bytes, *, count: int) -> list[float]:
    """Return the scores by the index of their texts, each once. Raises ProviderReplyInvalid."""
    try:
        scores = shape.read(body)
    except ValidationError:
        scores = None
    # outside the handler, or the reply, which may repeat the texts, would be its context
    if scores is None:
        raise ProviderReplyInvalid("the reply is not the JSON of a rerank answer")
    if sorted(index for index, _score in scores) != list(range(count)):
        raise ProviderReplyInvalid(
            f"the reply holds {len(scores)} scores, wrongly numbered or not the {count} asked for"
        )
    return [score for _index, score in sorted(scores)]


def cohere_body(model: str, question: str, texts: Sequence[str]) -> dict[str, Any]:
    return {"model": model, "query": question, "documents": list(texts), "top_n": len(texts)}


def jina_body(model: str, question: str, texts: Sequence[str]) -> dict[str, Any]:
    # it repeats the texts unless told not to
    return {**cohere_body(model, question, texts), "return_documents": False}


def tei_body(_model: str, question: str, texts: Sequence[str]) -> dict[str, Any]:
    # it serves one model, and refuses what is too long unless it may cut it
    return {"query": question, "texts": list(texts), "truncate": True}


def read_results(body: bytes) -> Scores:
    return [(item.index, item.relevance_score) for item in RerankReply.model_validate_json(body).results]


def read_list(body: bytes) -> Scores:
    return [(item.index, item.score) for item in SHORT_REPLY.validate_json(body)]


SHAPES: Mapping[str, Shape] = {
    "cohere": Shape(body=cohere_body, read=read_results),
    "jina": Shape(body=jina_body, read=read_results),
    "tei": Shape(body=tei_body, read=read_list),
}
"""By the name in RERANK_SHAPE. To add one: two functions, and a line here and in the setting's choices."""
