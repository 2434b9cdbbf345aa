"""Turns texts into vectors for writes and searches: cached, with a deadline, never inside a transaction.

A failing embedder never fails a write: the row is stored without its vector and waits in the queue, which is the table
itself. Commands that embed much limit their total time with `EmbeddingBudget`; the `embed` job does the rest.
"""

import base64
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
from django.core.cache import cache
from redis.exceptions import RedisError

from memory import conf
from memory.errors import ProviderError, ProviderRefused, ProviderReplyInvalid, ProviderTooSlow
from memory.models.statements import Embedding
from memory.models.vectors import MAX_WIDTH
from memory.providers.connections import Deadline
from memory.providers.embeddings import EmbeddingProvider, embedding_provider, text_prefixes
from memory.providers.embeddings.local import LocalEmbeddings
from memory_project.measures import ANSWERED, EMBEDDED_TEXTS, EMBEDDING_CACHE, EMBEDDING_REQUESTS, FAILED, HIT, MISS
from memory_project.tracing import span

logger = logging.getLogger(__name__)

WRITE_DEADLINE_SECONDS = 5.0
MAX_TEXTS_PER_CALL = 200
STATUSES_ABOUT_A_TEXT = frozenset({400, 413, 422})
"""HTTP statuses of refusals that may be caused by a text; others concern the key or the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTexts:
    """Vectors of one model by text. `error` is the code of a failure, or empty.

    `is_divisible`: one of the texts may be the cause, so others may work without it. `is_slow`: the time ran out, so
    fewer texts may work.
    """

    model: str
    width: int
    vectors: dict[str, Embedding]
    error: str = ""
    is_divisible: bool = False
    is_slow: bool = False


def load_local_model() -> None:
    """Load the local model (about a second, more if its graph must be built); do nothing for an endpoint."""
    provider = embedding_provider()
    if isinstance(provider, LocalEmbeddings):
        provider.embed(["ready"], deadline_seconds=None)


def content_hash(text: str) -> str:
    """Return the SHA-256 of the text's UTF-8 as 64 hexadecimal digits: equal texts have equal hashes."""
    return hashlib.sha256(text.encode()).hexdigest()


def embed_texts(texts: Sequence[str], *, deadline_seconds: float = WRITE_DEADLINE_SECONDS) -> EmbeddedTexts:
    """Embed each distinct text to store once, using the cache. Provider errors are returned, not raised.

    At most the first 200 distinct texts within the deadline; the `embed` job does the rest.
    """
    return embed_prefixed(texts, text_prefixes().passage, deadline_seconds=deadline_seconds)


def embed_questions(texts: Sequence[str], *, deadline_seconds: float) -> EmbeddedTexts:
    """Embed each distinct text of a search once, as `embed_texts` does."""
    return embed_prefixed(texts, text_prefixes().query, deadline_seconds=deadline_seconds)


def embed_prefixed(texts: Sequence[str], prefix: str, *, deadline_seconds: float) -> EmbeddedTexts:
    """Embed the texts with the prefix before each. The result has their vectors by the texts without it."""
    provider, deadline = embedding_provider(), Deadline.after(deadline_seconds)
    wanted = list(dict.fromkeys(prefix + text for text in texts if text.strip()))[:MAX_TEXTS_PER_CALL]
    known: dict[str, Embedding] = {}
    width, failure = 0, None
    try:
        # asks the endpoint if no width is configured
        width = resolve_vector_width(provider, deadline)
        known = read_cached_vectors(provider, wanted)
        known |= embed_uncached(provider, [text for text in wanted if text not in known], deadline)
    except ProviderError as err:
        logger.warning("embedding of %d texts failed: %s", len(wanted) - len(known), err)
        failure = err
    return EmbeddedTexts(
        model=provider.model,
        width=width,
        vectors={text[len(prefix) :]: vector for text, vector in known.items()} if prefix else known,
        error="" if failure is None else failure.code,
        is_divisible=failure is not None and may_be_about_a_text(failure),
        is_slow=isinstance(failure, ProviderTooSlow),
    )


