"""Statements about things and named people: settings, values, places, schedules, owners, and what things do.

"The staging db runs on pg 15", "batch size is 500", "deploys happen on Thursdays", "Maria owns billing". A subject is a
noun phrase that stands on its own (`nouns`), and the value has to be specific (`specifics`), because a statement such
as "the service is slow" says nothing that lasts.

The attributes are `value` (numbers, names, switches), `time` (dates, weekdays, times of day), `location`, `owner`
(whose subject is the thing, and whose value is the owner), `contact`, or the verb with its preposition ("run on"). The
subject is without its article and in lower case. Statements with the same subject and attribute replace one another.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from memory.dates import MONTHS, WEEKDAYS
from memory.extraction.rules.arrangements import on_coming_day
from memory.extraction.rules.halves import complete_half
from memory.extraction.rules.labels import TOPICS
from memory.extraction.rules.modals import MODALS, read_obligation
from memory.extraction.rules.nouns import MAX_SUBJECT_WORDS, Noun, read_noun
from memory.extraction.rules.readings import ClauseContext, says_change
from memory.extraction.rules.specifics import is_address, is_capital, is_specific, is_technical
from memory.extraction.rules.statements import Statement
from memory.extraction.rules.subjects import THE_USER
from memory.extraction.rules.values import YEARLY_DAY, Value, read_value, read_yearly_day
from memory.extraction.rules.words import ADVERBS, PROFESSIONS, words
from memory.models.facts import Certainty, Temporal
from memory.verbs import VERBS, Verb

_STATIVE = words(
    "give chair watch do follow finish rest hand run use live sit listen belong handle manage maintain need require "
    "take cost expire end start begin open close "
    "happen ship point connect talk write read depend support allow return contain have hold store cover come arrive "
    "meet work teach report approve review weigh measure mean stand retry expect send serve expose export accept "
    "default stay last keep seat fit charge pay earn deliver collect supply provide speak replace go land sync rotate "
    "host deploy release log publish consume produce validate cache build compile lint coordinate lead organize "
    "organise drive cook sign own merge live forward redirect fall reset poll scale mount import load feed play get "
    "swim operate rent "
    "authenticate parse refresh train eat drink add total equal swap visit move leave share save print bill translate "
    "grade prescribe water"
)
_BY_THIRD = {Verb(base, "", "", "").present: base for base in _STATIVE}
_NOT_AS_PLURAL = words("have")
_BE = words("is are")
_OWNERSHIP = words("do own handle manage maintain approve review coordinate lead organize organise sign merge teach")
_PASSIVE = (
    "hosted|owned|called|named|written|deployed|stored|based|built|maintained|scheduled|due|responsible|limited|capped"
    "|pinned|locked|mounted|generated|handled|protected|located|booked|planned|set|managed|kept|run|backed up|backed"
    "|cached|logged|rotated|signed|encrypted|served|exposed|triggered|reviewed|approved|paid|closed|open|available|valid"
    "|required|allowed|supported|frozen|sent|published|released|versioned|tagged|rendered|billed|reachable|in charge"
    "|deprecated|disabled|enabled|renewed|insured|registered|made|delivered|shared|connected|routed|written|exported"
    "|on call|out of office|off|away|on vacation|on holiday|on leave|moving|migrating|allergic|divided|split|worth"
    "|led by|headed by"
    "|forbidden|banned|prohibited|needed|required|long|wide|high|deep|tall|old|away|late|early|free|full time|part "
    "time|sold|priced|graded|taught|played"
)
_BE_VALUE = re.compile(rf"(?:{_PASSIVE})\b")
_PREPOSITION = re.compile(
    r"(?:on|at|in|from|every|by|for|under|behind|between|until|till|within|near|after|before|above|below|up|over|per"
    r"|with|next to|inside|outside|opposite)\b"
)
_APPROXIMATE = re.compile(
    r"(?:about|around|roughly|only|at least|at most|exactly|under|over|up to|max|maximum|minimum|less than|more than"
    r"|just"
    r"|around|approximately|set to|a maximum of|almost|nearly|still|always|usually|now|currently|already|actually"
    r"|officially|the|a|an|port|version|channel|room|number|extension|line|~) "
)
_SWITCHES = re.compile(
    r"(?:mandatory|required|optional|disabled|enabled|deprecated|read-only|read only|private|public|frozen|self-hosted"
    r"|out of scope|cut|forbidden|off limits|immutable|off|on|prohibited|banned|not allowed|compulsory|case-sensitive"
    r"|case-insensitive|vegetarian|vegan|lactose intolerant|nullable|append-only|idempotent)"
)
_SAYS_NOTHING = re.compile(
    r"(?:an? |the |such |some |really |so |very |pretty |quite |totally |absolutely |super )*(?:[\w-]+ )?(?:legend|star"
    r"|hero|genius|mess|pain|nightmare|disaster|gem|dream|joke|beast|joy|blessing|bit|lot|problem|good|great|nice|cool"
    r"|awesome|amazing|beautiful|lovely|wonderful|fantastic|incredible|fun|gorgeous|stunning|perfect|best|worst|better"
    r"|worse|bad|terrible|horrible|awful|favou?rite|special|important|interesting|sweet|cute|kind|ok|okay|fine|right"
    r"|wrong|problem|issue|mistake|thing|reason|way|surprise|shame|pity|big deal|treat|delight|inspiration|reminder"
    r"|kind of|sort of|type of|must|no-brainer|winner|keeper|game changer|hit|miss|rock|saint|darling|charm|success"
    r"|fan|challenge|struggle|journey|adventure|blast|ray|true|real|one)\b"
)
_TIME = re.compile(
    rf"\b(?:{'|'.join(WEEKDAYS)})s?\b|\b(?:{'|'.join(MONTHS)}) (?:\d|the)|\b\d{{1,2}} (?:{'|'.join(MONTHS)})\b"
    rf"|\b\d{{1,2}}[:.h]\d\d\b|\b\d{{1,2}} ?(?:am|pm|o'clock)\b|\bnoon\b|\bmidnight\b|\bhalf past\b"
    r"|\b(?:daily|nightly|hourly|weekly|monthly)\b|\bevery \w+|^(?:at|from) \w+(?: o'clock)?$",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"(?P<subject>[\w. /-]{1,60}?) ?(?:=|:=) ?(?P<value>[\w./@:$€£%+-][^=,;]{0,60})")
_CHANGED = re.compile(
    r"(?:has |have |had |was |were |is |are |been |got |gets |being |just |now |recently |also )*(?P<verb>moved|changed"
    r"|bumped|raised|lowered|increased|reduced|renamed|migrated|switched|upgraded|downgraded|postponed|rescheduled|set"
    r"|pushed|dropped|went|extended|shortened|shifted|brought forward|converted|ported|limited|capped|pinned|went up"
    r"|went down|pushed back|pushed out|cut|doubled|moving|changes|moves|switches|bumps|goes up|goes down)"
    r" (?:down |up |back |over |out |forward )?(?P<rest>(?:(?:from|to|by|at|until|into) ).+)"
)
_CHANGED_FIRST = words(
    "has have had was were got is are moved changed increased migrated switched went dropped doubled moves changes "
    "just "
    "moving switches bumps goes"
)
MAX_JOINTS = 8
_JOINT = re.compile(
    r"(?:[,;:] | - | -- | ?[—–] ?| (?=and |but |so |because |since |as |while ))(?:(?:and|but|so|because|since|as"
    r"|while) )?"
)
_CONDITION = re.compile(
    r"(?:when|whenever|once|as soon as|until|while|where|after|before|unless|if|in case|every time|as long as|assuming"
    r"|suppose|with|without|only when)\b",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(
    r"(?:(?:btw|by the way|also|fyi|then|now|note that|remember that|keep in mind that|remember|note|and|but|so|because"
    r"|since|oh|ok|as you know|for reference|just so you know|heads up|reminder|basically|actually|important|plus"
    r"|first|second|finally|the thing is|turns out|it turns out|the good news is|for the record|quick note"
    r"|one more thing|another thing|mind that|also note that|as for now|please note that|please note|well)[,:]? )+",
    re.IGNORECASE,
)
_VERBS = frozenset((*_BE, *MODALS, *_BY_THIRD, *_STATIVE, *_CHANGED_FIRST, *ADVERBS))
_NOISE = words("currently now actually also still just already normally officially basically")
_KEPT = words("only always usually never typically generally")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The meaning of a clause about a thing: the words of the claim after its subject, and the parts of its meaning."""

    verb: str
    attribute: str
    value: Value
    is_owner: bool = False


