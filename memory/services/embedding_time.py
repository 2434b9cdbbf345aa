"""A time that embedding may take in all, of a command that embeds much: what is left then is for the `embed` job."""

from collections.abc import Sequence
from time import monotonic

from memory.models.binary import Embedding
from memory.providers.embeddings import embedding_provider
from memory.services.embedding.embed import WRITE_TEXTS, Embedded, embed_texts


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
