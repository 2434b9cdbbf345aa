"""The protocol of rerankers."""

from collections.abc import Sequence
from typing import Protocol

from memory.providers.deadlines import Deadline


class Reranker(Protocol):
    """Reads a question and texts together; thread-safe."""

    @property
    def model(self) -> str:
        """Its name."""

    def score(self, question: str, texts: Sequence[str], *, deadline: Deadline) -> list[float]:
        """Score how well each text answers the question, in the order of the texts; the greater, the better.

        Raises ProviderUnavailable, ProviderRefused or ProviderReplyInvalid, whose messages hold nothing of the texts.
        """
