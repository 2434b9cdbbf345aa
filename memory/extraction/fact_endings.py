"""The probability that a fact ends because a later statement replaces the one that it was learned from. English.

"Our standup is at 9:15" teaches a fact, and "standup got bumped to ten" surely replaces the statement. How surely is
the weight of the link between the two (`extraction.replacement`), which knows both texts, but not what was learned from
the earlier one. This logistic regression adds what the claim tells. The weights are in `fact_endings.json`, with how
they were learned (`manage.py learn_fact_endings`).
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memory.extraction.rules.attributes import read_claim
from memory.extraction.rules.words import ANIMAL_RELATIONS, PERSON_RELATIONS, PLURAL_RELATIONS, RELATIVES
from memory.extraction.statement_words import read_words

FACT_ENDINGS_FILE = Path(__file__).with_name("fact_endings.json")
ENDING_FLOOR = 0.6
"""Least probability at which a fact ends."""
FEATURES = ("link", "lost_name", "other_number", "adds", "newer_is_own", "older_is_own", "has_change", "repeats_claim")
_ADDS = re.compile(
    r"\b(?:also|another|too|as well|second|separate|besides|other|both|addition|normally|usually|once|one[- ]time"
    r"|exception|only|this (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
"""Words of what holds besides something else, or for once."""
_IS_OWN = re.compile(r"^(?:\w+: )?(?:i|we|my|our)\b", re.IGNORECASE)
_MOST_CERTAIN = 0.999


class FactEnding(NamedTuple):
    """A fact and a later statement that may end it.

    `weight` is that of the link from the later to the earlier statement, from which the claim was learned.
    """

    claim: str
    older: str
    newer: str
    weight: float


def ending_features(ending: FactEnding) -> tuple[float, ...]:
    """Return the values of FEATURES."""
    claim, older, newer = (read_words(text) for text in ending[:3])
    weight = min(max(ending.weight, 1 - _MOST_CERTAIN), _MOST_CERTAIN)
    return (
        math.log(weight / (1 - weight)),
        float(bool(claim.capitalized - newer.capitalized)),
        float(bool(older.numbers) and bool(newer.numbers) and older.numbers != newer.numbers),
        float(_ADDS.search(ending.newer) is not None),
        float(_IS_OWN.match(ending.newer) is not None),
        float(_IS_OWN.match(ending.older) is not None),
        float(newer.has_change),
        len(claim.content & newer.content) / max(1, len(claim.content)),
    )


class EndingWeights(NamedTuple):
    """The weights of FEATURES and the intercept."""

    intercept: float
    weights: Sequence[float]

    def probability(self, features: Sequence[float]) -> float:
        total = self.intercept + sum(weight * value for weight, value in zip(self.weights, features, strict=True))
        return 1 / (1 + math.exp(-total))


def read_weights(document: Mapping[str, Any]) -> EndingWeights:
    return EndingWeights(document["intercept"], [document["weights"][name] for name in FEATURES])


SHIPPED = read_weights(json.loads(FACT_ENDINGS_FILE.read_text(encoding="utf-8")))


def ending_probability(ending: FactEnding) -> float:
    """Return the probability that the fact ends when the later statement was made, in [0, 1].

    It is 0 for a claim that somebody is a relative, or is something else to the user where the earlier statement says
    more: news of a person does not change who it is. The user's daughter is Ziva, also when she starts school.
    """
    relation = read_relation(ending.claim)
    if relation and (relation in RELATIVES or read_words(ending.older).content - read_words(ending.claim).content):
        return 0.0
    return SHIPPED.probability(ending_features(ending))


def read_relation(claim: str) -> str:
    """Return the relation of a claim that names a person or animal: "daughter" of "The user's daughter is Ziva"."""
    parts = read_claim(claim)
    if parts is None or not parts.attribute.startswith(("relation:", "only:")) or not parts.value[:1].isupper():
        return ""
    relation = parts.attribute.split()[-1].rpartition(":")[2]
    return relation if relation in PERSON_RELATIONS | PLURAL_RELATIONS | ANIMAL_RELATIONS else ""
