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
    """Texts that a model reads before a question, and before a stored text. Most models have none."""

    query: str = ""
    passage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """An embedding model and how to reach it, without its key: what is kept of a model between two changes.

    `name` is stored with each vector; searches compare vectors of one name only. It is the model's own name, unless
    vectors of the same model with another width exist. A `width` of 0 is not known before the endpoint was asked.
    """

    name: str
    provider: str
    model: str
    width: int
    asks_width: bool = False
    """True if requests name the width."""
    folder: str = ""
    """Folder of local weights. Empty: the bundled ones."""
    base_url: str = ""
    """Address of an endpoint. Empty: that of the settings."""
    prefixes: TextPrefixes = TextPrefixes()
    """Prefixes that replace those that a local folder states."""

    def is_same(self, other: "ModelSpec") -> bool:
        """Return True if both make the same vectors: those of one model and width, whoever computes them."""
        return self.model == other.model and (self.width == other.width or not self.width or not other.width)

    def describe(self) -> str:
        """Return the name and width for people."""
        return f"{self.name} ({self.width} dimensions)" if self.width else self.name


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