def read_things(said: ClauseContext, text: str) -> Iterator[Statement]:
    """Yield the statements that a text without questions and hedges makes about things and named people.

    A part after a joint ("…, and the timeout is 30s") is read on its own, unless a condition begins the text.
    """
    first = _read_part(said, text)
    if first:
        yield first
    if _CONDITION.match(text):
        return
    has_any, start = first is not None, 0
    for joint in islice(_JOINT.finditer(text), MAX_JOINTS):
        is_bare = joint[0].strip() == "and"
        part, before = text[joint.end() :], text[start : joint.start()]
        part = part[match.end() :] if (match := _INTRODUCED.match(part)) else part
        statement = _read_part(said, part) if has_any or not is_bare else None
        if statement:
            start = joint.end()
        elif (
            has_any
            and not (first and first.claim.endswith(part))
            and (half := complete_half(before, part, verb=_verb_of(before)))
        ):
            statement = _read_part(said, half)
        if statement:
            has_any = True
            yield statement


def _verb_of(part: str) -> str:
    """Return the first verb of a part behind its subject; empty if it is not known."""
    tokens = part.split(maxsplit=MAX_SUBJECT_WORDS + 3)
    places = range(1, min(len(tokens), MAX_SUBJECT_WORDS + 3))
    verbs = (tokens[at] for at in places if tokens[at].lower() in _VERBS - ADVERBS or _is_verb(tokens, at))
    return next(verbs, "")


