"""Embeddings from any endpoint that speaks OpenAI's protocol."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from memory.errors import ProviderReplyInvalid
from memory.providers.connections import Deadline, time_limit
from memory.providers.embeddings.base import Vectors, mean_of_chunks, normalized_rows, refuse_unembeddable
from memory.providers.endpoints import Endpoint, StrictReply, ask_patiently, open_client, parse_reply, read_reply
from memory.providers.processes import PerProcess

MAX_TEXTS_PER_REQUEST = 128
# the models read 8,191 tokens, and a token is at least one byte: such a chunk always fits, in any script
MAX_CHUNK_BYTES = 8_000
# OpenAI refuses requests of more than 300,000 tokens
MAX_REQUEST_BYTES = 256_000
# a number in JSON takes at most 25 bytes; the rest is room for what stands around it
REPLY_BYTES_PER_NUMBER, REPLY_BYTES_OVERHEAD = 40, 100_000
WIDEST_MODEL = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIEndpoint(Endpoint):
    what: ClassVar[str] = "embedding endpoint"

    dimensions: int = 1536
    """Dimensions to request and check. 0 leaves them to the model, for endpoints that refuse the parameter."""
    name: str = ""
    """Name stored with the vectors. Default: that of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChunk:
    """A part of a text that fits the model for sure."""

    text: int
    content: str
    size: int
    """Length in bytes of UTF-8."""


class OpenAIEmbeddings:
    """Embeds texts in batches, with retries under one deadline and checks of each reply. Thread-safe.

    A text of more than 8,000 bytes is cut into chunks, at white space where there is some, and its vector is
    the normalized mean of theirs, weighted by their bytes.
    """

    max_batch = MAX_TEXTS_PER_REQUEST

    def __init__(self, endpoint: OpenAIEndpoint) -> None:
        # rather than within the deadline of the first request
        import_module("openai")
        self.model = endpoint.name or endpoint.model
        self._endpoint = endpoint
        self._width = endpoint.dimensions
        self._client = PerProcess(partial(open_client, endpoint))

    @property
    def width(self) -> int:
        return self.find_width(deadline_seconds=self._endpoint.timeout_seconds)

    def find_width(self, *, deadline_seconds: float | None) -> int:
        """Return the width; with `dimensions` of 0 the endpoint is asked, once, by embedding a word."""
        if not self._width:
            probe = [TextChunk(text=0, content="width", size=5)]
            self._width = int(self._ask_patiently(probe, 0, Deadline.after(deadline_seconds)).shape[1])
        return self._width

    def embed(self, texts: Sequence[str], *, deadline_seconds: float | None) -> Vectors:
        refuse_unembeddable(texts)
        deadline = Deadline.after(deadline_seconds)
        width = self.find_width(deadline_seconds=deadline_seconds)
        if not texts:
            return np.empty((0, width), dtype=np.float32)
        chunks = [
            TextChunk(text=number, content=piece, size=len(piece.encode()))
            for number, text in enumerate(texts)
            for piece in cut_text(text)
        ]
        vectors = [self._ask_patiently(batch, width, deadline) for batch in batch_chunks(chunks)]
        return mean_of_chunks(
            np.concatenate(vectors),
            text_of_chunk=[chunk.text for chunk in chunks],
            lengths=[chunk.size for chunk in chunks],
        )

    def _ask_patiently(self, batch: Sequence[TextChunk], width: int, deadline: Deadline) -> Vectors:
        def ask() -> Vectors:
            return parse_vectors(self._exchange(batch, width, deadline), count=len(batch), width=width)

        return ask_patiently(ask, endpoint=self._endpoint, deadline=deadline)

    def _exchange(self, batch: Sequence[TextChunk], width: int, deadline: Deadline) -> bytes:
        seconds = deadline.remaining_seconds(at_most=self._endpoint.timeout_seconds)
        chosen: dict[str, Any] = {"dimensions": self._endpoint.dimensions} if self._endpoint.dimensions else {}
        with (
            time_limit(seconds),
            self._client.get().embeddings.with_streaming_response.create(
                input=[chunk.content for chunk in batch],
                model=self._endpoint.model,
                encoding_format="float",
                timeout=seconds,
                **chosen,
            ) as response,
        ):
            most_bytes = REPLY_BYTES_OVERHEAD + REPLY_BYTES_PER_NUMBER * (width or WIDEST_MODEL) * len(batch)
            return read_reply(response.iter_bytes(), most_bytes=most_bytes)


class EmbeddingItem(StrictReply):
    index: int
    embedding: list[float]


class EmbeddingReply(StrictReply):
    data: list[EmbeddingItem]


def parse_vectors(body: bytes, *, count: int, width: int) -> Vectors:
    """Return the vectors by `index`, normalized; a width of 0 accepts any. Raises ProviderReplyInvalid."""
    items = parse_reply(EmbeddingReply.model_validate_json, body, what="an embeddings answer").data
    if sorted(item.index for item in items) != list(range(count)):
        raise ProviderReplyInvalid(
            f"the reply holds {len(items)} vectors, wrongly numbered or not the {count} asked for"
        )
    widths = {len(item.embedding) for item in items}
    if len(widths) != 1 or widths == {0} or (width and widths != {width}):
        raise ProviderReplyInvalid(f"the reply's vectors are {sorted(widths)[:5]} wide, not {width or 'all alike'}")
    return normalized_rows(np.array([item.embedding for item in sorted(items, key=lambda item: item.index)]))


def cut_text(text: str) -> Iterator[str]:
    """Yield parts of at most MAX_CHUNK_BYTES. Only white space between parts is dropped."""
    text = text.strip()
    start = 0
    while start < len(text):
        fitting = text[start : start + MAX_CHUNK_BYTES].encode()[:MAX_CHUNK_BYTES].decode(errors="ignore")
        if start + len(fitting) < len(text):
            fitting = fitting[: end_of_last_word(fitting)]
        yield fitting.rstrip()
        start += len(fitting)
        while start < len(text) and text[start].isspace():
            start += 1


def end_of_last_word(piece: str) -> int:
    """Return the end of the last word, looking in the last quarter only: further back, cutting a word wastes less."""
    gap = max(piece.rfind(space) for space in " \n\t")
    return gap if gap > len(piece) * 3 // 4 else len(piece)


def batch_chunks(chunks: Sequence[TextChunk]) -> Iterator[list[TextChunk]]:
    request: list[TextChunk] = []
    size = 0
    for chunk in chunks:
        if request and (len(request) == MAX_TEXTS_PER_REQUEST or size + chunk.size > MAX_REQUEST_BYTES):
            yield request
            request, size = [], 0
        request.append(chunk)
        size += chunk.size
    if request:
        yield request
