"""Dates, times and amounts of things: "The release is on 4 May", "The batch size is 64", "The demo was moved to 7 May".

A thing has one of each. It is known by its noun phrase without the determiner, so that "our batch size" and "the batch
size" are one. A phrase such as "the meeting" may be about another one each time (`is_generic`): only words that say
that something changed ("was moved to") are about the one that was spoken of before.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from memory.dates import MONTHS, DateMention, Tense, find_dates
from memory.extraction.rules.arrangements import find_coming_day
from memory.extraction.rules.phrases import GAP, Voice
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import ClaimParts, Statement
from memory.extraction.rules.subjects import Subject
from memory.extraction.rules.words import ANIMAL_RELATIONS, PERSON_RELATIONS, PLURAL_RELATIONS, words
from memory.models.facts import Temporal

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = "|".join(f"{month}|{month[:3]}|{month[:4]}" for month in map(str.lower, MONTHS))
_WEEKDAY = "|".join(f"{day}s?|{day[:3]}" for day in _WEEKDAYS)
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
_DAY = (
    rf"(?:(?:the )?{_NTH}(?: of)? (?:{_MONTH})|(?:{_MONTH}) {_NTH})(?:,? \d{{4}})?|(?:{_MONTH})(?: \d{{4}})?"
    r"|\d{4}-\d\d-\d\d|the \d{1,2}(?:st|nd|rd|th)|q[1-4](?: \d{4})?|(?:19|20)\d\d"
)
_CLOCK = r"(?:\d{1,2}[:.]\d\d(?: ?[ap]m)?|\d{1,2} ?(?:am|pm|o'clock|h)|noon|midnight)"
_HOUR = rf"(?:{_CLOCK}|\d{{1,2}}|ten|eleven|twelve|one|two|three|four|five|six|seven|eight|nine)"
_DATE = (
    rf"(?:(?:at )?{_CLOCK} (?=on ))?"
    rf"(?:on |in |at |for )?(?:(?:{_WEEKDAY})(?:,? (?:{_DAY}))?|next (?:week|month)|{_DAY})(?:,? at {_HOUR})?"
)
_NUMBER_WORDS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_AMOUNT = rf"(?:at )?[$€£]?(?:\d[\d,.]*(?:[a-z]{{1,3}}|%)?|{_NUMBER_WORDS})(?: [a-z°%][\w°/]*){{0,3}}"
_KINDS = (
    ("date", re.compile(_DATE)),
    ("time", re.compile(rf"at {_HOUR}|{_CLOCK}")),
    ("amount", re.compile(_AMOUNT)),
    ("version", re.compile(r"[a-z][a-z+#-]{1,20} v?\d[\w.]*")),
    ("identifier", re.compile(r"(?=\S*[a-z])(?:[\w-]+[_.:]\w\S*|/\S+|[a-z][\w-]*\d[\w-]*)")),
)
_DETERMINER = re.compile(r"(?:the user's|the|our|my|their|this) ", re.IGNORECASE)
_OWNED = r"(?:(?:[Tt]he|[Oo]ur|[Mm]y|[Tt]heir)|[A-Z][\w-]*'s|[Tt]he user's) [\w'/-]+(?: [\w'/-]+){0,5}?"
_NO_NOUN = (
    "(?i:an?|the|another|other|one|some|any|each|every|all|both|no|this|that|these|those|it|he|she|they|we|you|there|here"
    "|what|which|who|where|when|if|also|now|currently|still|and|or|but|with|at|in|on|for|of|to|by|from|next|last|is|are|was"
    "|were|has|have|got)"
)
# "Batch size", but not "Ana" or "Yoga", which may be on many days
_BARE = rf"(?!{_NO_NOUN}\b)[A-Z][\w/-]*(?: (?!{_NO_NOUN}\b)[a-z][\w/-]*){{1,4}}?"
# one noun that names the same thing for a team each time
_EVENT = (
    r"(?:[Rr]elease|[Ll]aunch|[Dd]emo|[Ss]tandup|[Rr]etro|[Gg]o-live|[Cc]utover|[Ff]reeze|[Rr]ollout|[Kk]ickoff|[Bb]eta"
    r"|[Ss]taging|[Pp]rod|[Pp]roduction|[Ss]eed|[Tt]imeout|[Rr]etries|[Dd]eadline)"
)
_NOUNS = rf"(?P<subject>{_OWNED}|{_BARE}|{_EVENT})"
_CHANGED = (
    r"(?:(?:was|were|is|are|got|has been|have been) )(?:now )?(?:just )?"
    r"(?:postponed|moved|pushed|rescheduled|brought forward|put off|delayed|changed|raised|lowered|increased|reduced"
    r"|decreased|shifted|extended|set|switched|renamed)"
    r"(?: (?:back|out|forward|up|down))? (?:to|until|till|at|from .{1,30} to)"
    r"|(?:(?:has|have) )?(?:moved|changed|slipped|switched|slips|moves|slides|slid|shifts|shifted|changes"
    r"|goes up|goes down|gets (?:moved|pushed|postponed|delayed)(?: back| out)?|went up|gone up|dropped|rose|risen)"
    r" (?:from .{1,30} )?(?:to|until)"
    r"|(?:is|are) now(?: set to)?"
)
_IS = (
    r"is (?:due|scheduled|planned|set|fixed)(?: (?:to|for))?"
    r"|is (?:called|named)|runs (?:on|at)|listens on"
    r"|are (?:due|scheduled|planned|set)(?: (?:to|for))?|takes place|happens|starts|begins|stands at|lasts|costs"
    r"|is|are|will be"
)
_CLAIM = re.compile(
    rf"{_NOUNS} (?:(?P<changed>{_CHANGED})|(?:{_IS})) (?P<value>\S.{{0,59}}?)(?P<now> now)?(?: instead(?: of .+)?)?\.?"
)
_ORDER = re.compile(
    r"\S.{0,60}? asks to (?P<changed>make|set|bump|raise|lower|increase|reduce|change|move|keep|pin|cap|limit|cut|put"
    r"|push|shift|reschedule|postpone) (?P<subject>(?:the |their )?[\w'/-]+(?: [\w'/-]+){0,4}?)"
    r" (?:(?:(?:up|down|back) )?(?:to|at) |(?=[$€£]?\d))(?P<value>\S.{0,59}?)(?P<now> now)?\.?"
)
_DONE = re.compile(
    r"(?:[Tt]he user|[A-Z][\w-]+)(?:'s team)? (?:has |have )?(?P<changed>moved|set|bumped|raised|lowered|increased"
    r"|reduced|decreased|changed|cut|pushed|shifted|rescheduled|postponed|extended|switched|renamed|upgraded|downgraded)"
    r" (?P<subject>(?:(?:the|their) [\w'/-]+|[a-z]+[-_][a-z_]+|retries|replicas|workers|concurrency)"
    r"(?: [\w'/-]+){0,4}?) (?:(?:up|down|back|out|forward) )?"
    r"(?:from .{1,30}? )?to"
    r" (?P<value>\S.{0,59}?)(?P<now> now)?(?: (?:after|because|since|so) .+)?\.?"
)
"""What somebody did to a thing that has another value since: "The user raised the timeout to 60 seconds"."""
_RELEASED = re.compile(
    r"(?:(?:[Tt]he user|[A-Z][\w-]+)(?:'s team)? (?:has |have )?(?P<changed>upgraded|downgraded|updated|migrated|moved"
    r"|switched|bumped) to|(?:[Tt]he |[Oo]ur )?(?P<named>[A-Z][\w+#-]{1,20}) version is)(?P<now> now)?"
    r" (?P<what>(?:[A-Z][\w+#-]{1,20} )?v?\d[\w.]*)(?: now)?\.?"
)
"""The version of what has one: "Python version is 3.12", "The user upgraded to Python 3.13"."""
_LABELLED = re.compile(
    r"(?P<subject>(?:[Tt]he )?[\w'/-]+(?: [\w'/-]+){0,5}): (?P<value>[^\s,][^,]{0,59}?)(?:, .{1,80})?(?P<changed>(?!))?"
    r"(?P<now> now)?\.?"
)
_RELATIVES = PERSON_RELATIONS | ANIMAL_RELATIONS | PLURAL_RELATIONS
_NO_THINGS = words("user birthday age name email e-mail mail address phone username handle pronouns postcode extension")
_APPOINTMENT = re.compile(r" (?:appointment|check-?up)$")
_ONE_OF_AN_OWNER = re.compile(r"(?:the user's|our|my|their) (?:rent|weight|height)", re.IGNORECASE)
"""Things that name another one each time ("the rent of the second flat"), unless somebody's is meant."""
_AIM = re.compile(r".+'s (?:target|goal)(?: time| weight)?")
"""What somebody aims at, which may be in words as well ("under 2 hours"), and is one whatever its kind."""
_GENERIC = words(
    "deadline meeting meetings appointment call price cost costs number date time result score total limit size length "
    "version bill fee rate level value count temperature weight height distance event party ticket train flight bus "
    "interview exam class lesson thing one rest other answer minimum maximum budget rent speed delivery dinner lunch "
    "concert gig match game trip visit server host endpoint table branch bucket file flag url path dataset name "
    "schema queue team project module group part area side system app code work task tasks list rest"
)
"""Nouns that name another thing each time, unless more words say which."""
_RECURRING = _GENERIC | words(
    "review reviews retro retrospective standup sync session workshop practice practise training course shift payment "
    "invoice order rehearsal check-up checkup rehearsals booking reservation jab vaccination cleaning service test "
    "sprint iteration milestone holiday vacation leave talk webinar drill audit update newsletter backup reading chat "
    "lecture seminar tutorial quiz meetup race hike hackathon screening hearing scan surgery deployment day "
    "collection donation"
)
"""Nouns of what takes place again and again."""
_OF_A_HEAD = re.compile(r" (?:to|of|with|for|at|in|from|about) ")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_TIME_OF_DAY = re.compile(rf"(?<!\S){_CLOCK}(?!\S)")
_FILLER = re.compile(r"\b(?:on|in|at|for|the|of)\b|,(?!\d)")
_LEAD = re.compile(r"(?:from (?:now|today|tomorrow) on|as of (?:now|today))[, ]+", re.IGNORECASE)
_NOT_THE_FORMER = re.compile(r",? (?:now|instead(?: of .+)?|not .+|rather than .+|no longer .+)$")
_END = re.compile(
    r"\s*(?:[;!?…()]|,(?! ?\d)|\.(?=\s|$)|\s[-–—]+\s"
    r"|\b(?:because|since|so|but|and|which|until|as|when|while|if|for the)\b)"
)
_RELATIVE = re.compile(rf"(?P<on>on )?(?P<day>(?:{_WEEKDAY})|next (?:week|month))(?= at |$)", re.IGNORECASE)


