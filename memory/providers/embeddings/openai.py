"""Embeddings from any endpoint that speaks OpenAI's protocol."""

import email.utils
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

import httpx2
import numpy as np
import openai
from pydantic import BaseModel, ConfigDict, ValidationError

from memory.errors import ProviderError, ProviderRefused, ProviderReplyInvalid, ProviderUnavailable
from memory.providers.embeddings.base import (
    Deadline,
    PerProcess,
    Vectors,
    mean_of_chunks,
    normalized_rows,
    refuse_unembeddable,
)

MAX_TEXTS_PER_REQUEST = 128
# the models read 8,191 tokens, and a token is at least one byte: such a chunk always fits, in any script
MAX_CHUNK_BYTES = 8_000
# OpenAI refuses requests of more than 300,000 tokens
MAX_REQUEST_BYTES = 256_000
LONGEST_WAIT_SECONDS = 30.0
# a number in JSON takes at most 25 bytes; the rest is room for what stands around it
REPLY_BYTES_PER_NUMBER, REPLY_BYTES_BESIDE = 40, 100_000
WIDEST_MODEL = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIEndpoint:
    """Where to ask, for what, and how patiently."""

    model: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    """Empty: OpenAI's own."""
    dimensions: int = 1536
    """Asked for and checked; 0 leaves the width to the model, for endpoints that refuse the parameter."""
    timeout_seconds: float = 5.0
    """Of one request."""
    max_attempts: int = 4
    backoff_seconds: float = 0.25
    """Before the second attempt, doubled before each later one, between half and all of it by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a text that surely fits the model."""

    text: int
    content: str
    size: int
    """Bytes of UTF-8."""


class OpenAIEmbeddings:
    """Batched, retried under one deadline, and believed only after its answer was checked; thread-safe.

    A text of more than 8,000 bytes is cut into chunks, at white space where there is some, and its vector is
    the normalized mean of theirs, weighted by their bytes.

    The client's own retries are off: they give every attempt the full timeout and know of no deadline.
    The reply is read as a stream, so that neither its size nor its slowness is the server's to choose, and
    parsed here: the client neither counts vectors nor refuses HTML.
    """

    max_batch = MAX_TEXTS_PER_REQUEST

    def __init__(self, endpoint: OpenAIEndpoint) -> None:
        self.model = endpoint.model
        self._endpoint = endpoint
        self._client = PerProcess(self._open_client)

    @cached_property
    def width(self) -> int:
        """With `dimensions` of 0 the endpoint is asked, once, by embedding a word."""
        if self._endpoint.dimensions:
            return self._endpoint.dimensions
        probe = [Chunk(text=0, content="width", size=5)]
        deadline = Deadline.after(self._endpoint.timeout_seconds)
        return int(self._ask_patiently(probe, 0, deadline).shape[1])

    def embed(self, texts: Sequence[str], *, deadline_seconds: float | None) -> Vectors:
        refuse_unembeddable(texts)
        if not texts:
            return np.empty((0, self.width), dtype=np.float32)
        deadline = Deadline.after(deadline_seconds)
        chunks = [
            Chunk(text=number, content=piece, size=len(piece.encode()))
            for number, text in enumerate(texts)
            for piece in cut_text(text)
        ]
        vectors = [self._ask_patiently(batch, self.width, deadline) for batch in cut_into_requests(chunks)]
        return mean_of_chunks(
            np.concatenate(vectors),
            text_of_chunk=[chunk.text for chunk in chunks],
            lengths=[chunk.size for chunk in chunks],
        )

    def _ask_patiently(self, batch: Sequence[Chunk], width: int, deadline: Deadline) -> Vectors:
        attempt = 1
        while True:
            try:
                return parse_vectors(self._ask(batch, width, deadline), count=len(batch), width=width)
            except ProviderUnavailable as failure:
                wait = self._wait_seconds(attempt, failure.retry_after_seconds)
                is_last = attempt == self._endpoint.max_attempts or wait > LONGEST_WAIT_SECONDS
                if is_last or not deadline.leaves_room_for(wait):
                    raise
            time.sleep(wait)
            attempt += 1

    def _wait_seconds(self, attempt: int, retry_after_seconds: float | None) -> float:
        if retry_after_seconds is not None:
            return retry_after_seconds
        # jitter, or all workers that failed together come back together
        return self._endpoint.backoff_seconds * 2.0 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311

    def _ask(self, batch: Sequence[Chunk], width: int, deadline: Deadline) -> bytes:
        try:
            return self._exchange(batch, width, deadline)
        except (openai.OpenAIError, httpx2.HTTPError) as err:
            failure = translate_failure(err)
        # outside the handler, or the original, whose text may echo the key, would be its context in logs
        raise failure

    def _exchange(self, batch: Sequence[Chunk], width: int, deadline: Deadline) -> bytes:
        seconds = deadline.remaining_seconds(at_most=self._endpoint.timeout_seconds)
        this_request = Deadline.after(seconds)
        limit = REPLY_BYTES_BESIDE + REPLY_BYTES_PER_NUMBER * (width or WIDEST_MODEL) * len(batch)
        body = bytearray()
        with self._client.get().embeddings.with_streaming_response.create(
            input=[chunk.content for chunk in batch],
            model=self.model,
            dimensions=self._endpoint.dimensions or openai.omit,
            encoding_format="float",
            timeout=seconds,
        ) as response:
            for part in response.iter_bytes():
                body += part
                this_request.remaining_seconds(at_most=0)
                if len(body) > limit:
                    raise ProviderReplyInvalid(
                        f"the reply is larger than {limit} bytes, too large for {len(batch)} vectors"
                    )
        return bytes(body)

    def _open_client(self) -> openai.OpenAI:
        return openai.OpenAI(
            # an endpoint of one's own may need no key; the client insists on one
            api_key=self._endpoint.api_key or "none",
            base_url=self._endpoint.base_url or None,
            max_retries=0,
        )


