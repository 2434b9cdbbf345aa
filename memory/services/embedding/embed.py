"""Turns texts into vectors for writes and searches: cached, with a deadline, never inside a transaction.

Long texts are embedded passage by passage (`providers.passages`); the vector of the whole is the mean of theirs.

A failing embedder never fails a write: the row is stored without its vector and waits in the queue, which is the table
itself. Commands that embed much limit their total time with `EmbeddingBudget`; the `embed` job does the rest.
"""

import base64
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np
from django.core.cache import cache
from django.db import DatabaseError, connections
from redis.exceptions import RedisError

from memory import conf
from memory.errors import ProviderError, ProviderRefused, ProviderReplyInvalid, ProviderTooSlow
from memory.models.statements import Embedding
from memory.models.vectors import MAX_WIDTH
from memory.models.writer import PassageVector
from memory.providers.connections import Deadline
from memory.providers.embeddings import EmbeddingProvider
from memory.providers.embeddings.base import mean_of_chunks
from memory.providers.passages import Span, has_passages, split_passages
from memory.services.embedding.serving import (
    EmbeddingModel,
    read_known_models,
    serving_model,
    use_configured_model,
    use_model,
    warm_model,
)
from memory_project.batches import batched
from memory_project.measures import ANSWERED, EMBEDDED_TEXTS, EMBEDDING_CACHE, EMBEDDING_REQUESTS, FAILED, HIT, MISS
from memory_project.tracing import span

logger = logging.getLogger(__name__)

WRITE_DEADLINE_SECONDS = 5.0
MAX_TEXTS_PER_CALL = 200
STATUSES_ABOUT_A_TEXT = frozenset({400, 413, 422})
"""HTTP statuses of refusals that may be caused by a text; others concern the key or the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTexts:
    """Vectors of one model by text, and of the passages of long texts. `error` is the code of a failure, or empty.

    `is_divisible`: one of the texts may be the cause, so others may work without it. `is_slow`: the time ran out, so
    fewer texts may work.
    """

    model: str
    width: int
    vectors: dict[str, Embedding]
    passages: Mapping[str, Sequence[PassageVector]] = field(default_factory=dict)
    error: str = ""
    is_divisible: bool = False
    is_slow: bool = False


def load_local_model() -> None:
    """Load the local models that serve, or will soon, for processes that are forked from this one.

    Reads the database and leaves no connection behind, which forked processes would share.
    """
    connection: Any = connections["default"]
    try:
        known = read_known_models()
    except DatabaseError:
        known = None
    finally:
        connection.close()
        connection.close_pool()
    specs = [] if known is None else [spec for spec in (known.serving, known.next) if spec is not None]
    for model in map(use_model, specs) if specs else [use_configured_model()]:
        warm_model(model)


def content_hash(text: str) -> str:
    """Return the SHA-256 of the text's UTF-8 as 64 hexadecimal digits: equal texts have equal hashes."""
    return hashlib.sha256(text.encode()).hexdigest()


def embed_texts(
    texts: Sequence[str], *, deadline_seconds: float = WRITE_DEADLINE_SECONDS, model: EmbeddingModel | None = None
) -> EmbeddedTexts:
    """Embed each distinct text to store once, using the cache. Provider errors are returned, not raised.

    At most the first 200 distinct texts within the deadline; the `embed` job does the rest. Default: the serving model.
    """
    model = model or serving_model()
    return embed_prefixed(texts, model.prefixes.passage, model, deadline_seconds=deadline_seconds)


def embed_questions(texts: Sequence[str], *, deadline_seconds: float) -> EmbeddedTexts:
    """Embed each distinct text of a search once, by the serving model, as `embed_texts` does."""
    model = serving_model()
    return embed_prefixed(texts, model.prefixes.query, model, deadline_seconds=deadline_seconds)


