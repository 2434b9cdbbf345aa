"""Claims about people in common forms: abilities, conditions, routines, refusals, appointments, work and school.

The words after the subject of a clause are read by `personal_forms`, and as routines: an activity with words that say
how often it happens ("I ring my brother on Sundays").
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from memory.dates import Bound, Tense, find_dates
from memory.extraction.rules.names import PERSON
from memory.extraction.rules.personal_forms import FORMS, RECURRING, PersonalForm
from memory.extraction.rules.phrases import is_vague, possessive
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.statements import Statement, attitude_to
from memory.extraction.rules.subjects import Subject
from memory.extraction.rules.values import Value, read_value, with_last_day
from memory.extraction.rules.words import ADVERBS, words
from memory.models.facts import Temporal
from memory.verbs import VERBS, Verb

MAX_VALUE_WORDS = 16
_LEADING = re.compile(rf"(?P<when>{RECURRING}),? (?=(?:I|[Ww]e|[Mm]y|[Ss]he|[Hh]e) )", re.IGNORECASE)
_RECURS = re.compile(rf"\b{RECURRING}(?![\w-])", re.IGNORECASE)
_ROUTINES = words(
    "go ring call phone walk run swim cycle bike drive play meet visit cook bake clean work volunteer teach coach "
    "train practise practice rehearse sing dance babysit sleep eat drink lift stretch meditate pray write paint "
    "draw garden commute travel fly take attend help look pick drop have feed jog hike row climb ski surf fish shop "
    "study stay watch listen host mind skype video-call"
)
_KEPT = words("usually always normally mostly only mainly typically generally regularly")
_NO_ROUTINE = re.compile(
    r"(?:have to|have (?:an? |the )?(?:same|bad|good|hard|problem|been)|go (?:through|on|back and|over"
    r"|to (?:bed|sleep) at)|look"
    r" (?:like|forward|at|for|good|great)|take (?:care|time|a while|forever)|help (?:with|me)|work (?:out fine"
    r"|well|fine))\b"
)
_BASES = {
    **{verb.present: verb.base for verb in VERBS.values()},
    **{Verb(base, "", "", "").present: base for base in (*_ROUTINES, "ring", "suffer", "smoke", "refuse", "save", "pay",
       "earn", "owe", "spend", "invest")},
    "is": "be", "am": "be", "are": "be", "has": "have", "does": "do",
}  # fmt: skip
_BEYOND = re.compile(r",? (?:even|especially|in particular|ever again|ever)\b")
_AND_I = re.compile(rf"{PERSON},? and I\b")
"""The subject of "Google and I broke up", which has not been restated as a parting."""
_BEHIND = re.compile(r" (?:at the moment|right now|too|as well)$")


def with_time_behind(text: str) -> str:
    """Return a clause with words for how often behind it: "On Sundays I ring Tom" is "I ring Tom on Sundays"."""
    match = _LEADING.match(text)
    if match is None:
        return text
    when = match["when"][:1].lower() + match["when"][1:]
    return f"{text[match.end() :].rstrip(' .!')} {when}"


def read_personal(said: ClauseContext, subject: Subject, text: str) -> Statement | None:
    """Return the statement that the words after a subject make in one of the forms, or None."""
    how, rest = _with_base(text, subject)
    how = "" if rest.startswith(("be ", "can ", "do ")) else how
    for form in FORMS:
        if form.attribute == "died" and not subject.label.startswith(said.speaker.owner):
            # the death of somebody by name is a statement of `relations`
            continue
        if form.attribute == "event:break up" and _AND_I.match(said.clause.text):
            continue
        match = form.pattern.fullmatch(f"{how}{rest}" if how == "only " else rest)
        if match and (statement := _by_form(said, subject, form, match, how if form.attribute == "bedtime" else "")):
            return statement
    return _routine(said, subject, how, rest)


def _with_base(text: str, subject: Subject) -> tuple[str, str]:
    """Return the adverb that says how usual it is, if any, and the words from the verb on, which is a base form."""
    tokens, how = text.split(), ""
    while tokens and tokens[0].lower() in ADVERBS | _KEPT:
        how = f"{tokens[0].lower()} " if tokens[0].lower() in _KEPT else how
        tokens = tokens[1:]
    if not tokens:
        return how, ""
    first = tokens[0].lower()
    if subject.is_third or first in ("am", "are"):
        tokens[0] = _BASES.get(first, "" if first in _BASES.values() else first)
    return how, " ".join(tokens).replace("have got ", "have ", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The verbs of a claim that agree with its subject."""

    is_plural: bool

    def of(self, verb: str) -> str:
        first, _, rest = verb.partition(" ")
        known = VERBS.get(first) or Verb(first, "", "", "")
        return verb if self.is_plural else f"{known.present} {rest}".strip()

    def all(self, groups: Mapping[str, str | None]) -> dict[str, str]:
        found = {name: value or "" for name, value in groups.items()}
        agreeing = {"does": "do", "is": "are", "has": "have", "takes": "take", "earns": "earn"}
        return {
            **found,
            **{one: many if self.is_plural else one for one, many in agreeing.items()},
            "verbs": self.of(found.get("verb", "")),
            "parted": "split" if found.get("verb", "") == "split" else "broke",
            "died": "passed away" if found.get("verb", "").startswith("pass") else "died",
        }