class ReplyItem(BaseModel):
    model_config = ConfigDict(strict=True)

    index: int
    embedding: list[float]


class Reply(BaseModel):
    model_config = ConfigDict(strict=True)

    data: list[ReplyItem]


def parse_vectors(body: bytes, *, count: int, width: int) -> Vectors:
    """The vectors by `index`, normalized; a width of 0 takes any. Raises ProviderReplyInvalid."""
    try:
        items = Reply.model_validate_json(body).data
    except ValidationError:
        items = None
    if items is None:
        raise ProviderReplyInvalid("the reply is not the JSON of an embeddings answer")
    if sorted(item.index for item in items) != list(range(count)):
        raise ProviderReplyInvalid(
            f"the reply holds {len(items)} vectors, wrongly numbered or not the {count} asked for"
        )
    widths = {len(item.embedding) for item in items}
    if len(widths) != 1 or widths == {0} or (width and widths != {width}):
        raise ProviderReplyInvalid(f"the reply's vectors are {sorted(widths)[:5]} wide, not {width or 'all alike'}")
    return normalized_rows(np.array([item.embedding for item in sorted(items, key=lambda item: item.index)]))


def translate_failure(err: openai.OpenAIError | httpx2.HTTPError) -> ProviderError:
    """What to do about it, without a word of the provider's own."""
    if isinstance(err, openai.APIStatusError):
        return translate_status(err.response)
    if isinstance(err, openai.APITimeoutError | httpx2.TimeoutException):
        return ProviderUnavailable("the embedding endpoint did not answer in time")
    if isinstance(err, openai.APIConnectionError | httpx2.TransportError):
        return ProviderUnavailable("the connection to the embedding endpoint failed")
    return ProviderReplyInvalid(f"the embedding endpoint's answer could not be read ({type(err).__name__})")


def translate_status(response: httpx2.Response) -> ProviderError:
    status = response.status_code
    if status in (408, 409, 425, 429) or status >= 500:
        wait = read_retry_after(response.headers.get("retry-after", ""), now=datetime.now(UTC))
        return ProviderUnavailable(f"the embedding endpoint answered {status}", retry_after_seconds=wait)
    if status >= 400:
        return ProviderRefused(f"the embedding endpoint refused the request with {status}", status=status)
    return ProviderReplyInvalid(f"the embedding endpoint answered {status}")


def read_retry_after(value: str, *, now: datetime) -> float | None:
    """Seconds from a Retry-After header (RFC 9110, 10.2.3): digits or a date; None without a sound one."""
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if until.tzinfo is None:
        return None
    return max(0.0, (until - now).total_seconds())


def cut_text(text: str) -> Iterator[str]:
    """Pieces of at most MAX_CHUNK_BYTES; white space between pieces is dropped, nothing else."""
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
    """Looked for in the last quarter only: further back, a word is better cut than a chunk wasted."""
    gap = max(piece.rfind(space) for space in " \n\t")
    return gap if gap > len(piece) * 3 // 4 else len(piece)


def cut_into_requests(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    request: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if request and (len(request) == MAX_TEXTS_PER_REQUEST or size + chunk.size > MAX_REQUEST_BYTES):
            yield request
            request, size = [], 0
        request.append(chunk)
        size += chunk.size
    if request:
        yield request