def embed_prefixed(
    texts: Sequence[str], prefix: str, model: EmbeddingModel, *, deadline_seconds: float
) -> EmbeddedTexts:
    """Embed the texts, each passage with the prefix before it. The result has vectors by the texts without it."""
    provider, deadline = model.provider, Deadline.after(deadline_seconds)
    wanted = list(dict.fromkeys(text for text in texts if text.strip()))[:MAX_TEXTS_PER_CALL]
    spans = {text: split_passages(text) for text in wanted if has_passages(text)}
    parts = list(dict.fromkeys(prefix + part for text in wanted for part in parts_of(text, spans)))
    known: dict[str, Embedding] = {}
    width, failure = 0, None
    try:
        # asks the endpoint if no width is configured
        width = resolve_vector_width(model, deadline)
        known = read_cached_vectors(provider, parts)
        known |= embed_uncached(provider, [part for part in parts if part not in known], deadline)
    except ProviderError as err:
        logger.warning("embedding of %d texts failed: %s", len(parts) - len(known), err)
        failure = err
    known = {part[len(prefix) :]: vector for part, vector in known.items()} if prefix else known
    passages = {text: collect_passages(text, own, known) for text, own in spans.items() if is_known(text, own, known)}
    whole = {text: known[text] for text in wanted if text not in spans and text in known}
    return EmbeddedTexts(
        model=provider.model,
        width=width,
        vectors=whole | {text: mean_of_passages(own) for text, own in passages.items()},
        passages=passages,
        error="" if failure is None else failure.code,
        is_divisible=failure is not None and may_be_about_a_text(failure),
        is_slow=isinstance(failure, ProviderTooSlow),
    )


def parts_of(text: str, spans: Mapping[str, Sequence[Span]]) -> list[str]:
    """Return what is embedded of a text: its passages if it has any, else the text."""
    return [text[start:end] for start, end in spans[text]] if text in spans else [text]


def is_known(text: str, spans: Sequence[Span], known: Mapping[str, Embedding]) -> bool:
    return all(text[start:end] in known for start, end in spans)


def collect_passages(text: str, spans: Sequence[Span], known: Mapping[str, Embedding]) -> list[PassageVector]:
    return [PassageVector(start=start, end=end, vector=known[text[start:end]]) for start, end in spans]


def mean_of_passages(passages: Sequence[PassageVector]) -> Embedding:
    """Return the normalized mean of the passages' vectors, weighted by their lengths."""
    vectors = np.stack([each.vector for each in passages])
    lengths = [each.end - each.start for each in passages]
    mean: Embedding = mean_of_chunks(vectors, text_of_chunk=[0] * len(passages), lengths=lengths)[0]
    return mean


def resolve_vector_width(model: EmbeddingModel, deadline: Deadline) -> int:
    """Return the width of the model's vectors. Raises ProviderReplyInvalid for one that cannot be stored."""
    width = model.provider.find_width(deadline_seconds=deadline.left_seconds())
    if width > MAX_WIDTH:
        raise ProviderReplyInvalid(
            f"the model's vectors have {width} dimensions, but at most {MAX_WIDTH} are supported"
        )
    if model.width not in (0, width):
        raise ProviderReplyInvalid(f"the model's vectors have {width} dimensions, and those stored have {model.width}")
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
        passages: dict[str, Sequence[PassageVector]] = {}
        width, error, model = 0, "", serving_model()
        for batch in batched(dict.fromkeys(texts), MAX_TEXTS_PER_CALL):
            if self.left_seconds <= 0:
                break
            started = monotonic()
            some = embed_texts(batch, deadline_seconds=self.left_seconds, model=model)
            self.left_seconds -= monotonic() - started
            vectors |= some.vectors
            passages |= some.passages
            width = some.width or width
            # running out of time is not a failure of the embedder
            error = some.error if self.left_seconds > 0 else ""
            if error and not some.is_divisible:
                break
        return EmbeddedTexts(model=model.name, width=width, vectors=vectors, passages=passages, error=error)
