"""Owners and absences: "Tomasz takes over invoices", "Ilse is release captain", "he is away until the 27th"."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memory.dates import Bound
from memory.extraction.rules.names import is_name
from memory.extraction.rules.nouns import Noun, read_noun
from memory.extraction.rules.own import own_statement, own_value
from memory.extraction.rules.owner_claims import ROLES
from memory.extraction.rules.phrases import Voice
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.specifics import is_capital
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.subjects import Subject
from memory.extraction.rules.things import Reading, make_thing, read_things
from memory.extraction.rules.values import Value, read_value
from memory.models.facts import Temporal

_WHO = r"(?P<who>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?|[Ss]he|[Hh]e)"
_THING = r"(?P<what>(?:the |our |all |all the )?[\w][\w./-]*(?: [\w./-]+){0,4}?)"
_TAKES = re.compile(
    rf"{_WHO} (?:now )?(?P<verb>takes over|will take over|is taking over|took over|has taken over|inherits|looks after"
    rf"|is responsible for|is in charge of) {_THING}"
    r"(?: (?P<rest>(?:from|on|until|as of|next|starting|for|in|at|while|since) .+))?(?: (?:now|then|instead|for now))?"
)
_HOLDS = re.compile(
    rf"{_WHO} (?P<verb>is|will be|acts as|is acting as|stays|becomes|takes over as) (?:the |our |now )?"
    rf"(?P<role>{ROLES})(?P<rest> (?:for|of|on|in) .+?)?"
    r"(?: (?:this time|this sprint|this week|now|again|for now|from now on))?"
)
_AWAY = re.compile(
    rf"{_WHO} (?:is|will be) (?:currently |now )?(?P<state>away|out of office|out sick|off sick|off|out"
    r"|on (?:parental |maternity |paternity |sick |annual )?leave|on (?:holiday|vacation|sabbatical)"
    r"|traveling|travelling|unavailable|at a conference)"
    r"(?P<rest> (?:from|until|till|through|since|starting|between|next|this|in|on|for) .+)?"
)
_SOME_DAY = re.compile(r"\b(?:today|tomorrow|next|\d|monday|tuesday|wednesday|thursday|friday)", re.IGNORECASE)
_SHARED = re.compile(
    r"[A-Z][\w'-]+ (?:does|owns|handles|takes|runs|writes|covers|builds|has|takes care of|is doing|will do)"
    r" (?:the |all )?[\w-]+(?: [\w-]+){0,3}"
)
_MINE = re.compile(
    r"I(?: will| am)? (?P<verb>do|own|handle|take care of|take|run|write|cover|build|doing) (?P<what>(?:the |all )?"
    r"[\w-]+(?: [\w-]+){0,2})"
)
_NOT_MINE = re.compile(r"(?:the )?(?:same|rest|best|other|way|right|one|thing|job|it|so|too|not|that|this|a|an|my)\b")
_CLAUSE_END = re.compile(r"(?:[,;] | (?:so|because|and|but) )")


def read_owners(said: ClauseContext, text: str) -> Iterator[Statement]:
    """Yield who takes over, holds a role, or is away, as the first part of a text says."""
    if _SHARED.fullmatch(said.clause.lead) and (match := _MINE.fullmatch(text)) and not _NOT_MINE.match(match["what"]):
        if statement := _own_share(said, match):
            yield statement
        return
    parts = _CLAUSE_END.split(text, maxsplit=3)
    found = [_read_part(said, part) for part in parts]
    if any(found):
        for part, statement in zip(parts, found, strict=True):
            yield from [statement] if statement else read_things(said, part)


def _read_part(said: ClauseContext, part: str) -> Statement | None:
    for pattern, read in ((_TAKES, _takes), (_HOLDS, _holds), (_AWAY, _away)):
        match = pattern.fullmatch(part)
        who = _who(said, match["who"]) if match else ""
        if match and who and (statement := read(said, who, match)):
            return statement
    return None


def owners_of(said: ClauseContext, statements: Sequence[Statement]) -> list[Subject]:
    """Return the people whom statements name as owners or as absent, for "he" and "she" behind them."""
    voice = Voice(speaker=said.speaker.label, is_own=False)
    owners = (each.value for each in statements if each.attribute == "owner")
    absent = (each.claim.partition(" is ")[0] for each in statements if each.attribute == "absence")
    people = dict.fromkeys(name for name in (*owners, *absent) if _PERSON.fullmatch(name) and is_name(name))
    return [Subject(label=name, rest="", voice=voice, names=(), is_third=True) for name in people]


_PERSON = re.compile(r"[A-Z][a-z'-]+(?: [A-Z][a-z'-]+)?")


def _who(said: ClauseContext, name: str) -> str:
    """Return the name of a person, or of the only one spoken of for "he" and "she"; empty if it is not clear."""
    if name.lower() in ("he", "she"):
        subject = said.spoken_of
        return subject.label if subject and is_name(subject.label) and subject.pronoun in ("", name.lower()) else ""
    return name if all(map(is_capital, name.split())) else ""


def _person(name: str) -> Noun:
    return Noun(label=name, key=name.casefold(), is_name=True, is_plural=False)


def _takes(said: ClauseContext, who: str, match: re.Match[str]) -> Statement | None:
    noun = read_noun(match["what"], said.speaker)
    if noun is None:
        return None
    rest = read_value(match["rest"], at=said.turn.timestamp, speaker=said.speaker) if match["rest"] else None
    words = f"{match['what']} {rest.words}" if rest and rest.date else match["what"]
    verb = "takes over" if "tak" in match["verb"] and not match["verb"].startswith(("took", "has")) else match["verb"]
    reading = Reading(verb=verb, attribute="owner", value=Value(words=words), is_owner=True)
    statement = make_thing(said, _person(who), reading)
    return replace(statement, subject=noun.key, value=who)


def _holds(said: ClauseContext, who: str, match: re.Match[str]) -> Statement | None:
    rest = read_value(match["rest"], at=said.turn.timestamp, speaker=said.speaker) if match["rest"] else None
    if match["rest"] and rest is None:
        return None
    words = f"{match['role']} {rest.words}" if rest else match["role"]
    verb = "takes over as" if match["verb"] == "takes over as" else "is"
    statement = make_thing(said, _person(who), Reading(verb=verb, attribute="role", value=Value(words=words)))
    return replace(statement, subject=words.casefold(), attribute="owner", value=who)


def _away(said: ClauseContext, who: str, match: re.Match[str]) -> Statement | None:
    """Read an absence that has a date: of others, nobody knows when it is over."""
    if match["rest"] is None or not _SOME_DAY.search(match["rest"]):
        return None
    value = read_value(f"{match['state']}{match['rest']}", at=said.turn.timestamp, speaker=said.speaker)
    if value is None or value.date is None:
        return None
    statement = make_thing(said, _person(who), Reading(verb="is", attribute="absence", value=value))
    return replace(statement, temporal=Temporal.CURRENT) if value.date.bound is Bound.UNTIL else statement


def _own_share(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    value = own_value(said, match["what"])
    if value is None:
        return None
    verb = {"doing": "does", "do": "does", "take care of": "takes care of"}.get(match["verb"], f"{match['verb']}s")
    claim = f"{said.speaker.label} {verb} {value.words}"
    return own_statement(said, subject=value.words.casefold(), attribute="owner", value=value, claim=claim)
