"""Texts of work in fewer words by a language model, believed as far as no fact and no refusal got lost.

What the model left out of numbers, names and errors is put back; where it denies what was not denied, or tells what
nobody told, the sentences of the text itself are taken. Texts too long to be shown are quoted from at once.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from django.template.loader import render_to_string
from pydantic import BaseModel, Field, StringConstraints

from memory import conf
from memory.errors import ProviderReplyInvalid
from memory.extraction.compression import SHORT_TOKENS, Passage, shorten_passage
from memory.extraction.survivors import keeps_negations, tells_nothing_else, with_survivors
from memory.providers.language_models import LanguageModel, Meter, Question
from memory.providers.material import encode_line
from memory.tokens import estimate_tokens

WORDS_PER_TOKEN = 0.7
SHARE_OF_WORDS = 0.5
"""Of a text's words, how many it is to be told in where nothing else bounds it."""
TOKENS_FOR_SHAPE = 1_000
MOST_PASSAGES = 1_000
MOST_CHARACTERS = 200_000


class PassageAnswer(BaseModel):
    """A passage in fewer words."""

    number: int
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_CHARACTERS)]


class CompressionAnswer(BaseModel):
    """The passages in fewer words."""

    passages: Annotated[list[PassageAnswer], Field(max_length=MOST_PASSAGES)]


class ModelCompressor:
    """Asks a language model."""

    is_remote = True

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def source(self) -> str:
        return self._model.model

    def shorten(self, passages: Sequence[Passage], *, meter: Meter, deadline_seconds: float) -> list[str]:
        """One question about all that is worth it. Raises ProviderError, for an answer that lacks a passage too."""
        asked = worth_asking(passages)
        if not asked:
            return [shorten_passage(passage) for passage in passages]
        question = ask_for_less(asked)
        answer = self._model.ask(question, CompressionAnswer, meter=meter, deadline_seconds=deadline_seconds)
        told = {each.number: each.text for each in answer.passages}
        if missing := asked.keys() - told.keys():
            raise ProviderReplyInvalid(f"of {len(asked)} passages the answer lacks {len(missing)}")
        return [
            believed(told[number], passage) if number in asked else shorten_passage(passage)
            for number, passage in enumerate(passages)
        ]


def worth_asking(passages: Sequence[Passage]) -> dict[int, Passage]:
    """Return those that are not short already, by their number, as far as all of them fit into one request."""
    asked: dict[int, Passage] = {}
    left = conf.COMPRESSION_INPUT_TOKENS
    for number, passage in enumerate(passages):
        cost = estimate_tokens(passage.text)
        if cost > (passage.max_tokens or SHORT_TOKENS) and cost <= left:
            asked[number] = passage
            left -= cost
    return asked


def ask_for_less(passages: Mapping[int, Passage]) -> Question:
    lines = [format_passage(number, passage) for number, passage in passages.items()]
    return Question(
        instructions=render_to_string("prompts/compression_instructions.txt").strip(),
        material=render_to_string("prompts/compression_material.txt", {"passages": lines}).strip(),
        # JSON in a script that takes a token a character must not be cut off
        max_tokens=2 * sum(bound_of(passage) for passage in passages.values()) + TOKENS_FOR_SHAPE,
    )


def format_passage(number: int, passage: Passage) -> str:
    """Format the passage as a line of the material."""
    words = max(int(bound_of(passage) * WORDS_PER_TOKEN), 5)
    return encode_line({"number": number, "part": passage.part, "words": words, "text": passage.text})


def bound_of(passage: Passage) -> int:
    """Return the number of tokens that it may be shortened to."""
    return passage.max_tokens or int(estimate_tokens(passage.text) * SHARE_OF_WORDS)


def believed(answer: str, passage: Passage) -> str:
    """Return the answer with what it lost, if it is true to the passage and useful."""
    quoted = shorten_passage(passage)
    if passage.max_tokens is not None:
        fits = estimate_tokens(answer) <= passage.max_tokens
        return answer if fits and tells_nothing_else(answer, passage.text) else quoted
    told = with_survivors(answer, passage.text)
    is_shorter = estimate_tokens(told) < estimate_tokens(quoted)
    return told if is_shorter and keeps_negations(told, passage.text) else quoted