def _by_form(
    said: ClauseContext, subject: Subject, form: PersonalForm, match: re.Match[str], how: str
) -> Statement | None:
    groups, value = match.groupdict(), Value(words="")
    if (groups.get("rest") or "").strip():
        read = _value(said, subject, _BEYOND.split(groups["rest"], maxsplit=1)[0].strip(" ,"), is_past=form.is_past)
        if read is None or is_vague(read.words) or len(read.words.split()) > MAX_VALUE_WORDS:
            return None
        # "two days ago" is read as a day without its preposition
        is_bare_day = form.is_past and read.words[0].isdecimal() and read.date is not None
        value = replace(read, words=f"on {read.words}") if is_bare_day else read
    if form.is_lasting and value.date is not None:
        return None
    if form.is_plan and value.date is None:
        words_, last = with_last_day(value.words, at=said.turn.timestamp)
        value = replace(value, words=words_, date=last)
    is_ahead = value.date is not None and value.date.start > said.turn.timestamp
    if (form.is_plan or form.is_past) and is_ahead != form.is_plan and (form.is_plan or value.date is not None):
        return None
    filled = {**_Words(is_plural=subject.is_plural).all(groups), "rest": value.words}
    attribute = attitude_to(value.words) if form.liking else form.attribute.format(**filled).casefold()
    claim = " ".join(f"{how}{form.claim.format(**filled)}".split())
    statement = make_statement(
        said, subject, attribute=attribute, value=form.value or value.words or claim, claim=claim
    )
    if form.liking:
        return replace(statement, value=form.liking, topic=value.words, liking=form.liking)
    return _with_times(said, statement, form, value)


def _with_times(said: ClauseContext, statement: Statement, form: PersonalForm, value: Value) -> Statement:
    date = value.date
    statement = replace(statement, when=date.words if date and statement.claim.endswith(f" {date.words}") else "")
    if form.is_plan:
        return replace(statement, temporal=Temporal.FUTURE, valid_to=date.end if date else None)
    if form.is_past:
        began = date.start if date and date.bound is Bound.WITHIN else None
        return replace(statement, temporal=Temporal.PAST, valid_from=began)
    is_until = date is not None and date.bound is Bound.UNTIL and date.end > said.turn.timestamp
    return replace(statement, valid_from=_beginning(said, value), valid_to=date.end if date and is_until else None)


def _beginning(said: ClauseContext, value: Value) -> datetime | None:
    """Return the time since when it is true, as in "for four years", "since 2019"."""
    dates = find_dates(value.said or value.words, at=said.turn.timestamp)
    began = [date.start for date in dates if date.bound in (Bound.SINCE, Bound.LASTING)]
    return began[0] if len(began) == 1 else None


def _value(said: ClauseContext, subject: Subject, text: str, *, is_past: bool = False) -> Value | None:
    tense = Tense.PAST if is_past else Tense.FUTURE
    value = read_value(text, at=said.turn.timestamp, speaker=said.speaker, tense=tense)
    if value is None or not subject.is_own:
        return value
    return replace(value, words=value.words.replace(possessive(said.speaker.label), "their"))


def _routine(said: ClauseContext, subject: Subject, how: str, rest: str) -> Statement | None:
    """Read "I go to the bowls club on Thursdays", "she walks the dog every morning"."""
    verb, _, behind = rest.partition(" ")
    if verb not in _ROUTINES or not behind or _NO_ROUTINE.match(rest) or not _RECURS.search(behind):
        return None
    value = _value(said, subject, _BEHIND.sub("", behind.rstrip(" .!")))
    if value is None or not _RECURS.search(value.words) or value.date is not None:
        return None
    words_ = f"{how}{_Words(is_plural=subject.is_plural).of(verb)} {value.words}"
    return make_statement(said, subject, attribute=f"routine:{verb}", value=value.words, claim=words_)
