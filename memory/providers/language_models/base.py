"""The protocol of language models: a validated answer, or a ProviderError, and the cost either way."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeVar

from pydantic import BaseModel

Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The cost of requests: tokens as the provider counts them (0 if it does not say), and the price."""

    model: str
    calls: int = 1
    failed_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)


Meter = Callable[[Usage], None]
"""Told of every request, answered or not, also where the question fails in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`instructions` are ours; `material` is other people's text, fenced by its template.

    `max_tokens` is what the answer may have, its JSON included; what a model thinks before comes on top.
    """

    instructions: str
    material: str
    max_tokens: int


class LanguageModel(Protocol):
    """Answers questions in a given shape; thread-safe."""

    @property
    def model(self) -> str:
        """Its name, for usage and provenance."""

    def ask(self, question: Question, shape: type[Shape], *, meter: Meter, deadline_seconds: float) -> Shape:
        """Return the answer, validated; an answer of another shape is sent back once to be corrected.

        The shape's fields are models, texts, numbers, booleans, choices and lists of them, or null: strict schemas
        know no dictionaries. All fields are asked for, those with a default too. No text of the answer holds a NUL.

        Raises ProviderUnavailable, ProviderRefused or ProviderReplyInvalid, whose messages hold nothing of the
        material, the answer or the provider's words; ValueError, before any request, for what is no valid Unicode.
        """
