"""Digests: what a stretch of a conversation came to, in the fields of the documented episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.providers.language_models import Meter
from memory.providers.summaries import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """`source` names who wrote it: "extractive", or a model."""

    summary: str
    key_decisions: tuple[str, ...]
    entities_mentioned: tuple[str, ...]
    tools_called: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What is to be digested: messages in order, the digest of what came before them, tools known to be called."""

    messages: Sequence[Message]
    previous: Digest | None
    tools: Sequence[str]


class Digester(Protocol):
    """Takes the previous digest in, so that the new one stands for everything so far."""

    def digest(self, stretch: Stretch, *, max_tokens: int, meter: Meter, deadline_seconds: float) -> Digest:
        """Raises ProviderError."""
