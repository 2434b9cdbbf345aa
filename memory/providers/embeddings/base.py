"""The protocol of embedding providers, and the arithmetic that all of them share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memory.errors import ProviderReplyInvalid
from memory.providers.material import is_valid_unicode

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPrefixes:
    """What a model reads before a question, and before a stored text; empty for most models."""

    query: str = ""
    passage: str = ""


class EmbeddingProvider(Protocol):
    """Computes vectors of one model. Searches never compare vectors of different models."""

    @property
    def model(self) -> str:
        """Return the name stored with each vector."""

    @property
    def width(self) -> int:
        """The number of dimensions. May ask an endpoint for it once, and raise a ProviderError."""

    def find_width(self, *, deadline_seconds: float | None) -> int:
        """Return the width, within the deadline. Raises a ProviderError."""

    @property
    def max_batch(self) -> int:
        """The number of texts that the provider handles at once: a sensible unit of work, not a limit of `embed`."""

    def embed(self, texts: Sequence[str], *, deadline_seconds: float | None) -> Vectors:
        """Return one row of length 1 per text, in order: an array of the shape (len(texts), width).

        Raises ValueError before any work for a text that is blank or no valid Unicode, and a `ProviderError`
        when there is no sound answer within the deadline. All or nothing: there are no partial results.
        """


def refuse_unembeddable(texts: Sequence[str]) -> None:
    """Raise ValueError for texts without a meaningful vector. The message names their positions and quotes nothing."""
    for position, text in enumerate(texts):
        if not text.strip():
            raise ValueError(f"text {position} is blank: there is nothing to embed")
        if not is_valid_unicode(text):
            raise ValueError(f"text {position} holds a lone surrogate: it is no valid Unicode")


def normalized_rows(matrix: NDArray[np.float64] | Vectors) -> Vectors:
    """Return each row divided by its L2 norm. Raises ProviderReplyInvalid for zero or not finite rows."""
    exact = matrix.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(exact, axis=1, keepdims=True)
    if not np.isfinite(norms).all():
        raise ProviderReplyInvalid("a vector holds NaN, infinity, or numbers too large for its length to be known")
    if not (norms > 0).all():
        raise ProviderReplyInvalid("a vector is zero: it has no direction")
    rows: Vectors = (exact / norms).astype(np.float32)
    return rows


def mean_of_chunks(vectors: Vectors, *, text_of_chunk: Sequence[int], lengths: Sequence[int]) -> Vectors:
    """Return one vector per text: the normalized mean of its chunks' vectors, weighted by the chunks' lengths.

    `text_of_chunk` counts up from 0 without gaps. Weighted, so that a last chunk of three words does not
    count like a full one.
    """
    sums = np.zeros((text_of_chunk[-1] + 1, vectors.shape[1]))
    np.add.at(sums, list(text_of_chunk), vectors * np.asarray(lengths, dtype=np.float64)[:, None])
    return normalized_rows(sums)
