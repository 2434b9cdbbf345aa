"""Choices, and orders about what was just named: "weasyprint it is. pin it to 62.3"."""

import re

from memory.extraction.rules.nouns import read_noun
from memory.extraction.rules.own import own_statement, own_value
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.specifics import is_technical
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.things import attribute_of
from memory.extraction.rules.words import words

_THEN = re.compile(r"(?P<what>[A-Za-z][\w.+#-]*(?: v?\d[\w.]*)?),? then")
_IT_IS = re.compile(r"(?P<what>[a-z][a-z-]{3,}(?: \d[\w.]*)?) it is(?: then)?")
_NO_CHOICE = words(
    "what here there this that then when where nice good fine okay sure same just only true maybe like such thus hence "
    "well because which know think guess weird funny hard easy great cool strange whatever though since while until"
)
_NAME = r"(?P<old>[\w./-]{3,60})"
_RENAME = re.compile(
    rf"(?:I (?:really )?(?:do not like|hate|dislike) the name {_NAME}"
    r"|(?P<old2>[\w./-]{3,60}) is a (?:bad|stupid|terrible|confusing|misleading|horrible|poor|silly) name)"
    r"[,;:]? (?:please |so |let's )?(?:call|name|rename) it (?:to )?(?P<new>[\w./-]{3,60})(?: please| instead)?"
)
_VERB = (
    r"(?P<verb>make|set|raise|lower|bump|put|change|cut|reduce|increase|move|pin|keep|lock|cap|limit|shorten|extend)"
)
_SET_IT = re.compile(
    rf"(?:please |so |and |let's )*{_VERB} it (?P<to>(?:(?:up |down |back )?(?:to|at|below|under|on) )?)(?P<rest>.+)",
    re.IGNORECASE,
)
_TOO = re.compile(
    r"(?P<noun>(?:[Tt]he|[Oo]ur) [\w./-]+(?: [\w./-]+){0,3}?) (?:is|are) (?:(?:still|a bit|way|far|much) )*"
    r"(?:too \w+|not (?:long|high|big|short|low|small) enough|wrong|off)"
)
_MAKE = re.compile(
    r"(?:please |so |and |let's )*(?P<verb>make|set) (?P<noun>(?:the|our) [\w./-]+(?: [\w./-]+){0,3}?)"
    r" (?P<rest>[$€£]?\d.*)"
)
_CHOSEN = re.compile(
    r"(?:.*[,.] |(?:ok|okay|right|fine|good|so|then) )?(?P<what>[\w.-]*\w) it is(?: then)?[.! ]*"
    r"|(?:.* )?(?:use|go with|take|switch to|stick with) (?P<used>[\w.-]*\w)(?: then)?[.! ]*",
    re.IGNORECASE,
)


def read_choice(said: ClauseContext, text: str) -> Statement | None:
    """Read a choice, or an order about "it" where the words before it say what it is."""
    if match := _THEN.fullmatch(text):
        return _chosen(said, match["what"]) if is_technical(match["what"].split()[0]) else None
    if (match := _IT_IS.fullmatch(text)) and match["what"].split()[0] not in _NO_CHOICE:
        return _chosen(said, match["what"])
    if match := _RENAME.fullmatch(text):
        return _renamed(said, match["old"] or match["old2"], match["new"])
    if match := _MAKE.fullmatch(text):
        return _set(said, match["noun"], match["verb"], "", match["rest"])
    if match := _SET_IT.fullmatch(text):
        before = said.before
    else:
        before, _, order = text.partition(", ")
        match = _SET_IT.fullmatch(order)
    if match is None:
        return None
    if named := _TOO.fullmatch(before.rstrip(" .!")):
        return _set(said, named["noun"], match["verb"], match["to"], match["rest"])
    chosen = _CHOSEN.fullmatch(before)
    thing = (chosen["what"] or chosen["used"]) if chosen else ""
    known = len(thing) > 2 and thing.lower() not in _NO_CHOICE
    return _set(said, thing, match["verb"], match["to"], match["rest"]) if known else None


def _chosen(said: ClauseContext, what: str) -> Statement | None:
    value = own_value(said, what)
    if value is None:
        return None
    who = said.speaker.label
    return own_statement(said, subject=who, attribute="decision", value=value, claim=f"{who} decided on {value.words}")


def _renamed(said: ClauseContext, old: str, new: str) -> Statement | None:
    value = own_value(said, new)
    if value is None or not all(is_technical(name) or name[0].isupper() for name in (old, new)):
        return None
    claim = f"{said.speaker.label} asks to call {old} {value.words}"
    return own_statement(said, subject=old.casefold(), attribute="value", value=value, claim=claim)


def _set(said: ClauseContext, what: str, verb: str, to: str, rest: str) -> Statement | None:
    noun, value = read_noun(what, said.speaker), own_value(said, rest)
    if noun is None or value is None or not value.is_specific:
        return None
    named = re.sub(r"^(?:the|The|our|Our) ", lambda match: "their " if match[0].lower() == "our " else "the ", what)
    claim = f"{said.speaker.label} asks to {verb.lower()} {named} {to}{value.words}"
    return own_statement(said, subject=noun.key, attribute=attribute_of(value.words), value=value, claim=claim)
