"""Claims: the meaning of a clause about its subject, in one wording for everybody who says it.

A clause is read from its subject on: the verb decides which rule of the grammar may apply, its form when it is true,
and the phrase behind it what of. A clause that no rule reads to the end of its phrase says nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memory.dates import Bound, DateMention, Tense, find_dates
from memory.extraction.rules import events, states
from memory.extraction.rules.copulas import copula
from memory.extraction.rules.grammar import Rule, by_verb
from memory.extraction.rules.names import NAME, bare_name, is_name
from memory.extraction.rules.phrases import Voice, cut, phrase, trimmed
from memory.extraction.rules.preferences import liking_of
from memory.extraction.rules.readings import TEMPORAL, Said, made
from memory.extraction.rules.relations import owned
from memory.extraction.rules.statements import LIKINGS, NamedThing, Statement, attitude_to
from memory.extraction.rules.subjects import Subject, pronoun_of, subject_of
from memory.extraction.rules.verbs import Form, Predicate, is_past, predicate_of
from memory.models.facts import Temporal

RULES = by_verb((*states.STATES, *states.HABITS, *events.EVENTS, *states.ONGOING, *events.MORE))
_HAPPENED = frozenset({Form.PAST, Form.PERFECT})
_JUST = re.compile(r"(?:(?:[Jj]ust|[Oo]nly|[Bb]ack) )?")
_AND_THEN = re.compile(r",? (?:and|then) (?:(?:even|also|then|just|finally) )?(?P<verb>[a-z]+)\b")
_PLANNED = frozenset(["go", "visit", "travel", "fly", "move", "have", "host", "attend", "perform"])
"""What somebody "is going" to do, they do not do yet."""
_WORK = re.compile(
    rf"\b(?:book|novel|poem|story|song|album|symphony|play|film|movie|documentary|game|paper|article|painting|musical)"
    rf" (?:called|titled|named|entitled) (?P<name>{NAME})$"
)
_BEYOND_A_PLACE = re.compile(r" (?:with|near|by|as|for|from|on|since|to|at)\b")
_BEYOND_A_NAME = re.compile(r" (?:with|near|by|as|for|from|on|since|to|in)\b")
_LATELY = re.compile(r"\b(?:just|recently|finally|now)\b")
_FIRST_MARK = 0xE000
_MARKS = re.compile("[\ue000-\uf8ff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The times at which a claim holds, and how it says so."""

    words: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    temporal: str


def statements_of(said: Said) -> Iterator[Statement]:
    """Return what the clause says: one statement or none, or two if it names somebody on the way."""
    said = _dated_before(said)
    yield from owned(said)
    subject = subject_of(said.clause.text, said.speaker, said.names, spoken_of=said.spoken_of)
    if subject is None:
        return
    for words in _done(subject.rest):
        predicate = predicate_of(words, is_third=subject.is_third)
        statement = _statement(said, subject, predicate) if predicate else None
        if statement is not None:
            yield statement


def spoken_of(said: Said, statements: Sequence[Statement]) -> list[Subject]:
    """Return the people whom a clause is about, or names as somebody's own; animals, too."""
    subject = subject_of(_dated_before(said).clause.text, said.speaker, said.names, spoken_of=said.spoken_of)
    people = [subject] if subject and not subject.is_own and subject.is_third else []
    for statement in statements:
        if statement.attribute.startswith(("relation:", "only:")):
            people.append(_person(said, statement))
    return list({person.label: person for person in people}.values())


def _person(said: Said, statement: Statement) -> Subject:
    voice = Voice(speaker=said.speaker.label, is_own=False)
    names = tuple(named for named in statement.names if named.name == statement.value)
    pronoun = pronoun_of(statement.attribute.rpartition(":")[2].rpartition(" ")[2])
    return Subject(label=statement.value, rest="", voice=voice, names=names, is_third=True, pronoun=pronoun)


def _dated_before(said: Said) -> Said:
    """Return the clause without the time that it begins with, which becomes its lead: "Last week I …"."""
    text = said.clause.text
    start = _JUST.match(text).end()  # type: ignore[union-attr]
    for dated in find_dates(text[start : start + 60], at=said.turn.timestamp, tense=Tense.PAST)[:1]:
        if dated.begin == 0:
            clause = replace(said.clause, text=text[start + dated.stop :].lstrip(" ,"), lead=text[start:][: dated.stop])
            return replace(said, clause=clause)
    return said