def _read_part(said: ClauseContext, text: str) -> Statement | None:
    if (match := _EQUALS.match(text)) and (noun := read_noun(match["subject"].strip(), said.speaker)):
        value = _value(said, match["value"])
        if value and value.is_specific:
            return make_thing(said, noun, Reading(verb="is", attribute="value", value=value))
    tokens = text.split(maxsplit=MAX_SUBJECT_WORDS + 3)
    for place in range(1, min(len(tokens), MAX_SUBJECT_WORDS + 3)):
        if (statement := _read_at(said, tokens, place)) is not None:
            return statement
    return None


def _read_at(said: ClauseContext, tokens: list[str], place: int) -> Statement | None:
    """Return the statement whose verb is the word at a place."""
    word = tokens[place].lower()
    if word not in _VERBS and not _is_verb(tokens, place):
        return None
    start = place
    while start > 1 and tokens[start - 1].lower() in _NOISE | _KEPT:
        start -= 1
    kept = [token.lower() for token in tokens[start:place] if token.lower() in _KEPT]
    says_which = word in _BE and _SAYS_WHICH.match(" ".join(tokens[place + 1 :])) is not None
    noun = read_noun(" ".join(tokens[:start]), said.speaker, said.names, says_which=says_which)
    if noun is None or (start == 1 and tokens[0].lower() in _ORDERS and word in _PLURALS):
        return None
    reading = _reading(said, noun, word, " ".join(tokens[place + 1 :]), " ".join(tokens[place:]))
    if reading is None:
        return None
    return make_thing(said, noun, replace(reading, verb=" ".join((*kept, reading.verb))))


def _is_verb(tokens: list[str], place: int) -> bool:
    """Return True for a word that is a verb by its place, as in "the dashboard refreshes every 15 minutes"."""
    word = tokens[place]
    following = tokens[place + 1].lower() if place + 1 < len(tokens) else ""
    return _THIRD.fullmatch(word) is not None and following in _AFTER_VERB


_ORDERS = words("log test build ship ping cache page mail email post report sync store track save load plot")
_PLURALS = words("runs tests builds calls checks logs reports hits costs starts stops changes moves uses loads points")
"""Words behind an order that may be a plural or a verb: "Log runs to the server"."""
_SAYS_WHICH = re.compile(
    r"(?:now |called )*(?:(?=\S*[A-Za-z])\S*[\w)][_./:@]\w[^\s,]{2,}|\$?\d[\d.,]* (?:\w+ ){1,2}(?:per|an?|each) \w+)"
)
"""A value that says which server or limit is meant: an address, an identifier, or so much of one thing per other."""
_THIRD = re.compile(r"[a-z]{3,}(?<![su])s")
_AFTER_VERB = words("every at on in for after with to from by within into up out down as")


