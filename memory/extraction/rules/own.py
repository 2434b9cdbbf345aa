"""Values and statements of clauses about what the speaker decides, wishes or does."""

import re
from dataclasses import replace

from memory.dates import Tense
from memory.extraction.rules.nouns import read_noun
from memory.extraction.rules.phrases import possessive
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.requests import UNTIL_I_AGREE
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.things import attribute_of
from memory.extraction.rules.values import Value, read_value, with_last_day
from memory.models.facts import Certainty, Temporal

MAX_TOPIC = 100
"""Characters of a topic of a preference."""
_FOR_DAYS = frozenset({"booked", "hired"})
"""Verbs in the past of what is for several days to come: "booked the cottage from 5 to 12 December"."""
_FOR = re.compile(r"(?P<what>.+?) (?:for|as) (?P<thing>.+)")


_UNTIL_I_AGREE = re.compile(UNTIL_I_AGREE)
_ASKING_ME = re.compile(
    r"(?P<asking>\b(?:without|before|after|until|by) (?:first )?\w+ing(?: (?:with|to))?) me\b", re.IGNORECASE
)
_IS_CUT = re.compile(r"\b(?:without|unless|until|before|after|except|only|if|when|while)$", re.IGNORECASE)
"""An order whose condition was cut away."""
_ANYTHING = re.compile(r"\bany(thing|one|body)\b", re.IGNORECASE)


def own_value(said: ClauseContext, text: str, *, past: str = "") -> Value | None:
    """Return a value in a clause about the speaker, in which "my" becomes "their". `past` is its verb in the past."""
    tense = Tense.PAST if past else Tense.FUTURE
    value = read_value(text, at=said.turn.timestamp, speaker=said.speaker, tense=tense, verb=past)
    if value is None:
        return None
    if past in _FOR_DAYS:
        words, last = with_last_day(value.words, at=said.turn.timestamp)
        value = replace(value, words=words, date=last or value.date)
    return replace(value, words=value.words.replace(possessive(said.speaker.label), "their"))


def without_me(text: str) -> str:
    """Return an order without words for the speaker who gives it: "answer me in French"."""
    return re.sub(r"\b(?:to me|with me|for me|me|everything(?= in))\b ?", "", text)


def own_order(said: ClauseContext, text: str) -> Value | None:
    """Return the value of an order, in which "anything" stands on its own: "don't send me anything before 7am".

    It has the condition of the order whole, or it is none: "without asking me", "unless I say so".
    """
    until = _UNTIL_I_AGREE.search(text)
    text = _ASKING_ME.sub(r"\g<asking> the_user", text[: until.start()] if until else text)
    value = own_value(said, _ANYTHING.sub(r"any_\1", without_me(text)))
    if value is None or _IS_CUT.search(value.words):
        return None
    words_ = value.words.replace("any_", "any").replace("the_user", "them")
    agreed = " ".join(filter(None, (until["until"], "they", until["have"], until["agree"]))) if until else ""
    return replace(value, words=f"{words_} {agreed}".strip())


def own_statement(
    said: ClauseContext, *, subject: str, attribute: str, value: Value, claim: str, liking: str = ""
) -> Statement:
    date = value.date
    is_ahead = date is not None and date.start >= said.turn.timestamp
    return Statement(
        turn=said.turn.index,
        subject=subject,
        attribute=attribute,
        value=value.words,
        claim=claim,
        temporal=Temporal.FUTURE if is_ahead else Temporal.CURRENT,
        certainty=Certainty.EXPLICIT,
        valid_to=date.end if is_ahead and date else None,
        names=said.speaker.names,
        topic=value.words if liking and len(value.words) <= MAX_TOPIC else "",
        liking=liking if len(value.words) <= MAX_TOPIC else "",
        is_own=True,
        is_correction=said.clause.is_correction,
        is_retraction=said.clause.is_retraction,
    )


def find_subject(said: ClauseContext, verb: str, value: Value) -> tuple[str, str]:
    """Return the subject and the attribute of a decision: "Postgres for the queue" is about the queue."""
    if (match := _FOR.fullmatch(value.words)) and (noun := read_noun(match["thing"], said.speaker)):
        return noun.key, "decision"
    if (match := re.fullmatch(r"(?P<thing>.+?) (?:from .+ )?to (?P<value>.+)", value.words)) and (
        noun := read_noun(match["thing"], said.speaker)
    ):
        return noun.key, attribute_of(match["value"])
    return said.speaker.label, f"decision:{verb.split()[0]}"
