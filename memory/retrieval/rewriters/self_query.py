"""Self-query: the times that a question mentions and whose words it asks for, read from the question itself.

Both only change the order of results. Rules find them; if the rules find nothing, a language model is asked if one is
configured, and believed only as far as the question contains the words it names.

The question is the user's, put to the assistant: "I" is the user and "you" the assistant. A request to the assistant
("can you tell me", "what do you suggest") asks for nobody's words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from memory.identity import fold_characters
from memory.providers.sentences import UNSPACED
from memory.retrieval.plans import RecallContext
from memory.retrieval.queries import Query, TimeWindow
from memory.retrieval.rewriters.readings import MAX_SPEAKERS, MAX_TIMES, SELF_QUERY, Filters, Time, read_with_model
from memory.retrieval.rewriters.times import find_windows
from memory.retrieval.rewriters.words import MAX_READ_CHARACTERS, NAMELESS, OPENERS, merge_unique

MIN_YEAR, MAX_YEARS_AHEAD = 1900, 50
"""Times that a model names outside these years make no sense."""
_LETTER = rf"[^\W{UNSPACED}]"

USER = "user"
ASSISTANT = "assistant"

_MACHINES = ("the assistant", "the agent", "the bot", "the ai", "the model")
_ROLES = {
    **dict.fromkeys(("i", "me", "my", "the user", "the user's"), USER),
    **dict.fromkeys(("you", "your", *_MACHINES, *(f"{machine}'s" for machine in _MACHINES)), ASSISTANT),
}
_BASES = (
    "say|tell|mention|suggest|recommend|advise|propose|ask|answer|reply|respond|explain|claim|promise|announce|describe"
    "|report|state|warn|complain|admit|write|call|point out|bring up|talk about|speak about|talk|speak|offer"
)
_PASTS = (
    "said|told|mentioned|suggested|recommended|advised|proposed|asked|answered|replied|responded|explained|claimed"
    "|promised|announced|described|reported|stated|warned|complained|admitted|wrote|called|pointed out|brought up"
    "|talked about|spoke about|offered"
)
_PARTICIPLES = f"{_PASTS}|written|spoken about|talked|spoken"
_WORDS = (
    "opinions?|views?|advice|suggestions?|recommendations?|ideas?|answers?|questions?|words|messages?|feedback"
    "|explanations?|proposals?|requests?|comments?|notes?|instructions?"
)
_NAME_WORD = r"(?-i:[^\W\d_a-zß-öø-ÿ][\w'’-]{0,30})"
_NAME = rf"{_NAME_WORD}(?: {_NAME_WORD}){{0,3}}"
_ROLE = r"I|you|the (?:user|assistant|agent|bot|AI|model)"
_SUBJECT = rf"(?P<who>{_ROLE}|{_NAME}(?: and {_NAME})?)"
_OWNER = rf"(?P<who>my|your|the (?:user|assistant|agent|bot|AI|model)['’]s|{_NAME}['’]s)"
_ADVERB = r"(?:(?:ever|also|already|just|last|first|once|originally|previously|actually|always|recently|not) )?"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'’-])(?:{text})(?![\w-])", re.IGNORECASE)


_PATTERNS = (
    _pattern(rf"(?:did|didn['’]t) {_SUBJECT} {_ADVERB}(?:{_BASES})"),
    _pattern(rf"(?:does) (?P<who>{_NAME}(?: and {_NAME})?) {_ADVERB}(?:{_BASES})"),
    _pattern(rf"(?:has|have|had|haven['’]t|hasn['’]t) {_SUBJECT} {_ADVERB}(?:{_PARTICIPLES})"),
    _pattern(rf"{_SUBJECT} (?:(?:has|have|had) )?{_ADVERB}(?:{_PASTS})"),
    _pattern(rf"according to (?P<who>you|me|the (?:user|assistant|agent)|{_NAME})"),
    _pattern(rf"{_OWNER} (?:(?:last|first|latest|earlier|previous|original) )?(?:{_WORDS})"),
    _pattern(rf"(?:{_WORDS}) (?:from|by|of) (?P<who>you|me|{_NAME})"),
)
# most questions ask for nobody's words
_HINT = _pattern(rf"{_BASES}|{_PARTICIPLES}|{_WORDS}|according")

MAX_WHOLE_WORD_LETTERS = 3
"""Words of time up to this length match whole words, longer ones the beginnings of words."""
# words that name times; to add a language, add its line and its name to _LINES
_ENGLISH = (
    "minute hour day days week month year decade centur morning afternoon evening night noon today tonight yesterday "
    "tomorrow now ago last past recent late earl next since until till before after during spring summer autumn fall "
    "winter season holiday christmas easter monday tuesday wednesday thursday friday saturday sunday january february "
    "march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov "
    "dec"
)
_GERMAN = (
    "stunde tag tage woche monat jahr gestern vorgestern heute morgen abend nacht mittag letzt vorig vergangen nächst "
    "seit vor bis nach früh neulich kürzlich sommer herbst weihnacht ostern montag dienstag mittwoch donnerstag "
    "freitag samstag sonntag januar februar märz mai juni juli oktober dezember"
)
_FRENCH = (
    "jour semaine mois an ans année heure hier aujourd demain matin soir nuit dernier dernière passé prochain depuis "
    "avant après hiver printemps automne noël lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars "
    "avril juin juillet août octobre décembre"
)
_SPANISH = (
    "día días semana mes meses año años hora ayer anoche hoy mañana noche tarde pasad últim próxim desde antes después "
    "verano invierno primavera otoño navidad lunes martes miércoles jueves viernes sábado domingo enero febrero marzo "
    "abril mayo junio julio agosto septiembre octubre noviembre diciembre"
)
_PORTUGUESE = "dia dias mês ano anos ontem hoje amanhã noite passad depois verão inverno outono natal"
_ITALIAN = "giorn settimana mese mesi anno anni ieri oggi domani notte scors ultim prossim prima dopo estate autunno"
_DUTCH = "dag dagen maand jaar jaren uur gisteren vandaag vorige afgelopen volgende sinds zomer lente herfst"
_RUSSIAN = "день дня дней недел месяц год года году лет вчера сегодня завтра прошл зима зимо лето весн осен час часа"
_LINES = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _DUTCH, _RUSSIAN)
_TIME_WORDS = sorted(" ".join(_LINES).split())
_WHOLE = "|".join(word for word in _TIME_WORDS if len(word) <= MAX_WHOLE_WORD_LETTERS)
_BEGINNINGS = "|".join(word for word in _TIME_WORDS if len(word) > MAX_WHOLE_WORD_LETTERS)
# for scripts without spaces between words or before endings
_SIGNS = "[年月日週周天昨今明去春夏秋冬時时夜晚朝년월일주]|어제|오늘|내일|지난"
_TIME_WORD = re.compile(rf"[0-9]|{_SIGNS}|(?<!\w)(?:(?:{_WHOLE})(?!\w)|{_BEGINNINGS})", re.IGNORECASE)


def read_filters(query: Query, context: RecallContext) -> Query:
    """Add the time windows and speakers of the text. Return the same query if there are none."""
    text = query.text[:MAX_READ_CHARACTERS]
    found = add_filters(query, find_windows(text, now=context.now), find_asked_speakers(text))
    if found is not query or context.model is None or not text.strip():
        return found
    answer = read_with_model(query, context, SELF_QUERY, Filters, model=context.model, fallback=query)
    speakers = validate_speakers(answer.speakers[:MAX_SPEAKERS], text)
    return add_filters(query, validate_windows(answer.times, text, now=context.now), list(speakers))


def add_filters(query: Query, windows: Sequence[TimeWindow], speakers: Sequence[str]) -> Query:
    found = replace(
        query,
        windows=merge_unique(query.windows, windows, limit=MAX_TIMES),
        speakers=merge_unique(query.speakers, speakers, limit=MAX_SPEAKERS),
    )
    return query if found == query else found


def validate_windows(times: Sequence[Time], text: str, *, now: datetime) -> list[TimeWindow]:
    """Return the times named by a model whose words occur in the text, may name a time, and whose days are valid."""
    named = [each for each in times[:MAX_TIMES] if occurs_in(each.words, text) and may_name_time(each.words)]
    windows = [window_between_days(each, now) for each in named]
    return [window for window in windows if window is not None]


def window_between_days(named: Time, now: datetime) -> TimeWindow | None:
    """Return None for days that do not exist, are in the wrong order, or are far from any memory."""
    try:
        first, last = (None if day is None else date.fromisoformat(day) for day in (named.first_day, named.last_day))
    except ValueError:
        return None
    days = [day for day in (first, last) if day is not None]
    if not days or days != sorted(days):
        return None
    if not all(MIN_YEAR <= day.year <= now.year + MAX_YEARS_AHEAD for day in days):
        return None
    return TimeWindow(
        since=None if first is None else midnight(first), until=None if last is None else midnight(last, days=1)
    )


def midnight(day: date, *, days: int = 0) -> datetime:
    return datetime.combine(day + timedelta(days=days), time.min, tzinfo=UTC)


def may_name_time(words: str) -> bool:
    """Return True if the words contain a number or a word of time. In languages not listed only numbers count."""
    return _TIME_WORD.search(words) is not None


def validate_speakers(speakers: Sequence[str], text: str) -> Iterator[str]:
    """Yield roles, and names that occur in the text."""
    for speaker in speakers:
        name = " ".join(speaker.split())
        if name.lower() in (USER, ASSISTANT):
            yield name.lower()
        elif occurs_in(name, text):
            yield name


def occurs_in(words: str, text: str) -> bool:
    """Return True if the text has these words, in any case; in scripts without spaces also as parts of longer ones."""
    bare = re.escape(" ".join(fold_characters(words).split()))
    folded = " ".join(fold_characters(text).split())
    return bool(bare) and re.search(rf"(?<!{_LETTER}){bare}(?!{_LETTER})", folded) is not None


def find_asked_speakers(text: str) -> list[str]:
    """Return the speakers whose words the text asks for, in its order: names as written, or the roles."""
    if not _HINT.search(text):
        return []
    found = [(match.start("who"), match["who"]) for pattern in _PATTERNS for match in pattern.finditer(text)]
    speakers = [speaker for _, who in sorted(found) for speaker in parse_speaker(who)]
    return list(dict.fromkeys(speakers))[:MAX_SPEAKERS]


def parse_speaker(who: str) -> Iterator[str]:
    """Yield the role or the names that a subject stands for; nothing for a word that is neither."""
    folded = who.lower().replace("’", "'")
    if role := _ROLES.get(folded):
        yield role
        return
    for name in who.split(" and "):
        words = name.removesuffix("'s").removesuffix("’s").split()
        # the capital of "Tell Ana" belongs to the sentence
        while words and words[0].lower() in NAMELESS | OPENERS:
            words = words[1:]
        if words and not any(word.lower() in NAMELESS for word in words):
            yield " ".join(words)
