"""Answers of a language model about a question, requested once per recall for all rewriters that need the model.

The first rewriter that asks also asks for those after it, so a question costs one call however many are switched on.
The call gets a share of the remaining time, since what it takes is missing for the search.
"""

from collections.abc import Mapping
from datetime import UTC
from functools import lru_cache
from typing import TypeVar

from pydantic import BaseModel, create_model

from memory.errors import ProviderError, ProviderUnavailable
from memory.providers.connections import Deadline
from memory.providers.language_models import LanguageModel, Question
from memory.providers.material import encode_line
from memory.retrieval.plans import RecallContext, RewriteError
from memory.retrieval.queries import Query

SELF_QUERY = "self_query"
QUERY_EXPANSION = "query_expansion"
HYDE = "hyde"

MAX_TIMES = 5
MAX_SPEAKERS = 5
MAX_REPHRASINGS = 3
MAX_REPHRASING_CHARACTERS = 300
MAX_ANSWER_CHARACTERS = 500
MAX_SHOWN_CHARACTERS = 4_000
"""Characters of a question that the model sees."""
ANSWER_TOKENS = 1_500
MODEL_SHARE = 0.6
"""Share of the time until the deadline. The search needs the rest."""
MIN_MODEL_SECONDS = 0.1
"""The model is not asked in less time."""
MAX_MODEL_SECONDS = 60.0


class Time(BaseModel):
    """A time that the question names; the days are included, null is an open side."""

    words: str
    first_day: str | None
    last_day: str | None


class Filters(BaseModel):
    """Times and speakers that the question asks about."""

    times: list[Time]
    speakers: list[str]


class OtherWords(BaseModel):
    """The question in other words."""

    rephrasings: list[str]


class LikelyAnswer(BaseModel):
    """A made-up answer (HyDE, Gao et al. 2022)."""

    answer: str


PARTS: Mapping[str, type[BaseModel]] = {SELF_QUERY: Filters, QUERY_EXPANSION: OtherWords, HYDE: LikelyAnswer}
"""The part of the answer that each rewriter asks for, in the order in which they run."""

Part = TypeVar("Part", bound=BaseModel)


def read_with_model(
    query: Query, context: RecallContext, technique: str, part: type[Part], *, model: LanguageModel, fallback: Query
) -> Part:
    """Return the model's answer for this technique. Raises RewriteError to continue with the fallback."""
    if technique not in context.answers:
        wanted = tuple(name for name in PARTS if name == technique or name in later_techniques(technique, context))
        context.answers.update(dict.fromkeys(wanted, ask_model(query, context, wanted, model)))
    answer = context.answers[technique]
    if isinstance(answer, part):
        return answer
    is_late = isinstance(answer, ModelTooLate)
    raise RewriteError(str(answer), query=fallback, is_late=is_late)


class ModelTooLate(ProviderUnavailable):
    """The model had no time left, or not enough."""


def later_techniques(technique: str, context: RecallContext) -> frozenset[str]:
    """Return the rewriters of the plan that run after this one and have no answer yet."""
    names = list(PARTS)
    return frozenset(names[names.index(technique) :]) & context.techniques - context.answers.keys()


def ask_model(
    query: Query, context: RecallContext, wanted: tuple[str, ...], model: LanguageModel
) -> BaseModel | ProviderError:
    """Ask for all the wanted parts together. Return the failure if the model fails."""
    seconds = min(MODEL_SHARE * context.deadline.left_seconds(), MAX_MODEL_SECONDS)
    if seconds < MIN_MODEL_SECONDS:
        return ModelTooLate("No time is left for the model.")
    allotted = Deadline.after(seconds)
    try:
        return model.ask(
            build_prompt(query, context, wanted),
            answer_schema(wanted),
            meter=context.meter or (lambda _usage: None),
            deadline_seconds=seconds,
        )
    except ProviderError as err:
        # a new error without the traceback, since it is kept for later rewriters
        return ModelTooLate(str(err)) if allotted.left_seconds() <= 0 else ProviderUnavailable(str(err))


@lru_cache
def answer_schema(wanted: tuple[str, ...]) -> type[BaseModel]:
    """Return a model class with the fields of all the wanted parts."""
    return create_model("Reading", __base__=tuple(PARTS[name] for name in wanted), __doc__="What a question asks for.")


def build_prompt(query: Query, context: RecallContext, wanted: tuple[str, ...]) -> Question:
    limits = {
        "times": MAX_TIMES,
        "speakers": MAX_SPEAKERS,
        "rephrasings": MAX_REPHRASINGS,
        "rephrasing_characters": MAX_REPHRASING_CHARACTERS,
        "answer_characters": MAX_ANSWER_CHARACTERS,
        **{name: name in wanted for name in PARTS},
    }
    now = context.now.astimezone(UTC)
    material = {
        "question": query.text[:MAX_SHOWN_CHARACTERS],
        "time": now.isoformat(timespec="minutes"),
        "weekday": now.strftime("%A"),
    }
    return Question.of_use("recall", limits, {"question": encode_line(material)}, max_tokens=ANSWER_TOKENS)


def join_lines(text: str, *, max_characters: int) -> str:
    """Return the text on one line; empty if it is too long or holds characters that no sentence has."""
    line = " ".join(text.split())
    return line if len(line) <= max_characters and line.isprintable() and not set(line) & set("<>{}") else ""
