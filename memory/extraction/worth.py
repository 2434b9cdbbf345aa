"""The worth of claims: how likely a claim is right, understood alone and of use a month later, from 0 to 1.

"The user works from home on Fridays" is worth keeping; "The user is done for today" is of the moment; "The user pays
8250 each" has lost what it is about. No grammar tells them apart. A logistic regression does: over the claim's vector
by the bundled model, a few features of its words and of its sentence, whether a rule has read it, and the products of
each two of these numbers, for which the vector is reduced to its main directions. It was learned from the verdicts of
readers on claims of invented talk with an assistant; the weights are in `worth.json`, with how they were learned
(`manage.py learn_worth`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.extraction.grounding import word_stems
from memory.extraction.rules.open_claims import OPEN, telling_stems
from memory.extraction.rules.statements import Statement
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
    "definite": re.compile(r"^The (?!user\b)"),
    "named": re.compile(r"^(?!The |An? )[A-Z]\w+ "),
    "pronoun": re.compile(r"\b(?:it|its|they|them|their|that|this|these|those|he|him|she|her|here|there)\b"),
    "stand_in": re.compile(r"\b(?:ones?|others?|another|rest|same|else|both|either|thing)\b"),
}
"""Patterns of words, each of which counts as 1 for a claim that contains it."""
_NEGATION = re.compile(r"\b(?:not|never|no|without)\b|n't\b")
_OF_THE_MOMENT = re.compile(
    r"\b(?:now|today|tonight|yesterday|tomorrow|this (?:morning|afternoon|week|evening|run|batch)"
    r"|last (?:week|night|time)|just|still|already|currently|so far|again)\b",
    re.IGNORECASE,
)
"""Words for the moment in the sentence of a claim, which itself has the date in their place."""
_OF_SENTENCES = (
    "negated",
    "negation_lost",
    "asked",
    "exclaimed",
    "share_of_sentence",
    "sentence_length",
)
WORDS = (*FEATURES, "length", "by_rule", "request_by_rule", "momentary", *_OF_SENTENCES)
"""Names of the numbers of a claim after its vector."""
MAX_SENTENCE_WORDS = 60
"""Words of a sentence that count, since what was learned of short ones says nothing of long ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The weights of the regression.

    `linear` has one for each number of `features_of`. `directions` are rows by which vectors are reduced, and `pairs`
    is a square matrix, upper triangular, of the weights of the products of what `reduce_features` returns.
    """

    linear: NDArray[np.float64]
    directions: NDArray[np.float64]
    pairs: NDArray[np.float64]
    intercept: float

    def of(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the worth of each row of `features_of`."""
        reduced = reduce_features(features, self.directions)
        products = ((reduced @ self.pairs) * reduced).sum(axis=1)
        return np.asarray(1 / (1 + np.exp(-(features @ self.linear + products + self.intercept))))


def reduce_features(features: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows of `features_of` with vectors of fewer numbers, one for each direction."""
    vectors, numbers = np.split(features, [-len(WORDS)], axis=1)
    return np.hstack([vectors @ directions.T, numbers])


@lru_cache(maxsize=1)
def shipped_worth() -> Worth:
    """Read the shipped weights."""
    return worth_of_document(json.loads(WORTH_FILE.read_text(encoding="utf-8")))


def worth_of_document(document: Mapping[str, Any]) -> Worth:
    """Return the weights of a document like `worth.json`."""
    directions = np.array(document["directions"])
    size = len(directions) + len(WORDS)
    pairs = np.zeros((size, size))
    pairs[np.triu_indices(size)] = document["pairs"]
    return Worth(
        linear=np.array([*document["vector"], *(document["words"][name] for name in WORDS)]),
        directions=directions,
        pairs=pairs,
        intercept=document["intercept"],
    )


def features_of(claims: Sequence[Statement]) -> NDArray[np.float64]:
    """Return a row of numbers for each claim: those of its vector, and those of WORDS.

    Raises ImproperlyConfigured if the bundled model is not installed.
    """
    vectors = bundled_embeddings().embed([each.claim for each in claims], deadline_seconds=None)
    numbers = np.array([_numbers_of(each) for each in claims], dtype=np.float64).reshape(len(claims), len(WORDS))
    return np.hstack([vectors, numbers])


def _numbers_of(claim: Statement) -> list[float]:
    matches = [pattern.search(claim.claim) is not None for pattern in FEATURES.values()]
    by_rule = claim.attribute != OPEN
    is_momentary = _OF_THE_MOMENT.search(claim.sentence) is not None
    length = len(claim.claim.split()) / 10
    return [*matches, length, by_rule, by_rule and matches[0], is_momentary, *_sentence_numbers_of(claim)]


def _sentence_numbers_of(claim: Statement) -> list[float]:
    """Return the numbers of _OF_SENTENCES: what the claim kept of its sentence, and what that is like."""
    stems, of_sentence = telling_stems(claim.claim), word_stems(claim.sentence)
    is_negated = _NEGATION.search(claim.claim) is not None
    return [
        is_negated,
        not is_negated and _NEGATION.search(claim.sentence) is not None,
        claim.sentence.rstrip().endswith("?"),
        "!" in claim.sentence,
        len(stems) / max(1, len(of_sentence)),
        min(len(claim.sentence.split()), MAX_SENTENCE_WORDS) / 20,
    ]


def worth_of(claims: Sequence[Statement]) -> NDArray[np.float64]:
    """Return the worth of each claim, from 0 to 1. Raises ImproperlyConfigured as `features_of` does."""
    return shipped_worth().of(features_of(claims)) if claims else np.empty(0)