def _reading(said: ClauseContext, noun: Noun, word: str, rest: str, whole: str) -> Reading | None:
    if match := _CHANGED.match(whole):
        return _changed(said, match)
    if word in ("was", "were") and (made := _MADE_BY.match(rest)):
        value = _value(said, made[0])
        return Reading(verb=word, attribute=made["verb"], value=value) if value else None
    if word in _BE:
        if (word == "are") != noun.is_plural and not noun.is_name:
            return None
        return _read_be(said, noun, word, rest)
    if word in MODALS and (reading := _read_modal(said, noun, word, rest)):
        return reading
    return _read_verb(said, noun, word, rest)


_GIVEN = re.compile(r"(?P<who>me|us)(?= )")


def _given(said: ClauseContext, base: str, words_: str) -> str:
    """Return the words after a verb with the speaker's name for "me", as in "the foundation gives us 22,000"."""
    name = "the user" if said.speaker.label == THE_USER else said.speaker.label
    return _GIVEN.sub(name, words_, count=1) if base in _GIVING and _GIVEN.match(words_) else words_


_GIVING = words("give pay send charge cost allow deliver teach")


def _value(said: ClauseContext, words_: str) -> Value | None:
    return read_value(words_, at=said.turn.timestamp, speaker=said.speaker)


def _changed(said: ClauseContext, match: re.Match[str]) -> Reading | None:
    value = _value(said, match["rest"])
    if value is None or not value.is_specific:
        return None
    verb = match[0][: match.start("rest") - match.start()].strip()
    target = re.split(r"\b(?:to|at|until|into) ", value.words)[-1]
    return Reading(verb=verb, attribute=attribute_of(target), value=value)


def attribute_of(value: str) -> str:
    """Return the attribute that a value of a thing belongs to: `time`, `location` or `value`."""
    if _TIME.search(value):
        return "time"
    bare = re.sub(r"^(?:on|at|in) ", "", value)
    is_place = bare != value and not any(map(str.isdecimal, bare))
    return "location" if is_place else "value"


def _read_be(said: ClauseContext, noun: Noun, word: str, rest: str) -> Reading | None:
    rest = on_coming_day(noun.key, _without_noise(rest))
    if _YEARLY.search(noun.key) and (day := read_yearly_day(rest, at=said.turn.timestamp)):
        return Reading(verb=f"{word} on", attribute="time", value=Value(words=day))
    negation = "not " if rest.startswith("not ") else ""
    value = _value(said, rest.removeprefix("not "))
    if value is None or _SAYS_NOTHING.match(value.words):
        return None
    words_ = value.words
    bare = words_
    while match := _APPROXIMATE.match(bare):
        bare = bare[match.end() :]
    if _SWITCHES.fullmatch(words_):
        return Reading(verb=f"{word} {negation}".strip(), attribute="value", value=value)
    if not _is_lasting(noun, words_, bare, value) or _PROGRESSIVE.match(words_):
        return None
    if match := re.match(r"(?:owned|maintained|managed|handled|run|led|headed) by (?P<who>\S.*)", words_):
        return Reading(verb=f"{word} {negation}".strip(), attribute="owner", value=value)
    return Reading(verb=f"{word} {negation}".strip(), attribute=attribute_of(words_), value=value)


_PROGRESSIVE = re.compile(r"(?!moving|migrating|staging|billing)\w+ing\b(?! (?:room|hall|pool))")


_YEARLY = re.compile(rf"\b{YEARLY_DAY}$")


def _is_lasting(noun: Noun, words_: str, bare: str, value: Value) -> bool:
    """Return True if what a thing is said to be can be looked up: a number, a name, a time, a place or a kind."""
    first = bare.split()[0] if bare else ""
    if any(map(str.isdecimal, first)) or is_technical(first) or is_address(bare):
        return True
    if (is_capital(first) and not words_[0].islower()) or (is_capital(first) and bare != words_):
        return True
    if _PREPOSITION.match(words_) or _BE_VALUE.match(words_):
        says_who = noun.is_name and re.match(
            r"(?:responsible|in charge|on call|allergic|on vacation|on leave)\b", words_
        )
        return value.is_specific or bool(says_who)
    if noun.is_name and _ROLE.fullmatch(words_):
        return True
    if _CONTRAST.search(words_) and (noun.key in TOPICS or not noun.is_name):
        return True
    if re.match(r"(?:an?|the|our|my) ", words_) or noun.is_plural:
        return value.is_specific or (noun.is_name and words_.startswith(("a ", "an ")) and len(words_.split()) > 2)
    return is_specific(" ".join(words_.split()[:2]))


