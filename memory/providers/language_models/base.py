"""The protocol of language models: they return a validated answer or raise ProviderError, and report usage."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, Self, TypeVar

from django.template.loader import render_to_string
from pydantic import BaseModel

Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of requests: tokens as the provider counts them (0 if it does not say), and the price."""

    model: str
    calls: int = 1
    failed_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)


Meter = Callable[[Usage], None]
"""Called with the usage of every request, also of those that fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request. `instructions` come from this service; `material` is foreign text within the tags of a template.

    `max_tokens` limits the answer including its JSON, which takes a token a character in some scripts and must not be
    cut off. Tokens of thinking before the answer are not included.
    """

    instructions: str
    material: str
    max_tokens: int

    @classmethod
    def of_use(cls, use: str, limits: Mapping[str, Any], material: Mapping[str, Any], *, max_tokens: int) -> Self:
        """Return the request made of the two templates of a use, such as `prompts/summary_instructions.txt`."""
        return cls(
            instructions=render_to_string(f"prompts/{use}_instructions.txt", {**limits}).strip(),
            material=render_to_string(f"prompts/{use}_material.txt", {**material}).strip(),
            max_tokens=max_tokens,
        )


class LanguageModel(Protocol):
    """Answers questions with instances of a pydantic model. Thread-safe."""

    @property
    def model(self) -> str:
        """The name of the model, for usage and provenance."""

    def ask(self, question: Question, shape: type[Shape], *, meter: Meter, deadline_seconds: float) -> Shape:
        """Return the answer, validated; an answer of another shape is sent back once to be corrected.

        The shape's fields are models, texts, numbers, booleans, choices and lists of them, or null: strict schemas
        know no dictionaries. All fields are asked for, those with a default too. No text of the answer holds a NUL.

        Raises ProviderUnavailable, ProviderRefused or ProviderReplyInvalid, whose messages hold nothing of the
        material, the answer or the provider's words; ValueError, before any request, for what is no valid Unicode.
        """