def read_quantity(claim: str) -> ClaimParts | None:
    """Return the date, time or amount that a claim says of a thing, else None."""
    if match := _RELEASED.fullmatch(claim):
        return _read_release(match)
    match = _CLAIM.fullmatch(claim) or _ORDER.fullmatch(claim) or _DONE.fullmatch(claim) or _LABELLED.fullmatch(claim)
    if match is None or _AIM.fullmatch(match["subject"]) or _is_no_thing(_DETERMINER.sub("", match["subject"])):
        return None
    value = match["value"].lower()
    for kind, pattern in _KINDS:
        if pattern.fullmatch(value):
            thing = _TURNED.sub(r"\g<of> \g<what>", _DETERMINER.sub("", match["subject"]))
            thing = _PLURAL_PRICE.sub("", thing)
            return ClaimParts(
                subject=_without_kind(thing) if kind == "identifier" else thing,
                attribute=kind,
                value=_normalize(value),
                is_change=match["changed"] is not None or match["now"] is not None,
                is_owned=_ONE_OF_AN_OWNER.fullmatch(match["subject"]) is not None,
            )
    return None


def _is_no_thing(noun: str) -> bool:
    """Return True for people, animals and what people have, but not for "dentist appointment"."""
    named = set(noun.lower().split())
    return not _NO_THINGS.isdisjoint(named) or (not _RELATIVES.isdisjoint(named) and not _APPOINTMENT.search(noun))


