"""The worth of claims: how likely somebody who reads a claim a month later finds it useful, from 0 to 1.

"The user gets up at five since January" is worth keeping, "The user is done for today" is not, and no grammar tells
them apart. A logistic regression does: over the claim's vector by the bundled model, a few features of its words, and
whether a rule has read it. It was learned from talk with an assistant in which what is worth remembering had been
marked; the weights are in `worth.json`, with how they were learned (`manage.py learn_worth`).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.providers.embeddings import bundled_embeddings

WORTH_FILE = Path(__file__).with_name("worth.json")
"""The shipped weights."""
_DATES = (
    "(?i:january|february|april|june|july|august|september|october|november|december|(?:mon|tues|wednes|thurs|fri|satur"
    "|sun)days?)|March|May"
)
FEATURES = {
    # first, since `_numbers_of` combines it with another number
    "request": re.compile(r"^The user asks "),
    "own": re.compile(r"^The user (?!asks )"),
    "possession": re.compile(r"^The user's "),
    "digit": re.compile(r"\d"),
    "name": re.compile(r" [A-Z]"),
    "progressive": re.compile(r"\b(?:is|are|was|were) (?:\w+ly |not |now |still )?\w+ing\b"),
    "perfect": re.compile(r"\b(?:has|have) \w+(?:ed|en|own|one|un)\b"),
    "past": re.compile(r"\b(?:was|were|had|did|\w+ed)\b"),
    "future": re.compile(r"\b(?:will|going to)\b"),
    "ability": re.compile(r"\b(?:can|should|needs?|wants?|has to|must)\b"),
    "lasting": re.compile(
        r"\b(?:always|never|every|only|no longer|any ?more|from now|until|since|must|allowed|usually|each|weekly"
        r"|monthly|daily|because)\b"
    ),
    "date": re.compile(rf"\b(?:{_DATES})\b"),
    "degree": re.compile(r"\b(?:so|very|really|too|just|again)\b"),
    "noun": re.compile(r"\b(?:is|are) (?:the|an?|their) "),
    "comma": re.compile(","),
}
"""Patterns of words, each of which counts as 1 for a claim that contains it."""
WORDS = (*FEATURES, "length", "by_rule", "request_by_rule")
"""Names of the numbers of a claim after its vector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The weights of the regression: one for each number of `features_of`, and a bias."""

    weights: NDArray[np.float64]
    intercept: float

    def of(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the worth of each row of `features_of`."""
        return np.asarray(1 / (1 + np.exp(-(features @ self.weights + self.intercept))))


@lru_cache(maxsize=1)
def shipped_worth() -> Worth:
    """Read the shipped weights."""
    document = json.loads(WORTH_FILE.read_text(encoding="utf-8"))
    words = [document["words"][name] for name in WORDS]
    return Worth(weights=np.array([*document["vector"], *words]), intercept=document["intercept"])


def features_of(claims: Sequence[str], by_rule: Sequence[bool]) -> NDArray[np.float64]:
    """Return a row of numbers for each claim: its vector, FEATURES, its words in tens, and whether a rule has read it.

    Raises ImproperlyConfigured if the bundled model is not installed.
    """
    vectors = bundled_embeddings().embed(list(claims), deadline_seconds=None)
    numbers = [_numbers_of(claim, is_read) for claim, is_read in zip(claims, by_rule, strict=True)]
    return np.hstack([vectors, np.array(numbers, dtype=np.float64).reshape(len(claims), len(WORDS))])


def _numbers_of(claim: str, by_rule: bool) -> list[float]:
    matches = [pattern.search(claim) is not None for pattern in FEATURES.values()]
    return [*matches, len(claim.split()) / 10, by_rule, by_rule and matches[0]]


def worth_of(claims: Sequence[str], by_rule: Sequence[bool]) -> NDArray[np.float64]:
    """Return the worth of each claim, from 0 to 1. Raises ImproperlyConfigured as `features_of` does."""
    return shipped_worth().of(features_of(claims, by_rule)) if claims else np.empty(0)
