"""Settings without a verb: a label with a value ("retries: 5"), and a name or number after its noun ("port 8080")."""

import re
from collections.abc import Iterator

from memory.dates import WEEKDAYS
from memory.extraction.rules.nouns import Noun, read_noun
from memory.extraction.rules.readings import ClauseContext
from memory.extraction.rules.specifics import is_capital, is_specific, is_technical
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.things import Reading, make_thing
from memory.extraction.rules.values import read_value
from memory.extraction.rules.words import words
from memory.verbs import VERBS

_LABEL = re.compile(
    r"(?P<label>(?:[A-Z]?[a-z0-9][\w'/-]*|[A-Z]{2,5}s?)(?: [\w'/-]+){0,5}): (?P<value>[^?]+)",
)
_SPEAKING = re.compile(r"\b(?:wrote|writes|asked|asks|answered|replied|thinks|means|goes|reported|noted|added)$")
_CLAUSE = re.compile(r"\b(?:is|are|was|were|am|I|we|has|have|had|will|can|must|should|do|does|did)\b")
_NO_LABEL = re.compile(
    r"(?:next|first|second|finally|also|yes|no|ok|okay|so|well|question|trouble|wait|sorry|note|remember|example|result"
    r"|output|error|plan|here|idea|problem|and|but|then|now|good|fine|ps|update|edit|one more thing|funny thing"
    r"|guess what"
    r"|long story|fun fact|good news|bad news|point|reason|catch|thing|status|done|todo|work|home)\b",
    re.IGNORECASE,
)
_SCOPE = re.compile(r"(?:for|in|on) ", re.IGNORECASE)
_LEADING = re.compile(r"^(?:max|min|at most|at least|up to|about|on|in|at|from|every|only|the|an?|between|by) ")
_NAMED = (
    "name|prefix|suffix|bucket|table|dataset|schema|branch|queue|topic|experiment|index|database|db|folder|path|host"
    "|hostname|server|region|repo|namespace|cluster|colou?r|format|flag|role|channel|domain|tag|package|container|image"
    "|endpoint|url|profile|workspace|collection|stream|registry"
)
_COUNTED = (
    "seed|timeout|port|ttl|concurrency|dropout|warm-?up|patience|(?:batch|page|chunk|pool|buffer|queue|block|heap|file|image|cache"
    "|step|tab|font|sample|grid|tile|upload) size"
    "|(?!(?:on|in|at|of|to|is|are|the|a|an|this|that)\\b)[a-z]+ (?:length|limit|width|height|depth|rate"
    "|threshold|interval|budget|retention|delay|count|quality|resolution|stopping|decay|window|timeout|port|seed|factor"
    "|ratio|level|steps|epochs|workers|replicas|retries|attempts)"
)
_QUALIFIER = (
    r"(?!(?:on|at|in|to|of|for|with|from|by|is|are|a|an|my|this|that|no|and|or|listening|using|every|run|runs|use|set"
    r"|keep|park)\b)[a-z-]+"
)
_UNIT = r"(?: (?!(?:is|are|was|were|has|have|and|or|please|then)\b)[a-z%°][\w/%°]*){0,3}"
_SETTING = re.compile(
    rf"(?:(?:and|also|then|so|plus) )?(?P<label>(?:(?:the|our) )?(?:{_QUALIFIER} ){{0,2}}?(?:{_COUNTED}))"
    rf" (?P<value>[$€£~]?\d[\w.,:/%]*{_UNIT})"
    rf"|(?:(?:and|also|then|so|plus) )?(?P<label2>(?:(?:the|our) )?(?:{_QUALIFIER} ){{0,2}}?(?:{_NAMED}))"
    r" (?P<value2>[^\s,;]{3,80})",
    re.IGNORECASE,
)
_CUT_OFF = re.compile(rf" (?-i:[A-Z])|, (?:{'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
"""What goes on behind a value that was cut: a longer name, or a list of days."""
_ORDERS = words("call name use put set keep drop rename create make take add move delete remove leave give pick")
"""What begins an order about a thing instead of its name: "call the table invoices_b"."""
_PART = re.compile(r"[,;] (?:and )?| and ")
_IDENTIFIER = re.compile(r"(?=.*[A-Za-z])(?:.*[\d_./:@#-].*|[a-z]+[A-Z]\w*)")
MAX_PARTS = 8


def split_label(text: str) -> tuple[str, str]:
    """Return a label and what follows its colon; no label for words in front of a colon that name nothing."""
    match = _LABEL.fullmatch(text)
    if match is None or _NO_LABEL.match(match["label"]) or _SPEAKING.search(match["label"]):
        return "", text
    return match["label"], match["value"]


def read_label(said: ClauseContext, label: str, rest: str) -> Statement | None:
    """Read "retries: 5 with backoff", "the format of the numbers: INV-000123"."""
    noun = read_noun(label, said.speaker)
    value = read_value(rest, at=said.turn.timestamp, speaker=said.speaker)
    if noun is None or value is None or _SCOPE.match(label) or _CLAUSE.search(value.words):
        return None
    if not (value.is_specific and _begins_with_value(_LEADING.sub("", value.words))):
        return None
    if _CUT_OFF.match(rest.strip()[len(value.words) :]):
        return None
    named = Noun(label=f"{noun.label}:", key=noun.key, is_name=noun.is_name, is_plural=noun.is_plural)
    return make_thing(said, named, Reading(verb="", attribute="value", value=value))


def _begins_with_value(text: str) -> bool:
    """Return True for a number, a date, a technical term, or a short name, and not for an order."""
    first, *rest = text.split()
    if first.lower() in VERBS or first.lower() in _NO_VALUE:
        return False
    is_short = len(rest) < 3 and is_capital(first)
    return is_short or is_specific(first.lower()) or is_technical(first)


_NO_VALUE = words("none add e.g with drop minimal internal")


def read_settings(said: ClauseContext, text: str) -> Iterator[Statement]:
    """Yield the settings that parts of a text name: "seed 17 everywhere", "table name invoices, one row per year"."""
    for part in _PART.split(text, maxsplit=MAX_PARTS)[: MAX_PARTS + 1]:
        match = _SETTING.fullmatch(part.strip())
        if match and (statement := _setting(said, match)):
            yield statement


def _setting(said: ClauseContext, match: re.Match[str]) -> Statement | None:
    words = match["value"] or match["value2"]
    if match["value2"] and not (_IDENTIFIER.fullmatch(words) and is_specific(words)):
        return None
    noun = read_noun(match["label"] or match["label2"], said.speaker)
    value = read_value(words, at=said.turn.timestamp, speaker=said.speaker)
    label = (match["label"] or match["label2"]).strip()
    if noun is None:
        # a server or a table is any, unless its own name says which
        bare = label.removeprefix("the ")
        if not bare.replace(" ", "").isalpha() or is_technical(bare) or bare.split()[0].lower() in _ORDERS:
            return None
        noun = Noun(label=bare[:1].upper() + bare[1:], key=bare.casefold(), is_name=False, is_plural=False)
    return make_thing(said, noun, Reading(verb="is", attribute="value", value=value)) if value else None