def _done(words: str) -> Iterator[str]:
    """Return the predicates that "and" joins: "visited a museum and bought a print"."""
    start = 0
    for match in _AND_THEN.finditer(words):
        if is_past(match["verb"]) and is_past(words[start:].split(maxsplit=1)[0]):
            yield words[start : match.start()]
            start = match.start("verb")
    yield words[start:]


def _statement(said: Said, subject: Subject, predicate: Predicate) -> Statement | None:
    if not predicate.verb:
        return copula(said, subject, predicate)
    if predicate.verb in LIKINGS or predicate.verb == "prefer":
        return _liking(said, subject, predicate)
    return _by_rules(said, subject, predicate)


def _liking(said: Said, subject: Subject, predicate: Predicate) -> Statement | None:
    text, _ = _marked(said, predicate)
    text = _MARKS.sub("", text)
    found = liking_of(predicate, text, subject.voice)
    if found is None:
        return None
    topic, how, verb = found
    words = predicate.words(is_plural=subject.is_plural)
    if verb:
        words = "dislike" if subject.is_plural else verb
    statement = made(
        said, subject, attribute=attitude_to(topic.partition(" over ")[0]), value=how, claim=f"{words} {topic}"
    )
    temporal = TEMPORAL.get(predicate.form, Temporal.CURRENT)
    liking = how if temporal == Temporal.CURRENT else ""
    return replace(statement, temporal=temporal, topic=topic.partition(" over ")[0], liking=liking)


