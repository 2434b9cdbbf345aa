"""Compression of texts about work by a language model. Its answer is used only if it keeps facts and negations.

`work_compressor` chooses between it and the offline compressor.

Numbers, names and errors that the model left out are appended. If it negates or affirms what the text does not, or adds
facts, the text is shortened by quoting instead. Texts that do not fit into the request are shortened by quoting too.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

from memory import conf
from memory.errors import ProviderReplyInvalid
from memory.extraction.compression import SHORT_TOKENS, Compressor, ExtractiveCompressor, Passage, shorten_passage
from memory.extraction.survivors import adds_no_facts, append_lost_facts, keeps_negations
from memory.providers.language_models import LanguageModel, Meter, Question, language_model
from memory.providers.material import encode_line
from memory.tokens import estimate_tokens

WORDS_PER_TOKEN = 0.7
SHARE_OF_WORDS = 0.5
"""Share of a text's tokens that the model may use if the passage has no `max_tokens`."""
TOKENS_FOR_SHAPE = 1_000
MAX_PASSAGES = 1_000
MAX_SHORTENED_CHARACTERS = 200_000


class PassageAnswer(BaseModel):
    """A shortened passage, as the model returns it."""

    number: int
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_SHORTENED_CHARACTERS)]


class CompressionAnswer(BaseModel):
    """The shortened passages, as the model returns them."""

    passages: Annotated[list[PassageAnswer], Field(max_length=MAX_PASSAGES)]


class ModelCompressor:
    """Shortens passages by a language model, and short or very long ones by quoting."""

    is_remote = True

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def source(self) -> str:
        return self._model.model

    def shorten(self, passages: Sequence[Passage], *, meter: Meter, deadline_seconds: float) -> list[str]:
        """Shorten the passages by one request at most. Raises ProviderError, also if the answer lacks a passage."""
        asked = choose_passages_to_ask(passages)
        if not asked:
            return [shorten_passage(passage) for passage in passages]
        question = build_compression_question(asked)
        answer = self._model.ask(question, CompressionAnswer, meter=meter, deadline_seconds=deadline_seconds)
        shortened = {each.number: each.text for each in answer.passages}
        if missing := asked.keys() - shortened.keys():
            raise ProviderReplyInvalid(f"of {len(asked)} passages the answer lacks {len(missing)}")
        return [
            accept_answer(shortened[number], passage) if number in asked else shorten_passage(passage)
            for number, passage in enumerate(passages)
        ]


def choose_passages_to_ask(passages: Sequence[Passage]) -> dict[int, Passage]:
    """Return the passages to send to the model, by number: those not short, while they fit into one request."""
    asked: dict[int, Passage] = {}
    left = conf.COMPRESSION_INPUT_TOKENS
    for number, passage in enumerate(passages):
        cost = estimate_tokens(passage.text)
        if cost > (passage.max_tokens or SHORT_TOKENS) and cost <= left:
            asked[number] = passage
            left -= cost
    return asked


def build_compression_question(passages: Mapping[int, Passage]) -> Question:
    lines = [format_passage(number, passage) for number, passage in passages.items()]
    max_tokens = 2 * sum(map(max_passage_tokens, passages.values())) + TOKENS_FOR_SHAPE
    return Question.of_use("compression", {}, {"passages": lines}, max_tokens=max_tokens)


def format_passage(number: int, passage: Passage) -> str:
    """Format a passage as a line of the prompt."""
    words = max(int(max_passage_tokens(passage) * WORDS_PER_TOKEN), 5)
    return encode_line({"number": number, "part": passage.part, "words": words, "text": passage.text})


def max_passage_tokens(passage: Passage) -> int:
    """Return the number of tokens that the passage should have at most after shortening."""
    return passage.max_tokens or int(estimate_tokens(passage.text) * SHARE_OF_WORDS)


def accept_answer(answer: str, passage: Passage) -> str:
    """Return the answer with the facts that it lost, or a quotation if it is not true to the passage or not shorter."""
    quoted = shorten_passage(passage)
    if passage.max_tokens is not None:
        fits = estimate_tokens(answer) <= passage.max_tokens
        return answer if fits and adds_no_facts(answer, passage.text) else quoted
    completed = append_lost_facts(answer, passage.text)
    is_shorter = estimate_tokens(completed) < estimate_tokens(quoted)
    return completed if is_shorter and keeps_negations(completed, passage.text) else quoted


def work_compressor() -> Compressor:
    """Return the language model's compressor if COMPRESSION_MODEL is set, else the offline one."""
    model = language_model("compression")
    return ExtractiveCompressor() if model is None else ModelCompressor(model)