def _read_release(match: re.Match[str]) -> ClaimParts | None:
    """Return the version of what a claim names; None for "upgraded to 3.13", which does not say of what."""
    name, _, number = match["what"].rpartition(" ")
    name = name or match["named"] or ""
    is_change = match["changed"] is not None or match["now"] is not None
    value = f"{name} {number.removeprefix('v')}".lower()
    return ClaimParts(subject=name, attribute="version", value=value, is_change=is_change) if name else None


_TURNED = re.compile(
    r"(?P<what>[Tt]imeout|[Ll]imit|[Dd]elay|[Ii]nterval|[Ff]ormat)s? (?:to|for|of) (?:the )?(?P<of>[\w-]+)$"
)
"""The thing of "timeouts to Stripe", which is the Stripe timeout."""
_PLURAL_PRICE = re.compile(r"(?:(?<=\brate)|(?<=\bprice)|(?<=\bfee))s$")
"""The ending of rates and prices, which are one: "my rates are now £52 an hour" after "my rate is £48 an hour"."""
_LETTER = re.compile(r"[^\W_]")
_KINDS_OF_PLACES = words("db database server cluster environment env instance host")


def _without_kind(thing: str) -> str:
    """Return "staging" for "staging DB", which is also called by its place alone."""
    before, _, last = thing.rpartition(" ")
    return before if before and last.lower() in _KINDS_OF_PLACES else thing


