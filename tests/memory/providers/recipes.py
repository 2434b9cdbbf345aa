"""A question, the shape of its answer, and what asking it comes to."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from memory.providers.language_models import Question, Usage, language_model
from tests.language_model_server import COMPLETION_TOKENS, MODEL, PROMPT_TOKENS

MATERIAL = "Ana: a private matter"
WELL = {"title": "Tea", "mood": "good", "steps": [{"name": "boil", "minutes": 3}], "note": None}


class Step(BaseModel):
    name: str
    minutes: int


class Recipe(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=20, description="What it is called.")
    mood: Literal["good", "bad"]
    steps: list[Step]
    note: str | None = None


def ask(
    *, material: str = MATERIAL, deadline_seconds: float = 10, usages: list[Usage] | None = None, max_tokens: int = 500
) -> Recipe:
    model = language_model("summary")
    assert model is not None
    question = Question(instructions="Read the recipe.", material=material, max_tokens=max_tokens)
    meter = (usages if usages is not None else []).append
    return model.ask(question, Recipe, meter=meter, deadline_seconds=deadline_seconds)


def usage_figures(usages: list[Usage]) -> list[tuple[int, int, int]]:
    assert all(usage.calls == 1 and usage.model == MODEL for usage in usages)
    return [(usage.failed_calls, usage.prompt_tokens, usage.completion_tokens) for usage in usages]


WELL_COUNTED = (0, PROMPT_TOKENS, COMPLETION_TOKENS)
BADLY_COUNTED = (1, PROMPT_TOKENS, COMPLETION_TOKENS)
UNCOUNTED = (1, 0, 0)
