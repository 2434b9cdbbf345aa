"""What a language model reads in a question, asked once a recall for all techniques that want it.

The first technique that asks, asks for those after it too, so that a question costs one call however many of them are
switched on. The call gets a share of the time that is left: what it takes is taken from the search.
"""

from collections.abc import Mapping
from datetime import UTC
from functools import lru_cache
from typing import TypeVar

from django.template.loader import render_to_string
from pydantic import BaseModel, create_model

from memory.errors import ProviderError, ProviderUnavailable
from memory.providers.deadlines import Deadline
from memory.providers.language_models import LanguageModel, Question, Usage
from memory.providers.material import encode_line
from memory.retrieval.plans import Moment, RewriteError
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.speakers import MOST_SPEAKERS

SELF_QUERY = "self_query"
QUERY_EXPANSION = "query_expansion"
HYDE = "hyde"

MOST_TIMES = 5
MOST_REPHRASINGS = 3
LONGEST_REPHRASING = 300
"""Characters."""
LONGEST_ANSWER = 500
"""Characters."""
LONGEST_SHOWN = 4_000
"""Characters of a question that a model is shown."""
ANSWER_TOKENS = 1_500
MODEL_SHARE = 0.6
"""Of the time that is left until the deadline: the rest is the search's."""
LEAST_SECONDS = 0.1
"""With less, no model is asked."""
MOST_SECONDS = 60.0


class Time(BaseModel):
    """A time that the question names; the days are included, null is an open side."""

    words: str
    first_day: str | None
    last_day: str | None


class Filters(BaseModel):
    """Whose words, of which time."""

    times: list[Time]
    speakers: list[str]


class OtherWords(BaseModel):
    """The question, said differently."""

    rephrasings: list[str]


class LikelyAnswer(BaseModel):
    """What an answer might look like (HyDE, Gao et al. 2022)."""

    answer: str


PARTS: Mapping[str, type[BaseModel]] = {SELF_QUERY: Filters, QUERY_EXPANSION: OtherWords, HYDE: LikelyAnswer}
"""What each technique asks for, in the order in which they run."""

Part = TypeVar("Part", bound=BaseModel)


def read_question(
    query: Query, moment: Moment, technique: str, part: type[Part], *, model: LanguageModel, fallback: Query
) -> Part:
    """What the model says for this technique. Raises RewriteError, to go on with the fallback."""
    if technique not in moment.answers:
        wanted = tuple(name for name in PARTS if name == technique or name in later(technique, moment))
        moment.answers.update(dict.fromkeys(wanted, ask(query, moment, wanted, model)))
    answer = moment.answers[technique]
    if isinstance(answer, part):
        return answer
    is_late = isinstance(answer, TooLate)
    raise RewriteError(str(answer), query=fallback, is_late=is_late)


class TooLate(ProviderUnavailable):
    """The model had no time, or not enough."""


def later(technique: str, moment: Moment) -> frozenset[str]:
    """The techniques of the plan that run after this one, and have not asked."""
    names = list(PARTS)
    return frozenset(names[names.index(technique) :]) & moment.techniques - moment.answers.keys()


def ask(query: Query, moment: Moment, wanted: tuple[str, ...], model: LanguageModel) -> BaseModel | ProviderError:
    """One question for all that is wanted; the failure, where it fails."""
    seconds = min(MODEL_SHARE * moment.deadline.left_seconds(), MOST_SECONDS)
    if seconds < LEAST_SECONDS:
        return TooLate("no time is left for the model")
    allotted = Deadline.after(seconds)
    try:
        return model.ask(
            ask_about(query, moment, wanted),
            shape_of_answer(wanted),
            meter=moment.meter or unmetered,
            deadline_seconds=seconds,
        )
    except ProviderError as err:
        # without its traceback: it is kept for the techniques that come later
        return TooLate(str(err)) if allotted.left_seconds() <= 0 else ProviderUnavailable(str(err))


def unmetered(_usage: Usage) -> None:
    """Nobody counts."""


@lru_cache
def shape_of_answer(wanted: tuple[str, ...]) -> type[BaseModel]:
    """A shape with the fields of all that is wanted."""
    return create_model("Reading", __base__=tuple(PARTS[name] for name in wanted), __doc__="What a question asks for.")


def ask_about(query: Query, moment: Moment, wanted: tuple[str, ...]) -> Question:
    limits = {
        "times": MOST_TIMES,
        "speakers": MOST_SPEAKERS,
        "rephrasings": MOST_REPHRASINGS,
        "rephrasing_characters": LONGEST_REPHRASING,
        "answer_characters": LONGEST_ANSWER,
    }
    now = moment.now.astimezone(UTC)
    told = {
        "question": query.text[:LONGEST_SHOWN],
        "time": now.isoformat(timespec="minutes"),
        "weekday": now.strftime("%A"),
    }
    return Question(
        instructions=render_to_string(
            "prompts/recall_instructions.txt", limits | {name: name in wanted for name in PARTS}
        ).strip(),
        material=render_to_string("prompts/recall_material.txt", {"question": encode_line(told)}).strip(),
        max_tokens=ANSWER_TOKENS,
    )


def on_one_line(text: str, *, longest: int) -> str:
    """The text without line breaks; empty where it is longer than asked for, or holds what no sentence does."""
    line = " ".join(text.split())
    return line if len(line) <= longest and line.isprintable() and not set(line) & set("<>{}") else ""
