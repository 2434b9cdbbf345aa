"""Embeddings without a model, for tests and synthetic loads."""

import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.providers.embeddings.base import Vectors, normalized_rows, refuse_unembeddable

TINY_WIDTH = 64
WORD = re.compile(r"\w+")


class TinyEmbeddings:
    """Signed feature hashing (Weinberger et al. 2009) of words and trigrams: texts that share words are near.

    The vectors are the same in all processes and on all machines. They carry no meaning, so never use it in production.
    """

    max_batch = 256

    def __init__(self, *, width: int = TINY_WIDTH) -> None:
        self.width = width
        self.model = f"tiny-{width}"

    def find_width(self, *, deadline_seconds: float | None) -> int:
        """Return the fixed width; the deadline is never needed."""
        return self.width

    def embed(self, texts: Sequence[str], *, deadline_seconds: float | None) -> Vectors:
        """Return the vectors; the deadline is never needed, since a text takes microseconds."""
        refuse_unembeddable(texts)
        if not texts:
            return np.empty((0, self.width), dtype=np.float32)
        return normalized_rows(np.stack([self._counts(text) for text in texts]))

    def _counts(self, text: str) -> NDArray[np.float64]:
        counts = np.zeros(self.width)
        # whole numbers are added below, so this half keeps every text away from zero
        counts[0] = 0.5
        for feature in features(text.lower()):
            checksum = zlib.crc32(feature.encode())
            counts[checksum % self.width] += 1 if checksum & 0x8000_0000 else -1
        return counts


def features(text: str) -> Iterator[str]:
    for word in WORD.findall(text):
        yield word
        padded = f"<{word}>"
        yield from (padded[start : start + 3] for start in range(len(padded) - 2))
