"""Obligations and permissions of things: "customer ids must be hashed before they leave the warehouse"."""

import re
from dataclasses import replace
from datetime import datetime

from memory.extraction.rules.nouns import Noun
from memory.extraction.rules.subjects import Speaker
from memory.extraction.rules.values import Value, read_value
from memory.extraction.rules.words import words

MODALS = words("must should will can shall needs need has have")
_WITH_TO = words("needs need has have")
_OBLIGING = words("must should has have needs need can")
_ACTION = re.compile(r"(?:not |only |never |always |be |also )*[a-z]{2,}")
_NO_RULE = re.compile(r"(?:to )?(?:probably|maybe|have been|have|see|know|think|look|seem|feel)\b")
_LATER = r"(?P<when>before|after|until|once)"
_RULED = re.compile(
    r"(?:to )?(?:(?:never|only|always) (?:be )?[a-z]+(?: \S+){1,12}|not (?:be )?[a-z]+(?:ed|en|wn)(?: \S+){1,12}"
    r"|be [a-z]+(?:ed|en|wn|nt|ld|pt|un|ut) (?:(?:\S+ ){0,4}?(?:before|after|by|in|on|with|within|via|through|from|at"
    r"|to|per|against|under|for|without|as) .+|manually|automatically|first)"
    r"|[a-z]+ (?:only|through|via|over|behind|without) .+)"
)


def read_obligation(word: str, rest: str, noun: Noun, *, at: datetime, speaker: Speaker) -> Value | None:
    """Return what a thing must do, as "be at least 12 characters", "to be done by Friday", "only merge on Mondays".

    "They" is the thing behind "before". What is not specific has to say how or when, of a thing that is known.
    """
    if word in _WITH_TO and not rest.startswith("to "):
        return None
    pronoun = "they" if noun.is_plural else "it"
    marked = re.sub(rf"(?<= ){_LATER} {pronoun} ", rf"\g<when> {pronoun}_ ", rest, count=1)
    value = read_value(marked, at=at, speaker=speaker)
    if value is None or not _ACTION.match(value.words) or _NO_RULE.match(value.words):
        return None
    value = replace(
        value, words=value.words.replace(f"{pronoun}_", pronoun), said=value.said.replace(f"{pronoun}_", pronoun)
    )
    obliges = word in _OBLIGING and (word != "can" or value.words.startswith("only "))
    is_rule = obliges and noun.is_known and _RULED.fullmatch(value.words) is not None
    return value if value.is_specific or (is_rule and len(value.words.split()) > 2) else None