_CONTRAST = re.compile(r"^[a-z][\w-]*(?: [\w-]+){0,3}, not (?=[A-Z]|\S*[\d_])\S+(?: [\w-]+){0,2}$")
_MADE_BY = re.compile(
    r"(?P<verb>written|built|designed|made|created|founded|introduced|invented|composed|painted|planned|started) by"
    r" (?=[A-Z]\w).+"
)
_ROLES = "|".join(
    (
        *("contact", "owner", "lead", "maintainer", "admin", "steward", "reviewer", "approver", "head", "boss"),
        *sorted(PROFESSIONS),
    )
)
_ROLE = re.compile(rf"the (?:[a-z-]+ ){{0,2}}(?:{_ROLES})(?: (?:of|for|at|on) .+)?")


def _without_noise(text: str) -> str:
    while (first := text.partition(" ")[0]).lower() in _NOISE:
        text = text[len(first) :].lstrip()
    return text


def _read_modal(said: ClauseContext, noun: Noun, word: str, rest: str) -> Reading | None:
    value = read_obligation(word, rest, noun, at=said.turn.timestamp, speaker=said.speaker)
    if value is None or _SAYS_NOTHING.match(value.words):
        return None
    return Reading(verb=word, attribute=f"{word} {' '.join(value.words.split()[:2])}", value=value)


def _read_verb(said: ClauseContext, noun: Noun, word: str, rest: str) -> Reading | None:
    base = (
        _BY_THIRD.get(word)
        or (word.removesuffix("s") if _THIRD.fullmatch(word) and not noun.is_plural else "")
        or (word if word in _STATIVE and noun.is_plural else "")
    )
    if not base or (word in _STATIVE and word in _NOT_AS_PLURAL and not noun.is_plural):
        return None
    rest = _without_noise(rest)
    if rest.startswith("not ") or (base == "do" and _AUXILIARY.match(rest)):
        return None
    value = _value(said, _given(said, base, rest))
    if value is None or _SAYS_NOTHING.match(value.words) or value.words.split()[0].lower() in _BE | MODALS:
        return None
    is_owner = base in _OWNERSHIP and (noun.is_name or base == "own") and not _ANY.match(value.words)
    is_one = not noun.is_plural or word not in _STATIVE
    if not (value.is_specific or (is_owner and is_one)):
        return None
    if is_owner:
        return Reading(verb=word, attribute="owner", value=value, is_owner=True)
    first = value.words.split()[0]
    preposition = first if _PREPOSITION.match(value.words) or first in ("to", "into", "through") else ""
    is_place = base in ("live", "sit", "stay", "stand") and preposition in ("in", "on", "at", "under", "behind")
    attribute = "location" if is_place and not _TIME.search(value.words) else f"{base} {preposition}".strip()
    if base in ("happen", "start", "end", "begin", "expire", "run", "open", "close", "go") and _TIME.search(
        value.words
    ):
        attribute = "time" if base in ("happen", "go") else f"{base} time"
    return Reading(verb=word, attribute=attribute, value=value)


_AUXILIARY = re.compile(rf"(?:still|indeed|really|also|{'|'.join(VERBS)})\b")
_ANY = re.compile(r"\d|an? |some |many ")


def make_thing(said: ClauseContext, noun: Noun, reading: Reading) -> Statement:
    """Return the statement of a reading about a noun. A statement with a date to come is true until then."""
    date = reading.value.date
    is_ahead = date is not None and date.start >= said.turn.timestamp
    claim = " ".join(filter(None, (noun.label, reading.verb, reading.value.words)))
    subject, value = (reading.value.words, noun.label) if reading.is_owner else (noun.key, reading.value.words)
    return Statement(
        turn=said.turn.index,
        subject=subject,
        attribute=reading.attribute,
        value=value,
        claim=claim,
        temporal=Temporal.FUTURE if is_ahead else Temporal.CURRENT,
        certainty=Certainty.EXPLICIT,
        valid_to=date.end if is_ahead and date else None,
        is_correction=said.clause.is_correction,
        is_retraction=said.clause.is_retraction,
        is_change=says_change(said),
    )