def resolve_vector_width(provider: EmbeddingProvider, deadline: Deadline) -> int:
    width = provider.find_width(deadline_seconds=deadline.left_seconds())
    if width > MAX_WIDTH:
        raise ProviderReplyInvalid(
            f"the model's vectors have {width} dimensions, but at most {MAX_WIDTH} are supported"
        )
    return width


def may_be_about_a_text(err: ProviderError) -> bool:
    return isinstance(err, ProviderReplyInvalid) or (
        isinstance(err, ProviderRefused) and err.status in STATUSES_ABOUT_A_TEXT
    )


def embed_uncached(provider: EmbeddingProvider, texts: Sequence[str], deadline: Deadline) -> dict[str, Embedding]:
    if not texts:
        return {}
    try:
        with span("embed", model=provider.model, texts=len(texts)):
            vectors = provider.embed(texts, deadline_seconds=deadline.left_seconds())
    except ProviderError:
        EMBEDDING_REQUESTS.labels(FAILED).inc()
        raise
    EMBEDDING_REQUESTS.labels(ANSWERED).inc()
    EMBEDDED_TEXTS.inc(len(texts))
    fresh = dict(zip(texts, vectors, strict=True))
    write_cached_vectors(provider, fresh)
    return fresh


def read_cached_vectors(provider: EmbeddingProvider, texts: Sequence[str]) -> dict[str, Embedding]:
    """Return the cached vectors by text, in one round trip. A cache that is down counts as empty."""
    if not texts or not conf.EMBEDDING_CACHE_SECONDS:
        return {}
    keys = {cache_key(provider, text): text for text in texts}
    try:
        found = cache.get_many(keys)
    except RedisError as err:
        logger.warning("embedding cache not read: %s", type(err).__name__)
        return {}
    EMBEDDING_CACHE.labels(HIT).inc(len(found))
    EMBEDDING_CACHE.labels(MISS).inc(len(keys) - len(found))
    return {keys[key]: np.frombuffer(base64.b64decode(value), dtype=np.float32) for key, value in found.items()}


def write_cached_vectors(provider: EmbeddingProvider, vectors: dict[str, Embedding]) -> None:
    if not conf.EMBEDDING_CACHE_SECONDS:
        return
    values = {
        cache_key(provider, text): base64.b64encode(vector.astype(np.float32).tobytes()).decode()
        for text, vector in vectors.items()
    }
    try:
        cache.set_many(values, timeout=conf.EMBEDDING_CACHE_SECONDS)
    except RedisError as err:
        logger.warning("embedding cache not written: %s", type(err).__name__)


def cache_key(provider: EmbeddingProvider, text: str) -> str:
    """Return the key by model, width and content, so that vectors of different models never mix."""
    return f"embedding:{provider.model}:{provider.width}:{content_hash(text)}"


class EmbeddingBudget:
    """A total time for embedding: it runs down only while texts are being embedded."""

    def __init__(self, seconds: float) -> None:
        self.left_seconds = seconds

    def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        """Embed each distinct text once, in order, until the time is up or the embedder fails."""
        vectors: dict[str, Embedding] = {}
        width, error = 0, ""
        wanted = list(dict.fromkeys(texts))
        for start in range(0, len(wanted), MAX_TEXTS_PER_CALL):
            if self.left_seconds <= 0:
                break
            started = monotonic()
            some = embed_texts(wanted[start : start + MAX_TEXTS_PER_CALL], deadline_seconds=self.left_seconds)
            self.left_seconds -= monotonic() - started
            vectors |= some.vectors
            width = some.width or width
            # running out of time is not a failure of the embedder
            error = some.error if self.left_seconds > 0 else ""
            if error and not some.is_divisible:
                break
        return EmbeddedTexts(model=embedding_provider().model, width=width, vectors=vectors, error=error)
