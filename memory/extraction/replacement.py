"""The probability that a statement replaces an earlier one, read from the words of both. English; no model is called.

"Standup was moved to 10" replaces "Our standup is at 9:30"; "My daughter Ngozi studies in Ghent" does not replace "My
daughter Chioma studies in Utrecht". A logistic regression over few features decides: a phrase of change in
the sentence of the later text that speaks of the earlier one, numbers and names that differ, names and words that both
have, subjects that differ, plans, how long the texts are, whether they name the same thing ("our standup", "the
standup"), the time between them, and how near the two are in meaning compared with all else that was said (`rank` and
`nearer`).

The weights are in `replacement.json`, with how they were learned (`manage.py learn_replacements`).
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.extraction.forget_requests import without_requests
from memory.extraction.parallel_statements import are_parallel, are_qualified_otherwise, give_different_attributes
from memory.extraction.statement_words import part_about, read_words, says_of_others

MAX_COMPARED_CHARACTERS = 2_000
MAX_NEIGHBOURS = 30
"""Nearest statements that the rank of one among them is counted in."""

OTHER_THING = 2.0
"""What a pair about two things of a kind loses ("the staging database", "the production database"). The samples have
too few to learn."""
MAX_OF_A_PART = 0.4
"""Greatest probability for a statement that says something of others as well ("Ana is 6 and Leo is 3."), and where one
of both is an assistant's: the later one may come first, but does not mark the other."""
_MIN_WORDS = 3
_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
_SESSION = timedelta(hours=12)
"""A conversation that goes on after so long is a new session: some agents talk to a user in one for years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """A statement and who made it, where and when."""

    text: str
    speaker: str
    conversation_id: str
    at: datetime
    is_by_assistant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An earlier and a later statement.

    `rank` counts the statements that are nearer in meaning to one of the two than the other is: 0 for the nearest.
    `nearer` counts those near the one that are nearer to the other than it is. `neighbours` is the number of statements
    among which both are counted, at most MAX_NEIGHBOURS: where little was said, being nearest says little.
    """

    older: Saying
    newer: Saying
    rank: int
    nearer: int
    neighbours: int


def make_saying(
    text: str, *, speaker: str, conversation_id: str, at: datetime, is_by_assistant: bool = False
) -> Saying:
    """Return the statement of a message, without the speaker's name in front and requests to forget something."""
    said = without_requests(text.removeprefix(f"{speaker}: ") if speaker else text)
    return Saying(
        text=said[:MAX_COMPARED_CHARACTERS],
        speaker=speaker,
        conversation_id=conversation_id,
        at=at,
        is_by_assistant=is_by_assistant,
    )


def may_state(text: str) -> bool:
    """Return False for texts that are too short to state anything, or that only ask."""
    words = read_words(text[:MAX_COMPARED_CHARACTERS])
    return len(words.content) >= _MIN_WORDS - 1 and not (words.is_question and text.count("?") == _sentences(text))


def _sentences(text: str) -> int:
    return max(1, len(re.findall(r"[.!?]+(?:\s|$)", text)))


FEATURES = (
    *("is_same_session", "nearer", "rank", "has_change"),
    *("other_subject", "newer_plans", "older_plans", "older_is_over"),
    *("other_number", "other_names", "other_names_with_change", "is_short", "days", "shared_words", "other_negation"),
    *("older_length", "newer_length", "same_thing", "few_neighbours"),
    *("shared_names", "shared_count"),
)


def pair_features(pair: Pair) -> tuple[float, ...]:
    """Return the values of FEATURES for a pair."""
    older, newer = read_words(pair.older.text), read_words(pair.newer.text)
    has_change = part_about(older, newer).has_change
    smaller = max(1, min(len(older.content), len(newer.content)))
    shared = len(older.content & newer.content)
    is_other_subject = bool(older.subject - newer.all) and bool(newer.subject - older.all)
    is_other_name = bool(older.names - newer.names) and bool(newer.names - older.names)
    return (
        float(_is_same_session(pair)),
        math.log1p(pair.nearer),
        float(pair.rank),
        float(has_change),
        float(is_other_subject and not has_change),
        float(newer.is_plan),
        float(older.is_plan),
        float(older.is_over),
        float(bool(older.numbers) and bool(newer.numbers) and older.numbers != newer.numbers),
        float(is_other_name),
        float(is_other_name and has_change),
        float(min(len(older.content), len(newer.content)) < _MIN_WORDS),
        math.log1p((pair.newer.at - pair.older.at) / _DAY),
        shared / smaller,
        float(older.is_negated != newer.is_negated),
        older.length,
        newer.length,
        float(bool(older.things & newer.things)),
        math.log((MAX_NEIGHBOURS + 1) / (pair.neighbours + 1)),
        math.log1p(len(older.capitalized & newer.capitalized)),
        math.log1p(shared),
    )


