"""Texts to vectors for those who write and those who search: cached, under a deadline, never inside a transaction.

A failing embedder never fails a write: the row is stored without its vector and waits in the queue that it is itself.
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
from memory.models.binary import Embedding
from memory.models.vectors import MAX_WIDTH
from memory.providers.deadlines import Deadline
from memory.providers.embeddings import EmbeddingProvider, embedding_provider
from memory.providers.embeddings.local import LocalEmbeddings
from memory_project.measures import ANSWERED, EMBEDDED_TEXTS, EMBEDDING_CACHE, EMBEDDING_REQUESTS, FAILED, HIT, MISS
from memory_project.tracing import span

logger = logging.getLogger(__name__)

WRITE_DEADLINE_SECONDS = 5.0
WRITE_TEXTS = 200
TEXT_STATUSES = frozenset({400, 413, 422})
"""Refusals that may be about a text; others are about the key or the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Vectors by text, of one model. `error` is the code of what went wrong, empty when all is well.

    `is_divisible`: it may lie in one of the texts, so that others may do without it. `is_slow`: the time ran out, so
    that fewer may do.
    """

    model: str
    width: int
    vectors: dict[str, Embedding]
    error: str = ""
    is_divisible: bool = False
    is_slow: bool = False


def warm_up() -> None:
    """Load the local model (a second, more where its graph is still to be built); do nothing for an endpoint."""
    provider = embedding_provider()
    if isinstance(provider, LocalEmbeddings):
        provider.embed(["ready"], deadline_seconds=None)


def content_hash(text: str) -> str:
    """What makes two texts the same: SHA-256 of their UTF-8, 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def embed_texts(texts: Sequence[str], *, deadline_seconds: float = WRITE_DEADLINE_SECONDS) -> Embedded:
    """Embed each different text once, from the cache where it was met before. Raises nothing of the provider's.

    At most the first 200 different texts within the deadline: what is left over is for the `embed` job.
    """
    provider, deadline = embedding_provider(), Deadline.after(deadline_seconds)
    wanted = list(dict.fromkeys(text for text in texts if text.strip()))[:WRITE_TEXTS]
    known: dict[str, Embedding] = {}
    width, failure = 0, None
    try:
        # an endpoint whose width is not configured is asked for it
        width = checked_width(provider, deadline)
        known = read_cache(provider, wanted)
        known |= embed_missing(provider, [text for text in wanted if text not in known], deadline)
    except ProviderError as err:
        logger.warning("embedding of %d texts failed: %s", len(wanted) - len(known), err)
        failure = err
    return Embedded(
        model=provider.model,
        width=width,
        vectors=known,
        error="" if failure is None else failure.code,
        is_divisible=failure is not None and may_lie_in_a_text(failure),
        is_slow=isinstance(failure, ProviderTooSlow),
    )


def checked_width(provider: EmbeddingProvider, deadline: Deadline) -> int:
    width = provider.find_width(deadline_seconds=deadline.left_seconds())
    if width > MAX_WIDTH:
        raise ProviderReplyInvalid(f"vectors have at most {MAX_WIDTH} dimensions here, not {width}")
    return width


def may_lie_in_a_text(err: ProviderError) -> bool:
    return isinstance(err, ProviderReplyInvalid) or (isinstance(err, ProviderRefused) and err.status in TEXT_STATUSES)


def embed_missing(provider: EmbeddingProvider, texts: Sequence[str], deadline: Deadline) -> dict[str, Embedding]:
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
    write_cache(provider, fresh)
    return fresh


def read_cache(provider: EmbeddingProvider, texts: Sequence[str]) -> dict[str, Embedding]:
    """One round trip. A cache that is down is a cache that knows nothing."""
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


def write_cache(provider: EmbeddingProvider, vectors: dict[str, Embedding]) -> None:
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
    """By model, width and content, so that another model never answers for this one."""
    return f"embedding:{provider.model}:{provider.width}:{content_hash(text)}"


class EmbeddingTime:
    """Runs down while texts are embedded, and only then."""

    def __init__(self, seconds: float) -> None:
        self.left_seconds = seconds

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Each different text once, in order, as far as the time reaches; a failing embedder is asked no further."""
        vectors: dict[str, Embedding] = {}
        width, error = 0, ""
        wanted = list(dict.fromkeys(texts))
        for start in range(0, len(wanted), WRITE_TEXTS):
            if self.left_seconds <= 0:
                break
            started = monotonic()
            some = embed_texts(wanted[start : start + WRITE_TEXTS], deadline_seconds=self.left_seconds)
            self.left_seconds -= monotonic() - started
            vectors |= some.vectors
            width = some.width or width
            # a time that ran out is no failure of the embedder
            error = some.error if self.left_seconds > 0 else ""
            if error and not some.is_divisible:
                break
        return Embedded(model=embedding_provider().model, width=width, vectors=vectors, error=error)
