"""Statements that a sentence makes beside its clauses: ages in a list, and what brings on a complaint.

"We have two kids, Anna is 6 and Leo has just turned 3" tells the ages of both, and "garlic gives me migraines" is about
the speaker, although garlic is its subject.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from memory.extraction.numbers import NUMBER, read_number
from memory.extraction.rules.ailments import CONDITION, MADE, SYMPTOM
from memory.extraction.rules.copulas import MAX_AGE_YEARS
from memory.extraction.rules.names import PERSON, is_name
from memory.extraction.rules.phrases import Voice, make_phrase
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import NamedThing, Statement
from memory.extraction.rules.subjects import Subject
from memory.extraction.rules.words import PERSON_RELATIONS, PROFESSIONS, RELATION_ADJECTIVES, STATES, words

_OF_AGE = re.compile(
    rf"(?:(?:^|[,;:(–—-] ?|\b(?:and|but) )(?P<who>{PERSON})(?:'s| is| has|,)?(?: just| now| almost)*(?: turned)?"
    rf" \(?(?P<years>{NUMBER})(?: years? old)?(?: now)?(?=[.,;!)]|$| and\b| but\b))"
)
_HAS_VERB = re.compile(r"(?:'s| is| has| turned|,| \()")
_CHILDREN = {
    "kids": "kid", "children": "child", "sons": "son", "daughters": "daughter", "boys": "son", "girls": "daughter",
    "grandchildren": "grandchild", "grandkids": "grandkid", "nephews": "nephew", "nieces": "niece",
}  # fmt: skip
_MINE = re.compile(
    rf"\b(?:(?:I|[Ww]e) (?:have|have got|got)|[Mm]y|[Oo]ur|mother of|father of|mum of|mom of|dad of) "
    rf"(?:(?:two|three|four|five|six|\d|young|little|teenage|older|adult|of|our|my) )*(?P<who>{'|'.join(_CHILDREN)})\b"
)
_GREETED = re.compile(
    rf"(?i:hi|hello|hey|hiya|good (?:morning|evening|afternoon)|greetings)(?i: there| all| everyone| claude)?[,!.]? "
    rf"(?:I am|[Tt]his is) (?P<name>{PERSON})(?=[,.!]|$| (?:and|from|here)\b)"
)
_NO_GREETED_NAME = (
    STATES
    | PROFESSIONS
    | PERSON_RELATIONS
    | RELATION_ADJECTIVES
    | words(
        "back done home tired busy sick ill here new late early ready sorry fine ok okay alright well better worse "
        "hungry thirsty bored lost stuck confused curious worried anxious nervous scared afraid sad angry upset mad "
        "annoyed frustrated disappointed depressed lonely alone stressed exhausted overwhelmed pleased thrilled "
        "grateful thankful interested lazy drunk hungover awake asleep sleepy dizzy hurt injured cold hot pretty very "
        "super so too quite really almost still finally currently having trying working using getting going writing "
        "making building planning learning wondering thinking calling following reaching checking running in on at "
        "out off up down away around online offline available free serious urgent important broken wrong right true "
        "false crazy weird funny hard easy impossible awesome terrible awful ridiculous gay straight bisexual trans "
        "autistic disabled allergic healthy unwell recovering remote freelance jobless male female human anonymous"
    )
)
"""Words, in lower case, that follow "Hi, I'm" with a capital and say how somebody is, and no name."""
_AILMENT = re.compile(rf"{CONDITION}|{MADE}", re.IGNORECASE)
_CALLED = re.compile(
    rf"\b(?:but|and|though|,) (?:everyone|everybody|people|most people|(?:all )?my friends"
    rf"|friends) (?:just )?calls? me "
    rf"(?P<name>{PERSON})(?=[,.!]|$| (?:and|but)\b)"
)
_CAUSE = (
    r"(?:^|[,;:–—] ?|(?:^|\s)(?:because|as|since|but|and|so|that|though) )(?:(?:even|also|anything with|eating|drinking"
    r"|too much|spending time in) )?"
    r"(?P<cause>(?!(?i:it|that|this|he|she|they|we|you|which|who|what|there|these|those|all|everything|nothing|something"
    r"|work|life|people|and|but|so|not|no)\b)[A-Za-z][\w'-]*(?: (?:and|or|in|on) [a-z]+| (?!and\b|always\b"
    r"|really\b|usually\b"
    r"|often\b|sometimes\b|just\b|also\b|can\b|will\b)[a-z][\w'-]*){0,2}?)"
)
_BRINGS_ON = re.compile(
    rf"{_CAUSE} (?P<how>(?:always|usually|often|sometimes|really) )?(?P<verb>gives?|causes?|triggers?|brings? on) "
    rf"(?P<whom>me |my )?(?P<effect>{SYMPTOM})(?=[.,;:!)]|$| (?:and|so|but|because|now|every|when)\b)"
)
_MAKES = re.compile(
    rf"{_CAUSE} (?P<how>(?:always|usually|often|sometimes|really) )?(?P<verb>makes?) me (?P<effect>{MADE})"
    r"(?=[.,;:!)]|$| (?:and|so|but|because|now|every|when)\b)"
)


def read_asides(said: ClauseContext) -> Iterator[Statement]:
    """Yield the ages and the causes of complaints in a whole sentence, which is the clause of `said`."""
    yield from _ages(said)
    yield from _names(said)
    for pattern in (_BRINGS_ON, _MAKES):
        for match in pattern.finditer(said.clause.text):
            if statement := _cause(said, match):
                yield statement


def _ages(said: ClauseContext) -> Iterator[Statement]:
    text = said.clause.text
    mine = _MINE.search(text)
    for match in _OF_AGE.finditer(text):
        name, years = match["who"], read_number(match["years"])
        is_stated = _HAS_VERB.match(text, match.end("who")) is not None
        if not (is_stated and is_name(name) and 0 < years <= MAX_AGE_YEARS) or name == said.speaker.person:
            continue
        is_child = mine is not None and mine.start() < match.start("who") and "'s" not in name
        if not is_child and (said.names.type_of(name) != "person" or _is_list_of_others(text, match)):
            continue
        name = said.names.form_of(name)
        people = (NamedThing(name=name, type="person"),)
        other = Subject(
            label=name, rest="", voice=Voice(speaker=said.speaker.label, is_own=False), names=people, is_third=True
        )
        if is_child and mine:
            who = _CHILDREN[mine["who"]]
            child = make_statement(said, _speaker(said), attribute=f"relation:{who}", value=name, claim="")
            yield replace(
                child,
                claim=f"{said.speaker.owner} {who} is {name}",
                names=(*said.speaker.names, *people),
                relationship=(said.speaker.person, name, "KNOWS") if said.speaker.person else None,
            )
        yield make_statement(said, other, attribute="age", value=str(years), claim=f"is {years} years old")


def _names(said: ClauseContext) -> Iterator[Statement]:
    """Read "Hi, I'm Ana" and "… but everyone calls me Annie"."""
    text = said.clause.text
    if (match := _GREETED.match(text)) and _is_introduced(match["name"]) and not said.speaker.person:
        names = (NamedThing(name=match["name"], type="person"),)
        statement = make_statement(said, _speaker(said), attribute="name", value=match["name"], claim="")
        yield replace(statement, claim=f"{said.speaker.owner} name is {match['name']}", names=names)
    if (match := _CALLED.search(text)) and is_name(match["name"]):
        claim = f"asks to be called {match['name']}"
        yield make_statement(said, _speaker(said), attribute="called", value=match["name"], claim=claim)


def _is_introduced(name: str) -> bool:
    """Return True for a name, and False for what somebody says of their state: "Hi, I'm Back!", "Hello, I'm Vegan"."""
    is_state = name.split()[0].lower() in _NO_GREETED_NAME or _AILMENT.fullmatch(name) is not None
    return is_name(name) and not is_state


def _is_list_of_others(text: str, match: re.Match[str]) -> bool:
    """Return True for "Ana, 12" and "Ana 12", which may be a number of anything, if nobody's child."""
    between = text[match.end("who") : match.start("years")]
    return re.search(r"'s|\bis\b|\bturned\b", between) is None


def _cause(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    """Read "garlic gives me migraines", "milk makes me bloated"; what "triggers migraines" triggers my own only."""
    whom = match.groupdict().get("whom", "me ")
    if not whom or (whom == "my " and not match["verb"].startswith(("trigger", "cause", "bring"))):
        return None
    cause = make_phrase(match["cause"], _speaker(said).voice)
    if not cause or cause.split()[0].lower() in ("the", "their"):
        return None
    user = said.speaker.label if said.speaker.person else "the user"
    mine = f"{user}'s " if whom == "my " else ""
    words = f"{match['how'] or ''}{match['verb']} {mine or f'{user} '}{match['effect']}"
    statement = make_statement(said, _speaker(said), attribute=f"effect:{cause}", value=match["effect"], claim="")
    return replace(statement, claim=f"{cause[:1].upper()}{cause[1:]} {words}")


def _speaker(said: ClauseContext) -> Subject:
    voice = Voice(speaker=said.speaker.label, is_own=True)
    return Subject(label=said.speaker.label, rest="", voice=voice, names=said.speaker.names, is_third=False)
