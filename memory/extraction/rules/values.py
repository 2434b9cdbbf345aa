"""Values of claims about things: the words after a verb, cut to a phrase that stands on its own."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.dates import MONTHS, WEEKDAYS, Bound, DateMention, DateUnit, Tense, find_dates
from memory.extraction.rules.arrangements import find_dates_behind
from memory.extraction.rules.phrases import GAP, possessive
from memory.extraction.rules.specifics import capitalize_dates, is_specific
from memory.extraction.rules.subjects import Speaker

MAX_VALUE_WORDS = 16
# a pattern of the names of days that come back every year
YEARLY_DAY = r"(?:birthday|(?:wedding |work )?anniversary|name day|saint's day)"

_DEICTIC = re.compile(
    r"\b(?:it|its|this|that|these|those|they|them|their|theirs|he|she|him|her|his|hers|you|your|yours|yourself|here"
    r"|there|something|someone|somebody|somewhere|anything|anyone|anybody|everything|everyone|everybody|stuff|things?"
    r"|ones?|such|same|another|others?|else|whatever|whichever|me|us|i|we|myself|ourselves|mine|ours|what|who|why|how"
    r"|above$|below$|latter|former|aforementioned|so far|yet|etc|tho|lol|y'all|ya|u|ur|dont|thats|hes|shes|theyre)\b",
    re.IGNORECASE,
)
_ONE_OF_A_NUMBER = re.compile(
    r"\bone (?!(?:of|is|was|that|which|who|things?|more|day|every|each|per|by|with|for|and|or|in|on|at|to)\b)(?=\w)"
)
_RELATIVE_TIME = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|ago|(?:this|next|last) (?:\w+ )?(?:week|weekend|month|year|quarter|sprint"
    r"|morning|afternoon|evening|night|time|one|release|spring|summer|autumn|fall|winter|\w+day)|right now|a while"
    r"|just now|later|soon|since (?:\w+day|then|yesterday|this)|at the moment|so long)\b",
    re.IGNORECASE,
)
_END = re.compile(
    r"\s*(?:[;!?…()\[\]{}—–\ufffc<>|]|:(?=\s|$)|\.{2,}|(?<!\bSt)(?<!\bDr)(?<!\bMt)(?<!\bMr)(?<!\bMrs)(?<!\bMs)\.(?=\s"
    r"|$)|\s-+\s|--\s|[\U0001f000-\U0001faff\u2600-\u27bf])"
)
_CONNECTIVE = re.compile(
    r",?\s+(?:because|bc|cause|cuz|since(?! (?:\d|January|February|March|April|May|June|July|August|September|October"
    r"|November|December|\w+day|version|v\d))|so|but|although|though|while|whereas|which|who|whom|whose|that|where"
    r"|when|whenever|otherwise|as (?:I|we|it|they|he|she|you|soon|long|far|a result|well|per|discussed|agreed|usual"
    r"|always|before)|hence|meaning|thanks to|due to|in case|like (?:\w+)|til|til that|and (?:then|so|also|not"
    r"|now|I|we|it|they|he|she|you|that|this|there|nobody|everybody|please|pls|don't|never|always|the rest|"
    r"(?:the |our |my )?(?:[\w./-]+ ){0,3}(?:is|are|was|were|has|have|runs?|uses?|lives?|goes|go|stays?|takes?|does"
    r"|owns?|handles?|will|must|should|can|needs?|comes?|gets?|starts?|ends?|sits?|points?|happens?|costs?)))(?=\s)",
)
_DAYS = rf"(?:{'|'.join(WEEKDAYS)})s?|weekends|(?:public |school |bank )?holidays"
_UNLESS = re.compile(
    rf"\b(?:unless|except(?! (?:(?:on|for|in) )?(?:{_DAYS})\b)|apart from|until further|if|other than|depending|or so"
    r"|or something)\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"\bor\b|[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}", re.IGNORECASE)
_NOT_ONE = re.compile(r",? (?:and )?(?:not|instead of|rather than|no longer|never) \S")
_NOT_THERE = re.compile(
    r", (?:and )?(?:not|never|only) (?:in|on|at|to|from|with|by|for|via|through|into) \w[\w-]*(?: [\w-]+){0,3}$"
    r"|, not (?!just\b|even\b|really\b|only\b)[a-z]{2,}s(?=,|$)"
)
_AND_WHEN = re.compile(
    rf", (?:on )?(?:{'|'.join(WEEKDAYS)})s(?:,? (?:at )?\d{{1,2}}(?:[:.]\d\d)?(?: ?[ap]m)?)?(?=,|$)", re.IGNORECASE
)
"""The weekday and hour of what was said to be weekly: "weekly, Mondays 5 am"."""
_LAST_OF_LIST = re.compile(r"(?:and|or|&) ", re.IGNORECASE)
_TRAILING = re.compile(
    r"[\s,]+(?:now|btw|by the way|too|as well|please|pls|plz|currently|already|again|anyway|then|instead|though"
    r"|actually"
    r"|of course|after all|for now|at the moment|right now|at least|these days|nowadays|fyi|ok|okay|right"
    r"|everywhere else|thanks|thx|ty|and|or|to|the|a|an|with|for|of|in|on|at|by|from|is|are|my|our|just|really|all"
    r"|still|tbh|imo|i think|sorry|haha|from here|folks|guys|mate|man|bro|also|not)$",
    re.IGNORECASE,
)
_APPROVAL = re.compile(
    r"\b(?:my|our|your|his|her|their|the|an|[\w-]+'s?)(?: (?:explicit|written|final|express|prior|verbal|full))?"
    r" ok(?:ay)?$",
    re.IGNORECASE,
)
"""An end that is somebody's approval, and no word that asks for it."""
_BY_WEEKDAY = re.compile(
    rf"\b(?P<lead>due|by|until|till) (?:on )?(?P<day>{'|'.join(WEEKDAYS)})(?![\w-]|,? \d)", re.IGNORECASE
)
_MY = re.compile(r"\b(?:my|our)\b", re.IGNORECASE)
_SEVERAL_DAYS = re.compile(
    rf"\b(?:from |between )?(?:the )?(?P<first>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"(?: (?:of )?(?P<first_month>{'|'.join(MONTHS)}))? ?(?:-|–|to|until|till|and) ?(?:the )?"
    rf"(?P<last>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month>{'|'.join(MONTHS)})\b(?: (?P<year>\d{{4}}))?"
)
_YEARLY = re.compile(r"\b(?:every|each|always|usually|normally|yearly|annual(?:ly)?|seasons?|terms?|rates?|of \d{4})\b")
_LONGEST_STAY = timedelta(days=60)
_JUST_OVER = timedelta(days=31)
_BY_BOUND = {Bound.SINCE: "since", Bound.UNTIL: "until", Bound.BEFORE: "before", Bound.AFTER: "after"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The value of a claim: its words, and the date in it, if there is exactly one."""

    words: str
    said: str = ""
    """The words before "my" became somebody's."""
    date: DateMention | None = None

    @property
    def is_specific(self) -> bool:
        return self.date is not None or is_specific(self.said or self.words)


def read_value(
    words: str, *, at: datetime, speaker: Speaker, tense: Tense | None = Tense.FUTURE, verb: str = ""
) -> Value | None:
    """Return the value that these words begin with, or None if it is not understood without the conversation.

    The words are behind the `verb`, which may be "booked" and the like (`arrangements`).

    Relative dates ("next Friday") become absolute ones, and "my" the possessive of the speaker. "The 20th" stays as it
    is: of which month, people have often said before.
    """
    text = _cut(" ".join(words.split()))
    if not text or GAP in text or _UNLESS.search(text) or _REFUSED.search(text):
        return None
    text, date = _resolve_dates(text, at, Tense.PAST if tense and _FROM_DAY.fullmatch(text) else tense, verb)
    bare = _ONE_OF_A_NUMBER.sub("1 ", text)
    if not text or _RELATIVE_TIME.search(text) or _DEICTIC.search(bare) or len(text.split()) > MAX_VALUE_WORDS:
        return None
    return Value(words=_MY.sub(possessive(speaker.label), text), said=text, date=date)


def read_yearly_day(words: str, *, at: datetime) -> str:
    """Return the day of a birthday and the like, as "3 May"; empty if the words do not begin with exactly one day.

    It comes back every year: it has the year that was said, if any, and none from the time of the turn.
    """
    dates = find_dates(words, at=at, tense=Tense.FUTURE)
    if len(dates) != 1 or dates[0].begin or dates[0].unit is not DateUnit.DAY:
        return ""
    year = str(dates[0].start.year)
    day = f"{dates[0].start.day} {MONTHS[dates[0].start.month - 1]}"
    return f"{day} {year}" if year in words[: dates[0].stop] else day


def with_last_day(words: str, *, at: datetime) -> tuple[str, DateMention | None]:
    """Return words with several days to come ("5-9 December", "from 5 to 9 December") with their year, and the last."""
    match = _SEVERAL_DAYS.search(words)
    said = f"on {match['last']} {match['month']} {match['year'] or ''}" if match else ""
    dates = find_dates(said, at=at, tense=Tense.FUTURE)
    if match is None or len(dates) != 1 or dates[0].end <= at:
        return words, None
    year = "" if match["year"] else f" {dates[0].start.year}"
    return f"{words[: match.end()]}{year}{words[match.end() :]}", dates[0]


def with_days_of_stay(claim: str, *, at: datetime) -> tuple[str, DateMention | None]:
    """Return a claim about a state of some days with their year, and the last: "is on leave from 10 to 12 November".

    What comes back every year is none, and neither are days that may just be over.
    """
    whole, last = with_last_day(claim, at=at)
    match = _SEVERAL_DAYS.search(claim)
    if last is None or match is None or _YEARLY.search(claim) or at - last.end + timedelta(days=365) < _JUST_OVER:
        return claim, None
    first = find_dates(f"on {match['first']} {match['first_month'] or match['month']}", at=last.end, tense=Tense.PAST)
    is_stay = len(first) == 1 and last.end - first[0].start < _LONGEST_STAY
    return (whole, last) if is_stay else (claim, None)


def _next_weekday(match: re.Match[str]) -> str:
    """Return a weekday with the words that say which one it is."""
    return f"due on {match['day']}" if match["lead"].lower() == "due" else f"{match['lead']} next {match['day']}"


def _cut(text: str) -> str:
    """Return the words up to the end of their phrase; empty if it is incomplete."""
    text = _BY_WEEKDAY.sub(_next_weekday, capitalize_dates(text))
    if match := _END.search(text):
        if GAP in match[0]:
            return ""
        text = text[: match.start()]
    if match := _CONNECTIVE.search(f"{text} "):
        text = text[: match.start()]
    return trim_value(_cut_at_comma(text))


def _cut_at_comma(text: str) -> str:
    """Return the words before a comma that does not continue a list or a contrast; empty if it may do so."""
    first = re.search(r",(?=\s)", text)
    if first is None or _is_list(text):
        return text
    behind = text[first.start() :]
    if match := _NOT_THERE.match(behind):
        return text[: first.start() + match.end()]
    if match := _NOT_ONE.match(behind):
        second = behind.find(",", match.end())
        if not is_specific(behind[1:] if second < 0 else behind[1:second]):
            return text[: first.start()]
        return text if second < 0 else text[: first.start() + second]
    if match := _AND_WHEN.match(behind):
        return text[: first.start() + match.end()]
    following = behind[1:].split()
    if len(following) <= 2 and following and is_specific(" ".join(following)):
        return text
    return text[: first.start()]


def _is_list(text: str) -> bool:
    """Return True for short items with commas between them, and "and" before the last one."""
    items = text.split(", ")
    last = items[-1] if _LAST_OF_LIST.match(items[-1]) else items[-1].partition(" and ")[2]
    return bool(last) and all(len(item.split()) <= 4 + (item is items[-1]) * 4 for item in items[1:])


def trim_value(text: str) -> str:
    """Return the words without adverbs and marks at their end."""
    text = text.strip(" ,'.-")
    while (match := _TRAILING.search(text)) and not _APPROVAL.search(text):
        text = text[: match.start()].rstrip(" ,")
    return text


def _resolve_dates(text: str, at: datetime, tense: Tense | None, verb: str) -> tuple[str, DateMention | None]:
    """Return the text with absolute dates in place of relative ones, and its only date."""
    if _RANGE.search(text) or _FROM_MONTHS.search(text) or (tense is Tense.PAST and RANGE_OF_MONTHS.search(text)):
        return text, None
    found = find_dates_behind(verb, text, at=at, tense=tense)
    dates = [date for date in found if date.bound is not Bound.LASTING]
    pieces, end = [], 0
    for date in dates:
        said, before = _date_words(text, date, at), text[end : date.begin]
        pieces += [before, said.removeprefix("on ") if _BEFORE_DATE.search(before) else said]
        end = date.stop
    whole = _DAY_TWICE.sub(r"\g<date>", " ".join("".join((*pieces, text[end:])).split()))
    return whole, dates[0] if len(dates) == 1 else None


_FROM_DAY = re.compile(r"from (?:the )?(?:\d{1,2}(?:st|nd|rd|th)? (?:of )?[A-Za-z]+|[A-Za-z]+ \d{1,2}(?:st|nd|rd|th)?)")
"""What something is of a day that is over: "the latest backup is from 9 April"."""
_BEFORE_DATE = re.compile(r"\b(?:to|from|until|till|by|for|before|after|since|between|of|and) $")
_RANGE = re.compile(r"\b(?:from|between) (?:the )?\d{1,2}(?:st|nd|rd|th)? (?:to|until|till|and) ")
RANGE_OF_MONTHS = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{'|'.join(MONTHS)}) ?(?:-|–|to|until|till) "
    rf"?(?:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?:{'|'.join(MONTHS)})\b"
)
"""Days of which the first may be of another year than the last: "24 December to 2 January"."""
_FROM_MONTHS = re.compile(rf"\b(?:from|between) (?:the )?{RANGE_OF_MONTHS.pattern}")
_DAY_TWICE = re.compile(r"(?P<date>on (?P<day>\d+) \w+ \d{4}) the (?P=day)(?:st|nd|rd|th)")


_TO_ANOTHER = re.compile(r"\s*(?:-|–|to|until|till|through)\b")
"""The words between two days of which something holds from the one to the other."""


def _date_words(text: str, date: DateMention, at: datetime) -> str:
    said, words = text[date.begin : date.stop], date.words
    bound = "by" if said.lower().startswith("by ") else _BY_BOUND.get(date.bound, "")
    if said.lower().startswith("from ") and (date.start > at or _TO_ANOTHER.match(text, date.stop)):
        bound = "from"
    if bound:
        return f"{bound} {words.partition(' ')[2]}"
    begins_with_day = said[:1].isdecimal() or said.split()[0].lower().rstrip(",.") not in (
        "on", "in", "at", "over", "back", "today", "tomorrow", "yesterday", "next", "this", "last", "tonight", "the",
    )  # fmt: skip
    return words.partition(" ")[2] if begins_with_day and words.startswith("on ") else words
