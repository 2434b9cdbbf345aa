"""Near-duplicates: what says the same comes once, and names the others in `also`.

Two say the same if nothing is left to tell them apart but how it is written: case, width, blanks, punctuation,
contractions. All words have to be the same in the same order, fillers as well, since there are names that hold some.
So a number, a name or a negation always tells two apart; no measure of likeness could promise that. One look-up each:
nothing is compared with everything.
"""

import re
from collections.abc import Hashable, Sequence
from functools import lru_cache

from memory.identity import normalize_claim
from memory.models import Kind
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting
from memory.retrieval.selectors.standing import stand_for

TOLD = frozenset({Kind.TURN, Kind.EPISODE, Kind.FACT, Kind.LEARNING})
"""Kinds that are what they say. Others are more than their words: two entities go by one name, two keys have one value,
two goals are worded alike."""

FEWEST_COMPARED = 50
COMPARED_A_RESULT = 2
LONGEST = 2_000
"""Characters: longer texts are the same only to the letter."""

CONTRACTION = re.compile(r"(?<=\w)(n't|'m|'re|'ve|'ll)\b")
FULL_FORMS = {"n't": " not", "'m": " am", "'re": " are", "'ve": " have", "'ll": " will"}
QUESTION_MARKS = frozenset("?？؟")


def duplicates(candidates: Sequence[Candidate], setting: Setting) -> list[Candidate]:
    """The best of each that say the same stands for the others; the order stays.

    Only among the best: what is not compared has nobody to stand for it.
    """
    compared = max(FEWEST_COMPARED, COMPARED_A_RESULT * setting.query.top_k)
    standing: dict[Hashable, Candidate] = {}
    for candidate in candidates[:compared]:
        first = standing.setdefault(what_it_says(candidate), candidate)
        if first is not candidate:
            stand_for(first, candidate)
    return [*standing.values(), *candidates[compared:]]


def what_it_says(candidate: Candidate) -> Hashable:
    """The same for near-duplicates, and for nothing else. Kinds stay apart: a fact is no turn that says it."""
    if candidate.kind not in TOLD or candidate.is_cut:
        return candidate.id
    return (candidate.kind, whose(candidate), essence(candidate.text))


def whose(candidate: Candidate) -> Hashable:
    """Who says it, of whom, and when, as far as it makes another statement of the same words.

    A turn is of its speaker, and of its day: who says on another day to have run today, has run again. A fact is its
    holder's, and true for its own time. An episode is of its conversation, whichever agent keeps it.
    """
    if candidate.kind == Kind.TURN:
        said_by = (candidate.role, candidate.speaker, candidate.agent_id, candidate.user_id)
        return (*said_by, candidate.event_time.date())
    if candidate.kind == Kind.EPISODE:
        return (candidate.conversation_id, candidate.user_id)
    holder = candidate.user_id or f"a:{candidate.agent_id}"
    return (holder, candidate.temporal, candidate.valid_from, candidate.valid_to)


@lru_cache(maxsize=4_096)
def essence(text: str) -> Hashable:
    """The text without what writers differ in, and the signs that this would lose and that say something."""
    if len(text) > LONGEST:
        return text
    figures = "" if text.isascii() else "".join(filter(is_figure, text))
    return tuple(words_of(text)), any(mark in text for mark in QUESTION_MARKS), figures


def words_of(text: str) -> list[str]:
    claim = normalize_claim(text)
    if "'" in claim:
        claim = CONTRACTION.sub(lambda short: FULL_FORMS[short[1]], claim)
    return claim.split()


def is_figure(sign: str) -> bool:
    """A number that is no digit: raised, in a circle, a fraction."""
    return sign.isnumeric() and not sign.isdecimal()