def _is_same_session(pair: Pair) -> bool:
    """Return True if both were said in one sitting, where little is replaced, unless the later one corrects the other.

    It corrects what its speaker has said and what it shares words with, or is nearest to.
    """
    older, newer = pair.older, pair.newer
    if older.conversation_id != newer.conversation_id or newer.at - older.at >= _SESSION:
        return False
    words = read_words(newer.text)
    if not words.corrects or older.speaker != newer.speaker:
        return True
    is_nearest = pair.rank == 0 and pair.nearer == 0
    return not is_nearest and words.content.isdisjoint(read_words(older.text).content)


WEIGHTS_FILE = Path(__file__).with_name("replacement.json")
_LEARNED = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
INTERCEPT: float = _LEARNED["intercept"]
WEIGHTS: Sequence[float] = [_LEARNED["weights"][name] for name in FEATURES]


WEIGHT_OF = dict(zip(FEATURES, WEIGHTS, strict=True))
_MOST_OF_NUMBERS, _MOST_OF_NAMES, _MOST_OF_THINGS = (
    max(0.0, WEIGHT_OF[name]) for name in ("other_number", "other_names", "same_thing")
)
_MOST_OF_CHANGED_NAMES = max(0.0, WEIGHT_OF["other_names"] + WEIGHT_OF["other_names_with_change"])
_MOST_OF_SHARED_WORDS, _MOST_OF_OTHER_SUBJECT = (
    max(0.0, WEIGHT_OF[name]) for name in ("shared_words", "other_subject")
)
_MOST_OF_SHARED_NAMES, _MOST_OF_SHARED_COUNT = (max(0.0, WEIGHT_OF[name]) for name in ("shared_names", "shared_count"))
_OF_SESSION = WEIGHT_OF["is_same_session"]
_ROUNDING = 1e-6


def replacement_probability(pair: Pair) -> float:
    """Return the probability that the later statement replaces the earlier one, in [0, 1].

    It is 0 if one states nothing, if both are the same, if both say the same of different things or different things of
    the same, and if an assistant, who mostly repeats, proposes and reports, speaks of no change: of 1,300 replacements
    in the samples assistants made eight. What an assistant says marks nothing, and is marked by nothing.
    """
    if pair.older.text.strip().casefold() == pair.newer.text.strip().casefold():
        return 0.0
    if not (may_state(pair.older.text) and may_state(pair.newer.text)):
        return 0.0
    total = INTERCEPT + sum(weight * value for weight, value in zip(WEIGHTS, pair_features(pair), strict=True))
    older, newer = read_words(pair.older.text), read_words(pair.newer.text)
    if are_parallel(older, newer) or give_different_attributes(older, newer):
        # not even a weak link, which would put one thing before the other that the question names
        return 0.0
    if pair.newer.is_by_assistant and not part_about(older, newer).has_change:
        return 0.0
    if are_qualified_otherwise(older, newer):
        total -= OTHER_THING
    probability = 1 / (1 + math.exp(-total))
    is_by_assistant = pair.older.is_by_assistant or pair.newer.is_by_assistant
    return min(probability, MAX_OF_A_PART) if is_by_assistant or says_of_others(older, newer) else probability


class PairColumns(NamedTuple):
    """Pairs as columns: the places of their earlier and later statements in a sequence, and what else a `Pair` has."""

    older: NDArray[np.intp]
    newer: NDArray[np.intp]
    rank: NDArray[np.intp]
    nearer: NDArray[np.intp]
    neighbours: NDArray[np.intp]


class _Signs(NamedTuple):
    """Sums of weights of a text, as the earlier and as the later one, and its signs, without the other text."""

    as_older: float
    as_newer: float
    content: float
    capitalized: float
    has_numbers: bool
    has_names: bool
    has_things: bool
    has_change: bool
    is_negated: bool
    corrects: bool