def is_alike(one: str, other: str) -> bool:
    """Return True for two identifiers with the same marks, or two versions of the same: "bill_a" and "bill_b"."""
    if " " in one or " " in other:
        return one.split()[0] == other.split()[0]
    return set(_LETTER.sub("", one)) == set(_LETTER.sub("", other))


def _normalize(value: str) -> str:
    text = " ".join(_FILLER.sub(" ", _ORDINAL.sub("", value)).split())
    return " ".join(next((m.lower() for m in MONTHS if word in _short_names(m)), word) for word in text.split())


def _short_names(month: str) -> tuple[str, str]:
    return month[:3].lower(), month[:4].lower()


def is_generic(subject: str) -> bool:
    """Return True if the noun phrase may name another thing each time that it is used."""
    return subject.lower() in _GENERIC


def may_recur(subject: str) -> bool:
    """Return True if there may be several of a thing, each on its own day: "dentist appointment", "flight to Oslo"."""
    head = _OF_A_HEAD.split(subject.lower(), maxsplit=1)[0].split()[-1:]
    return not _RECURRING.isdisjoint(head)


def is_other_time(one: str, other: str) -> bool:
    """Return True for two times of the same day: "7:40 18 december 2026" and "18 december 2026 8:10"."""
    days = [" ".join(_TIME_OF_DAY.sub("", value).split()) for value in (one, other)]
    times = [_TIME_OF_DAY.findall(value) for value in (one, other)]
    return days[0] == days[1] != "" and all(times) and times[0] != times[1]


def unit_of(amount: str) -> str:
    """Return the words after the number of an amount, and its sign of a currency or of percent."""
    match = re.match(rf"(?P<sign>[$€£]?)(?:\d[\d,.]*|{_NUMBER_WORDS})(?P<unit>.*)", amount)
    return "" if match is None else f"{match['sign']}{match['unit']}".strip()


def read_changed_quantity(said: ClauseContext) -> Iterator[Statement]:
    """Yield the date, time or amount that a thing has now instead of another, if a clause says so."""
    whole = said.clause.text
    text = _NOT_THE_FORMER.sub("", _cut_thing(_LEAD.sub("", whole)))
    match = _CLAIM.fullmatch(text)
    parts = read_quantity(text)
    if match is None or parts is None:
        return
    if not (parts.is_change or _LEAD.match(whole) or _NOT_THE_FORMER.search(whole.rstrip(".!"))):
        return
    owner = re.sub(r"^(?:[Oo]ur|[Mm]y) ", f"{said.speaker.owner} ", text)
    claim, date = _with_date(said, owner[:1].upper() + owner[1:])
    voice = Voice(speaker=said.speaker.label, is_own=True)
    subject = Subject(label=said.speaker.label, rest="", voice=voice, names=(), is_third=True)
    statement = make_statement(said, subject, attribute=parts.attribute, value=parts.value, claim="")
    # what the claim is about is not the speaker's: named owners are found by their names
    statement = replace(statement, subject=parts.subject, claim=claim, is_change=True)
    yield replace(statement, temporal=Temporal.FUTURE, valid_to=date.end) if date else statement


def _cut_thing(text: str) -> str:
    """Return the clause up to the first mark or connective that no date or amount contains."""
    match = _END.search(text)
    head = text[: match.start()] if match else text
    return "" if GAP in text[: match.end() if match else None] else head.strip(" .")


def _with_date(said: ClauseContext, claim: str) -> tuple[str, DateMention | None]:
    """Return the claim with the date to come that "15 December", a single weekday or "next week" means, and that date.

    There is none of what is weekly ("Fridays").
    """
    match = _RELATIVE.search(claim)
    if match is None:
        date = find_coming_day(claim, at=said.turn.timestamp)
        if date is None or " from " in claim:
            return claim, None
        when = date.words if claim[date.begin :].startswith("on ") else date.words.removeprefix("on ")
        return f"{claim[: date.begin]}{when}{claim[date.stop :]}", date
    if match["day"].lower() in {f"{day}s" for day in _WEEKDAYS}:
        return claim, None
    is_weekday = match["day"].lower() in _WEEKDAYS
    asked = f"on {match['day']}" if is_weekday else match["day"]
    found = find_dates(asked, at=said.turn.timestamp, tense=Tense.FUTURE)
    if len(found) != 1:
        return claim, None
    if claim[: match.start()].endswith((" to ", " until ", " for ")):
        when = re.sub("^(?:on|in) ", "", found[0].words)
    else:
        when = found[0].words if match["on"] or not is_weekday else found[0].words.removeprefix("on ")
    return f"{claim[: match.start()]}{when}{claim[match.end() :]}", found[0]
