"""Statements of clauses: the meaning of a clause about its subject, as a claim in uniform words.

A clause is read from its subject on. The verb selects the rules of the grammar that may apply, its form says when the
claim is true, and the phrase after it is the object. A clause that no rule fits makes no statement.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memory.dates import Bound, DateMention, Tense, find_dates
from memory.extraction.rules import events, states
from memory.extraction.rules.arrangements import ARRANGING, find_dates_behind
from memory.extraction.rules.copulas import read_copula, read_new_age
from memory.extraction.rules.grammar import Rule, by_verb
from memory.extraction.rules.names import NAME, PERSON, bare_name, is_name
from memory.extraction.rules.people import brought_in
from memory.extraction.rules.personal import read_personal, with_time_behind
from memory.extraction.rules.phrases import Voice, cut_phrase, is_vague, make_phrase, trim_phrase
from memory.extraction.rules.readings import TEMPORAL, ClauseContext, make_statement
from memory.extraction.rules.relations import read_possessions
from memory.extraction.rules.statements import LIKINGS, NamedThing, Statement, attitude_to
from memory.extraction.rules.subjects import Subject, pronoun_of, subject_of
from memory.extraction.rules.values import RANGE_OF_MONTHS
from memory.extraction.rules.verbs import Form, Predicate, is_past, is_present, predicate_of
from memory.models.facts import Temporal
from memory.verbs import VERBS

_NO_TOPIC = re.compile(
    r"(?:how|that|when|what|where|who|to be able|to see|to hear|to know|to think|to say"
    r"|the way|the idea|the fact|being able"
    r"|having been|all|every|my life|myself|catching up|talking|chatting|the (?:sound"
    r"|look|experience|support|vibe|vibes"
    r"|idea|colors?|feeling|way|view|energy|atmosphere|memories|concept|passion|enthusiasm|painting|picture|photo)"
    r"|to (?:see|hear|go|come|join|have|do|know|be)|getting to|watching them|me)\b"
)
# "the ending" is that of what was just spoken of
_THAT_ONE = re.compile(
    r"the (?!(?:sea|ocean|beach|mountains|sun|rain|outdoors|cold|heat|snow|forest|woods|countryside|city"
    r"|theat(?:er|re)|opera|cinema|circus|ballet|news|weekends?|night|desert|internet)\b|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"(?:safe|bett|bigg|small|fast|simpl|easi|nic|cheap|warm|cold|clean|short|long|lat|earli|slow|quiet|bright|dark|hard"
    r"|soft|strong|light)e?r|more \w+"
)
_OVER = re.compile(r"(?P<topic>.{1,80}?) (?P<than>over|to|more than|rather than|instead of) (?P<other>.{1,80})")


def liking_of(predicate: Predicate, text: str, voice: Voice) -> tuple[str, str, str] | None:
    """Return the topic, the preference, and the verb of the claim if it differs from the one said; else None.

    The likes and dislikes are such as "loves jazz", "does not like coffee", "prefers tea to coffee".
    """
    if predicate.verb == "prefer":
        return _preference(predicate, text, voice)
    is_stated = predicate.form in (Form.PRESENT, Form.NEGATED, Form.NO_LONGER, Form.USED_TO, Form.PAST, Form.PERFECT)
    topic = (
        make_phrase(cut_phrase(text), voice)
        if is_stated and not (_NO_TOPIC.match(text) or _THAT_ONE.match(text))
        else ""
    )
    if not topic or is_vague(topic) or _COMPARED.fullmatch(topic):
        return None
    how = LIKINGS[predicate.verb]
    if predicate.form is Form.NEGATED:
        # "I don't love it" and "I don't hate it" say less than they seem to
        return (topic, "dislikes", "dislikes") if predicate.verb in ("like", "enjoy") else None
    return topic, "dislikes" if predicate.form is Form.NO_LONGER else how, ""


def _preference(predicate: Predicate, text: str, voice: Voice) -> tuple[str, str, str] | None:
    if predicate.form is not Form.PRESENT:
        return None
    match = _OVER.match(text)
    topic = make_phrase(cut_phrase(match["topic"] if match else text), voice)
    other = make_phrase(cut_phrase(match["other"]), voice) if match else ""
    is_action = match is not None and match["than"] == "to" and len(other.split()) > 2
    if not topic or (match and not other) or is_action:
        return None
    return (f"{topic} over {other}", f"prefers it over {other}", "") if other else (topic, "prefers", "")


RULES = by_verb((*states.STATES, *states.HABITS, *events.EVENTS, *states.ONGOING, *events.MORE))
_HAPPENED = frozenset({Form.PAST, Form.PERFECT})
_JUST = re.compile(r"(?:(?:[Jj]ust|[Oo]nly|[Bb]ack) )?")
_AND_THEN = re.compile(r",? (?:and|then) (?:(?:even|also|then|just|finally) )?(?P<verb>[a-z]+)\b")
_OWN_STATES = ("live", "work", "study", "have", "own")
"""Verbs that join what people say about themselves: "I live in Lisbon and work at Acme". Many others are nouns, too."""
_PLANNED = frozenset(["go", "visit", "travel", "fly", "move", "relocate", "have", "host", "attend", "perform"])
"""Verbs whose progressive form is about the future, as "is moving"."""
_WORK = re.compile(
    rf"\b(?:book|novel|poem|story|song|album|symphony|play|film|movie|documentary|game|paper|article|painting|musical)"
    rf" (?:called|titled|named|entitled) (?P<name>{NAME})$"
)
_BEYOND_A_PLACE = re.compile(r" (?:with|near|by|as|for|from|on|since|to|at)\b")
_BEYOND_A_NAME = re.compile(r" (?:with|near|by|as|for|from|on|since|to|in)\b")
_BARE_MOVE = re.compile(
    rf"(?:I|[Ww]e|[Mm]y [a-z-]+(?: [a-z-]+)?|{PERSON}) (?:(?:have|has) )?(?:moved|relocated) (?:back )?to {NAME}"
    rf"(?:, {NAME})?[.!]*"
)
MAX_GREETING_WORDS = 4
"""Words of a sentence that tells nothing: "Hi Claude, big news!"."""
_LATELY = re.compile(r"\b(?:just|recently|finally|now)\b")
_ALONE = re.compile(r"[Mm]y [a-z-]+(?: [A-Z][\w-]+)?[.!]?")
"""A sentence that only names somebody: "My father."""
_RANGE = re.compile(r"\b(?:from|between) (?:the )?\d{1,2}(?:st|nd|rd|th)? (?:to|until|till|and) \d")
_FIRST_MARK = 0xE000
_MARKS = re.compile("[\ue000-\uf8ff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The times in which a claim is true, and the words in the claim that say so."""

    words: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    temporal: str


def statements_of(said: ClauseContext) -> Iterator[Statement]:
    """Yield the statements of a clause: about the speaker's people and things, and by its predicates."""
    said = _strip_leading_date(said)
    yield from read_possessions(said)
    said = replace(said, clause=replace(said.clause, text=with_time_behind(said.clause.text)))
    subject = subject_of(said.clause.text, said.speaker, said.names, spoken_of=said.spoken_of)
    if subject is None:
        return
    for words in _split_predicates(subject.rest):
        statement = read_personal(said, subject, words)
        predicate = None if statement else predicate_of(words, is_third=subject.is_third)
        statement = _statement(said, subject, predicate) if predicate else statement
        if statement is not None:
            yield statement
        if age := read_new_age(said, subject, words):
            yield age


def people_spoken_of(said: ClauseContext, statements: Sequence[Statement]) -> list[Subject]:
    """Return the people and animals that a clause is about, or that it introduces as somebody's."""
    text = _strip_leading_date(said).clause.text
    text = f"{text.rstrip('.!')} is" if _ALONE.fullmatch(text) else text
    subject = subject_of(text, said.speaker, said.names, spoken_of=said.spoken_of)
    named = [_person(said, each) for each in statements if each.attribute.startswith(("relation:", "only:"))]
    whose = {
        each.attribute.partition(":")[2] for each in statements if each.attribute.startswith(("relation:", "only:"))
    }
    is_named_here = subject is not None and any(subject.label.endswith(f" {who}") for who in whose)
    people = [subject] if subject and not (subject.is_own or is_named_here) and subject.is_third else []
    people += named
    if subject is not None and subject.rest.startswith("and "):
        # "my mum and my sister": either may be meant by "she"
        people.append(replace(subject, label=subject.rest))
    people += brought_in(text, subject, named=named)
    return list({person.label: person for person in people}.values())


def _person(said: ClauseContext, statement: Statement) -> Subject:
    voice = Voice(speaker=said.speaker.label, is_own=False)
    names = tuple(named for named in statement.names if named.name == statement.value)
    pronoun = pronoun_of(statement.attribute.rpartition(":")[2].rpartition(" ")[2])
    return Subject(label=statement.value, rest="", voice=voice, names=names, is_third=True, pronoun=pronoun)


def _strip_leading_date(said: ClauseContext) -> ClauseContext:
    """Move a time at the beginning of a clause into its lead, as in "Last week I …"."""
    text = said.clause.text
    start = _JUST.match(text).end()  # type: ignore[union-attr]
    for dated in find_dates(text[start : start + 60], at=said.turn.timestamp, tense=Tense.PAST)[:1]:
        if dated.begin == 0:
            clause = replace(said.clause, text=text[start + dated.stop :].lstrip(" ,"), lead=text[start:][: dated.stop])
            return replace(said, clause=clause)
    return said


def _split_predicates(words: str) -> Iterator[str]:
    """Yield the predicates that are joined by "and", as in "visited a museum and then bought a print"."""
    start = 0
    for match in _AND_THEN.finditer(words):
        first = words[start:].split(maxsplit=1)[0]
        pair = (match["verb"], first)
        is_own_state = first in (*_OWN_STATES, "am") and match["verb"] in _OWN_STATES
        if all(map(is_past, pair)) or all(map(is_present, pair)) or is_own_state:
            yield words[start : match.start()]
            start = match.start("verb")
    yield words[start:]


def _statement(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    if not predicate.verb:
        return read_copula(said, subject, predicate)
    if predicate.verb in LIKINGS or predicate.verb == "prefer":
        return _liking(said, subject, predicate)
    return _by_rules(said, subject, predicate)


def _liking(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    text, _ = _mark_dates(said, predicate)
    text = _MARKS.sub("", text)
    found = liking_of(predicate, text, subject.voice)
    if found is None:
        return None
    topic, how, verb = found
    words = predicate.words(is_plural=subject.is_plural)
    if verb:
        words = "dislike" if subject.is_plural else verb
    statement = make_statement(
        said, subject, attribute=attitude_to(topic.partition(" over ")[0]), value=how, claim=f"{words} {topic}"
    )
    temporal = TEMPORAL.get(predicate.form, Temporal.CURRENT)
    liking = how if temporal == Temporal.CURRENT else ""
    return replace(statement, temporal=temporal, topic=topic.partition(" over ")[0], liking=liking)


def _by_rules(said: ClauseContext, subject: Subject, predicate: Predicate) -> Statement | None:
    """Read a clause by the first rule that fits the words after the verb, without dates."""
    if _RANGE.search(predicate.rest) or RANGE_OF_MONTHS.search(predicate.rest):
        return None
    text, dates = _mark_dates(said, predicate)
    text = cut_phrase(text)
    words = trim_phrase(_MARKS.sub(" ", text))
    dates = [dates[ord(mark) - _FIRST_MARK] for mark in _MARKS.findall(text)]
    # what one is doing may end
    form = Form.PROGRESSIVE if predicate.form is Form.NO_LONGER_DOING else predicate.form
    for rule in RULES.get(predicate.verb, ()):
        match = rule.needs.match(words) if form in rule.forms else None
        if match and not (rule.refuses and rule.refuses.match(words)):
            return _by_rule(said, subject, predicate, Fit(rule=rule, match=match, words=words, dates=dates))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A rule, its match in the words after a verb, and the dates that were among them."""

    rule: Rule
    match: re.Match[str]
    words: str
    dates: list[DateMention]

    @property
    def named(self) -> str:
        """The words after the preposition of the rule; empty if it has none."""
        has_preposition = "prep" in self.rule.needs.groupindex and self.match["prep"] is not None
        named = self.words[self.match.end("prep") :].strip() if has_preposition else ""
        beyond = _BEYOND_A_PLACE if self.rule.type == "place" else _BEYOND_A_NAME
        return beyond.split(named, maxsplit=1)[0]


def _by_rule(said: ClauseContext, subject: Subject, predicate: Predicate, fit: Fit) -> Statement | None:
    rule, times = fit.rule, times_of(predicate.form, fit.rule, fit.dates, said)
    words = make_phrase(fit.words, subject.voice)
    if times is None or bool(words) != bool(fit.words) or is_vague(words):
        return None
    when = "" if times.words.partition(" ")[2] in words else times.words
    form = Form.PRESENT if times.temporal == Temporal.CURRENT and rule.is_state else predicate.form
    form = Form.NO_LONGER if form is Form.NO_LONGER_DOING and rule.is_state else form
    verb = replace(predicate, form=form).words(is_plural=subject.is_plural)
    statement = make_statement(
        said,
        subject,
        attribute=rule.attribute if rule.attribute != "event" else f"event:{rule.verb}",
        value=make_phrase(fit.named, subject.voice) or words,
        claim=" ".join(filter(None, (verb, words, when))),
    )
    statement = replace(
        statement,
        temporal=times.temporal,
        valid_from=times.valid_from,
        valid_to=times.valid_to,
        when=when,
        is_recent=_is_recent(said, times.valid_from),
    )
    if match := _WORK.search(fit.words):
        return _with_work(statement, subject, match)
    return _with_name(statement, subject, rule, fit.named) if fit.named else statement


def _is_recent(said: ClauseContext, valid_from: datetime | None) -> bool:
    if valid_from is None:
        # "I moved to York." that begins what somebody says is news, and no part of a story
        is_news = said.before.count(" ") < MAX_GREETING_WORDS and _BARE_MOVE.fullmatch(said.clause.sentence) is not None
        return is_news or _LATELY.search(said.clause.text) is not None
    return said.turn.timestamp - valid_from < timedelta(days=366)


def _with_work(statement: Statement, subject: Subject, match: re.Match[str]) -> Statement:
    """Add the book, song or other work that the statement names, if its subject made it."""
    makes = statement.attribute in ("created", "event:write") and statement.temporal == Temporal.PAST
    name = bare_name(match["name"])
    if not makes or not is_name(name):
        return statement
    named = (*statement.names, NamedThing(name=name, type="work"))
    return replace(
        statement, names=named, relationship=(name, subject.person, "CREATED_BY") if subject.person else None
    )


def _with_name(statement: Statement, subject: Subject, rule: Rule, value: str) -> Statement:
    """Add the place or organisation that the statement names, if any, and its relationship to the subject."""
    name = bare_name(value.removeprefix("the "))
    if not rule.type or not is_name(name) or name != value.removeprefix("the "):
        return statement
    named = (*statement.names, NamedThing(name=name, type=rule.type))
    if subject.person and rule.relationship == "CREATED_BY" and statement.temporal == Temporal.PAST:
        return replace(statement, names=named, relationship=(name, subject.person, rule.relationship))
    holds = statement.temporal == Temporal.CURRENT or (
        rule.attribute == "residence" and rule.verb in ("move", "relocate")
    )
    if not (rule.relationship and subject.person and holds) or statement.temporal == Temporal.FUTURE:
        return replace(statement, names=named)
    return replace(statement, names=named, relationship=(subject.person, name, rule.relationship))


def _mark_dates(said: ClauseContext, predicate: Predicate) -> tuple[str, list[DateMention]]:
    """Return the words after the verb with each date replaced by a private character, and the dates.

    Dates of the clause's lead are the last ones.
    """
    tense = Tense.FUTURE if predicate.form in (Form.FUTURE, Form.INTENT, Form.PROGRESSIVE) else None
    # "I have entered the contest on 12 July" may be about the coming July
    tense = Tense.PAST if predicate.form is Form.PAST else tense
    dates = _dates_of(said, predicate, tense)
    pieces, end = [], 0
    for number, dated in enumerate(dates):
        before = predicate.rest[end : dated.begin]
        # "for 14 November" stays in its place, with the year
        words = dated.words.partition(" ")[2] if before.endswith((" for ", " to ")) else ""
        pieces += [before, f" {chr(_FIRST_MARK + number)} {words} "]
        end = dated.stop
    text = "".join((*pieces, predicate.rest[end:]))
    leading = find_dates(said.clause.lead, at=said.turn.timestamp, tense=tense)
    if len(leading) == 1 and leading[0].begin == 0 and leading[0].stop == len(said.clause.lead) and not dates:
        text = f"{chr(_FIRST_MARK + len(dates))} {text}"
    return text, dates + leading


def _dates_of(said: ClauseContext, predicate: Predicate, tense: Tense | None) -> list[DateMention]:
    """Return the dates behind the verb. What was booked, ordered and the like is on a day to come."""
    if predicate.form not in _HAPPENED or predicate.verb not in ARRANGING:
        return find_dates(predicate.rest, at=said.turn.timestamp, tense=tense)
    verb = VERBS[predicate.verb].past
    return find_dates_behind(verb, predicate.rest, at=said.turn.timestamp, tense=tense)


def times_of(form: Form, rule: Rule, dates: list[DateMention], said: ClauseContext) -> Times | None:
    """Return the times in which a statement of this form is true, or None if its dates contradict the form."""
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
        # "I got two interviews next week"
        is_set = rule.verb in ARRANGING
        return Times(temporal=Temporal.FUTURE, words=_words(date), valid_to=date.end) if is_set else None
    ended = next((dated.end for dated in dates if dated.bound is Bound.UNTIL and dated.start <= today), None)
    ended = date.end if date and rule.is_state and date.end <= today else ended
    return Times(temporal=temporal, words=_words(date), valid_from=date.start if date else None, valid_to=ended)


def _words(date: DateMention | None) -> str:
    return date.words if date else ""


def _beginning(form: Form, rule: Rule, dates: list[DateMention]) -> datetime | None:
    """Return the beginning of a state or activity, as in "has worked here for two years", "lives here since May"."""
    if form is Form.PAST or (form is Form.PERFECT and not rule.is_state):
        return None
    began = [dated.start for dated in dates if dated.bound in (Bound.SINCE, Bound.LASTING)]
    return began[0] if len(began) == 1 else None