@lru_cache(maxsize=4_096)
def _read_signs(text: str) -> _Signs:
    words = read_words(text)
    older = WEIGHT_OF["older_plans"] * words.is_plan + WEIGHT_OF["older_is_over"] * words.is_over
    newer = max(0.0, WEIGHT_OF["has_change"]) * words.has_change + WEIGHT_OF["newer_plans"] * words.is_plan
    return _Signs(
        as_older=older + WEIGHT_OF["older_length"] * words.length,
        as_newer=newer + WEIGHT_OF["newer_length"] * words.length,
        content=len(words.content),
        capitalized=len(words.capitalized),
        has_numbers=bool(words.numbers),
        has_names=bool(words.names),
        has_things=bool(words.things),
        has_change=words.has_change,
        is_negated=words.is_negated,
        corrects=words.corrects,
    )


def may_replace(sayings: Sequence[Saying], pairs: PairColumns, *, least: float) -> NDArray[np.bool_]:
    """Return for each pair of the statements whether its probability may reach `least`: False if it certainly does not.

    Features that compare the words of both texts are taken to have the values that make it most probable; where these
    are enough, the words that both share are counted. Whether they speak of two things of a kind is not asked.
    """
    if least <= 0:
        return np.ones(len(pairs.older), dtype=np.bool_)
    table = np.array([_read_signs(each.text) for each in sayings], dtype=np.float64)
    older, newer = (_Signs(*table[places].T) for places in (pairs.older, pairs.newer))
    # microseconds, which are whole: a difference of seconds would be inexact
    at = np.rint(1e6 * np.array([each.at.timestamp() for each in sayings]))
    apart = at[pairs.newer] - at[pairs.older]
    fewest = np.minimum(older.content, newer.content)
    most_of_shared = (
        _MOST_OF_SHARED_WORDS
        + _MOST_OF_SHARED_NAMES * np.log1p(np.minimum(older.capitalized, newer.capitalized))
        + _MOST_OF_SHARED_COUNT * np.log1p(fewest)
    )
    most = (
        INTERCEPT
        + WEIGHT_OF["nearer"] * np.log1p(pairs.nearer)
        + WEIGHT_OF["rank"] * pairs.rank
        + WEIGHT_OF["few_neighbours"] * np.log((MAX_NEIGHBOURS + 1) / (pairs.neighbours + 1))
        + WEIGHT_OF["other_negation"] * (older.is_negated != newer.is_negated)
        + WEIGHT_OF["is_short"] * (fewest < _MIN_WORDS)
        + WEIGHT_OF["days"] * np.log1p(apart / (_DAY / _MICROSECOND))
        + older.as_older
        + newer.as_newer
        + _MOST_OF_OTHER_SUBJECT
        + most_of_shared
        + _MOST_OF_NUMBERS * older.has_numbers * newer.has_numbers
        + _MOST_OF_THINGS * older.has_things * newer.has_things
    )
    of_names = np.where(newer.has_change, max(_MOST_OF_CHANGED_NAMES, _MOST_OF_NAMES), _MOST_OF_NAMES)
    most += of_names * older.has_names * newer.has_names
    # who corrects what was just said is asked later whether it is that
    place = np.unique([each.conversation_id for each in sayings], return_inverse=True)[1]
    is_session = (place[pairs.older] == place[pairs.newer]) & (apart < _SESSION / _MICROSECOND)
    most += is_session * np.where(newer.corrects, max(0.0, _OF_SESSION), _OF_SESSION)
    bound = math.log(least / (1 - least)) - _ROUNDING
    probable = np.flatnonzero(most >= bound)
    most[probable] += _weigh_shared_words(sayings, pairs, probable) - most_of_shared[probable]
    kept: NDArray[np.bool_] = most >= bound
    return kept


def _weigh_shared_words(sayings: Sequence[Saying], pairs: PairColumns, places: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the weights of the words that the statements of some of the pairs share."""
    words = [read_words(each.text) for each in sayings]
    weights = []
    for older, newer in zip(pairs.older[places].tolist(), pairs.newer[places].tolist(), strict=True):
        before, after = words[older], words[newer]
        shared = len(before.content & after.content)
        smaller = max(1, min(len(before.content), len(after.content)))
        weights.append(
            WEIGHT_OF["shared_words"] * shared / smaller
            + WEIGHT_OF["shared_count"] * math.log1p(shared)
            + WEIGHT_OF["shared_names"] * math.log1p(len(before.capitalized & after.capitalized))
        )
    return np.array(weights)