def _by_rules(said: Said, subject: Subject, predicate: Predicate) -> Statement | None:
    """Read a clause by the first rule that fits what follows the verb, dates taken out."""
    text, dates = _marked(said, predicate)
    text = cut(text)
    words = trimmed(_MARKS.sub(" ", text))
    dates = [dates[ord(mark) - _FIRST_MARK] for mark in _MARKS.findall(text)]
    for rule in RULES.get(predicate.verb, ()):
        match = rule.needs.match(words) if predicate.form in rule.forms else None
        if match and not (rule.refuses and rule.refuses.match(words)):
            return _by_rule(said, subject, predicate, Fit(rule=rule, match=match, words=words, dates=dates))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A rule, how it fits the words behind a verb, and the dates that stood among them."""

    rule: Rule
    match: re.Match[str]
    words: str
    dates: list[DateMention]

    @property
    def named(self) -> str:
        """Return what follows the preposition of the rule; nothing if it has none."""
        has_preposition = "prep" in self.rule.needs.groupindex and self.match["prep"] is not None
        named = self.words[self.match.end("prep") :].strip() if has_preposition else ""
        beyond = _BEYOND_A_PLACE if self.rule.type == "place" else _BEYOND_A_NAME
        return beyond.split(named, maxsplit=1)[0]


def _by_rule(said: Said, subject: Subject, predicate: Predicate, fit: Fit) -> Statement | None:
    rule, times = fit.rule, times_of(predicate.form, fit.rule, fit.dates, said)
    words = phrase(fit.words, subject.voice)
    if times is None or bool(words) != bool(fit.words):
        return None
    form = Form.PRESENT if times.temporal == Temporal.CURRENT and rule.is_state else predicate.form
    verb = replace(predicate, form=form).words(is_plural=subject.is_plural)
    statement = made(
        said,
        subject,
        attribute=rule.attribute if rule.attribute != "event" else f"event:{rule.verb}",
        value=phrase(fit.named, subject.voice) or words,
        claim=" ".join(filter(None, (verb, words, times.words))),
    )
    statement = replace(
        statement,
        temporal=times.temporal,
        valid_from=times.valid_from,
        valid_to=times.valid_to,
        when=times.words,
        is_recent=_is_recent(said, times.valid_from),
    )
    if match := _WORK.search(fit.words):
        return _with_work(statement, subject, match)
    return _with_name(statement, subject, rule, fit.named) if fit.named else statement


def _is_recent(said: Said, valid_from: datetime | None) -> bool:
    if valid_from is None:
        return _LATELY.search(said.clause.text) is not None
    return said.turn.timestamp - valid_from < timedelta(days=366)


def _with_work(statement: Statement, subject: Subject, match: re.Match[str]) -> Statement:
    """Return the statement with the book, song or the like that it names, if its subject made it."""
    makes = statement.attribute in ("created", "event:write") and statement.temporal == Temporal.PAST
    name = bare_name(match["name"])
    if not makes or not is_name(name):
        return statement
    named = (*statement.names, NamedThing(name=name, type="work"))
    person = next((each.name for each in subject.names if each.name == subject.label), "")
    return replace(statement, names=named, relationship=(name, person, "CREATED_BY") if person else None)


def _with_name(statement: Statement, subject: Subject, rule: Rule, value: str) -> Statement:
    """Return the statement with the place or organisation that it names, if any, and its relation to the subject."""
    name = bare_name(value.removeprefix("the "))
    if not rule.type or not is_name(name) or name != value.removeprefix("the "):
        return statement
    named = (*statement.names, NamedThing(name=name, type=rule.type))
    person = next((each.name for each in subject.names if each.name == subject.label), "")
    if person and rule.relationship == "CREATED_BY" and statement.temporal == Temporal.PAST:
        return replace(statement, names=named, relationship=(name, person, rule.relationship))
    holds = statement.temporal == Temporal.CURRENT or (rule.attribute == "residence" and rule.verb == "move")
    if not (rule.relationship and person and holds) or statement.temporal == Temporal.FUTURE:
        return replace(statement, names=named)
    return replace(statement, names=named, relationship=(person, name, rule.relationship))


def _marked(said: Said, predicate: Predicate) -> tuple[str, list[DateMention]]:
    """Return what follows the verb with each date as one private character, and the dates; the last are of the lead."""
    tense = Tense.FUTURE if predicate.form in (Form.FUTURE, Form.INTENT, Form.PROGRESSIVE) else None
    tense = Tense.PAST if predicate.form in _HAPPENED else tense
    dates = find_dates(predicate.rest, at=said.turn.timestamp, tense=tense)
    pieces, end = [], 0
    for number, dated in enumerate(dates):
        pieces += [predicate.rest[end : dated.begin], f" {chr(_FIRST_MARK + number)} "]
        end = dated.stop
    text = "".join((*pieces, predicate.rest[end:]))
    leading = find_dates(said.clause.lead, at=said.turn.timestamp, tense=tense)
    if len(leading) == 1 and leading[0].begin == 0 and leading[0].stop == len(said.clause.lead) and not dates:
        text = f"{chr(_FIRST_MARK + len(dates))} {text}"
    return text, dates + leading


def times_of(form: Form, rule: Rule, dates: list[DateMention], said: Said) -> Times | None:
    """Return when a statement of this form holds; None if its dates do not go with the form."""
    today = said.turn.timestamp
    within = [dated for dated in dates if dated.bound is Bound.WITHIN]
    if len(within) > 1:
        return None
    date = within[0] if within else None
    if form in _HAPPENED and (lasting := _beginning(form, rule, dates)):
        return Times(temporal=Temporal.CURRENT, valid_from=lasting)
    if form is Form.PROGRESSIVE and (rule.verb in _PLANNED or (date and date.start > today)):
        form = Form.FUTURE
    temporal = TEMPORAL.get(form, Temporal.CURRENT)
    if temporal == Temporal.CURRENT:
        return Times(temporal=temporal, valid_from=_beginning(form, rule, dates))
    if temporal == Temporal.FUTURE:
        is_past = date is not None and date.end <= today
        return None if is_past else Times(temporal=temporal, words=_words(date), valid_to=date.end if date else None)
    if date and date.start > today:
        return None
    ended = next((dated.end for dated in dates if dated.bound is Bound.UNTIL and dated.start <= today), None)
    ended = date.end if date and rule.is_state and date.end <= today else ended
    return Times(temporal=temporal, words=_words(date), valid_from=date.start if date else None, valid_to=ended)


def _words(date: DateMention | None) -> str:
    return date.words if date else ""


def _beginning(form: Form, rule: Rule, dates: list[DateMention]) -> datetime | None:
    """Return since when something goes on: "has worked here for two years", "lives here since May"."""
    if form is Form.PAST or (form is Form.PERFECT and not rule.is_state):
        return None
    began = [dated.start for dated in dates if dated.bound in (Bound.SINCE, Bound.LASTING)]
    return began[0] if len(began) == 1 else None
