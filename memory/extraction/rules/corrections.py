"""Effects of a statement on earlier and known facts: it may correct or contradict them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from memory.extraction.knowledge import KnownFact
from memory.extraction.rules.addresses import has_street
from memory.extraction.rules.attributes import (
    ClaimReading,
    contradicts,
    is_move,
    is_rescheduled,
    read_claim,
    read_meaning,
    replaces_preference,
    replaces_role,
)
from memory.extraction.rules.denials import opposites_of
from memory.extraction.rules.endings import day_of_plan, ends_plan, ends_studies
from memory.extraction.rules.moves import changes_dose, read_other_time, replaces_routine, reschedules
from memory.extraction.rules.open_dates import is_past
from memory.extraction.rules.passages import Clause
from memory.extraction.rules.phrases import Voice
from memory.extraction.rules.planned_states import replaces_planned_state
from memory.extraction.rules.quits import ending_claims, ends_held, read_end
from memory.extraction.rules.readings import ClauseContext, make_statement
from memory.extraction.rules.relations import is_death
from memory.extraction.rules.statements import NamedThing, Statement, normalize_value
from memory.extraction.rules.subjects import Speaker, Subject
from memory.extraction.rules.words import CITIES, COUNTRIES, GROUP_RELATIONS, PLURAL_RELATIONS, REGIONS
from memory.identity import normalize_claim
from memory.models.facts import Certainty, Temporal

_PLACES = CITIES | COUNTRIES | REGIONS
_VALUE = r"[\w'$€£.-]+(?: [\w'$€£.-]+){0,5}?"
_NOT_BUT = re.compile(
    rf"(?:(?:it|that|he|she)(?: is|'s| was) )?(?P<new>{_VALUE}),? not (?P<old>{_VALUE})[.!]?"
    rf"|(?:(?:it|that)(?: is|'s| was) )?not (?P<old2>{_VALUE}),? (?:but|it's|it is|rather) (?P<new2>{_VALUE})[.!]?",
    re.IGNORECASE,
)
_APOLOGY = re.compile(
    r"^(?:(?:actually|sorry|no wait|no|wait|oops|correction|my mistake|i meant)[,:.]? +)+", re.IGNORECASE
)
_NEW_TARGET = re.compile(
    r"(?:please |let's |lets |can you )?(?:make|set|change|move|put) (?:the|my|our) (?P<what>target(?: time"
    r"| weight)?|goal"
    r"|goal weight|goal time) (?:to |at )?(?P<new>(?:under |below |about )?[$€£]?\d[\w:.,%]*(?: [a-z]+){0,3})",
    re.IGNORECASE,
)
_IS_OFF = re.compile(
    r"(?P<whose>(?i:the|my|our) |[A-Z][\w-]*'s )(?P<what>[\w][\w' -]{1,60}?) (?:is|was|has been|got|has got)"
    r" (?:(?:now|just|all|been) )?(?:cancell?ed|called off|off)[.!]*"
)
_DIED = re.compile(
    r"(?:[Mm]y (?P<who>[a-z-]+)|(?P<name>[A-Z][\w'-]+)) "
    r"(?P<rest>(?:(?:has|just|sadly) )*(?:died|passed away)\b(?P<behind>.*))"
)
_RELATIVE = re.compile(r"(?P<who>[a-z-]+) is (?P<name>[A-Z][\w'-]+)\.?")
_MEANT = re.compile(rf"(?P<new>{_VALUE})[.!]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A fact that a new one may correct or contradict. `number` is its number in the chunk or in the extraction."""

    number: int
    claim: str
    reading: ClaimReading
    is_known: bool


def read_known(known: Sequence[KnownFact]) -> list[Earlier]:
    """Return the known facts with what they say, as far as their words are known."""
    return [
        Earlier(number=fact.number, claim=fact.claim, reading=read_meaning(fact.claim), is_known=True) for fact in known
    ]


def read_statement(statement: Statement) -> ClaimReading:
    """Return what the claim of a statement says; what its rule says where the words of the claim are not known."""
    reading = read_meaning(statement.claim)
    return replace(reading, parts=statement) if reading.parts is None else reading


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEffects:
    """The numbers of the facts that a statement corrects and contradicts."""

    corrects: tuple[int, ...] = ()
    contradicts: tuple[int, ...] = ()

    @property
    def changed(self) -> tuple[int, ...]:
        return (*self.corrects, *self.contradicts)


def effects_of_statement(
    statement: Statement, earlier: Sequence[Earlier], *, over: Collection[int] = ()
) -> ClaimEffects:
    """Return the facts that the statement corrects or contradicts. Those that are `over` are so already.

    If an attribute has one value at a time, another value contradicts it, or corrects it if the speakers correct
    themselves and do not say that something has changed. If an attribute may have several values, only the last one
    stated in this chunk is corrected, and only by an explicit retraction ("sorry, I meant …").
    """
    if statement.replaces:
        wrong = {normalize_claim(claim) for claim in statement.replaces}
        return ClaimEffects(corrects=tuple(each.number for each in earlier if normalize_claim(each.claim) in wrong))
    reading = read_statement(statement)
    plans = [each for each in earlier if ends_plan(statement.claim, each.claim)]
    # "my appointment" is one of several
    days = {day_of_plan(each.claim) for each in plans if each.number not in over}
    plans = plans if len(days) == 1 else []
    claim = statement.claim
    held = [each for each in earlier if ends_held(claim, each.claim) or reschedules(claim, each.claim)]
    is_change = statement.is_change
    held += [each for each in earlier if changes_dose(claim, each.claim, is_change=is_change)]
    held += [each for each in earlier if replaces_routine(statement, each.claim)]
    plans += held
    against = tuple(each.number for each in earlier if _is_against(statement, reading, each, plans))
    if against and statement.is_correction and statement.is_own and statement.temporal == Temporal.CURRENT:
        return ClaimEffects(corrects=against)
    if against:
        return ClaimEffects(contradicts=against)
    if statement.is_retraction and statement.is_own:
        said = [each for each in earlier if not each.is_known and each.reading.parts is not None]
        last = [(each.number, each.reading.parts) for each in said if each.reading.key == reading.key][-1:]
        return ClaimEffects(corrects=tuple(number for number, read in last if read and read.value != statement.value))
    return ClaimEffects()


def _is_against(statement: Statement, reading: ClaimReading, earlier: Earlier, plans: Sequence[Earlier]) -> bool:
    if statement.temporal == Temporal.FUTURE:
        is_moved = is_rescheduled(reading, earlier.reading) or reschedules(statement.claim, earlier.claim)
        return is_moved or replaces_planned_state(statement.claim, earlier.claim)
    if statement.certainty == Certainty.UNCERTAIN:
        return False
    if is_move(statement.claim) and not statement.is_recent:
        return False
    if normalize_claim(earlier.claim) in opposites_of(statement.claim):
        return True
    if earlier in plans:
        return True
    if contradicts(reading, earlier.reading) or (statement.is_change and replaces_role(reading, earlier.reading)):
        return True
    is_instead = statement.is_change or statement.is_correction
    return is_instead and replaces_preference(statement.claim, earlier.claim)


def correct_said(statement: Statement, stated: Sequence[Statement]) -> Statement:
    """Return the statement as a correction of those that its sentence stated before it was taken back."""
    others = [each for each in stated if each.subject == statement.subject and each.claim != statement.claim]
    kind = statement.attribute.partition(":")[0]
    wrong = [each for each in others if each.attribute == statement.attribute]
    wrong = wrong or [each for each in others if each.attribute.partition(":")[0] == kind]
    if not wrong:
        return statement
    claims = tuple(each.claim for each in wrong)
    return replace(statement, is_correction=True, is_retraction=True, replaces=claims)


def read_again(said: ClauseContext, last: Statement | None, earlier: Sequence[Earlier]) -> Statement | None:
    """Return what a clause without a statement of its own says of what was stated: another value, or its end."""
    clause, speaker = said.clause, said.speaker
    again = read_replacement(clause, last) or replace_known_value(clause, earlier, speaker=speaker)
    again = again or replace_target(clause, earlier, speaker=speaker) or cancel_plan(said, earlier)
    claims = [each.claim for each in earlier]
    again = again or call_off(said, claims) or read_other_time(said, claims) or read_end(said, claims)
    return replace(again, turn=said.turn.index) if again else None


def cancel_plan(said: ClauseContext, earlier: Sequence[Earlier]) -> Statement | None:
    """Return that a thing which is planned is cancelled: "The Rome trip is cancelled", "my appointment is off"."""
    match = _IS_OFF.fullmatch(said.clause.text)
    if match is None:
        return None
    whose = f"{said.speaker.owner} " if match["whose"].lower() in ("my ", "our ") else match["whose"].capitalize()
    claim = f"{whose}{match['what']} is cancelled"
    if not any(ends_plan(claim, each.claim) for each in earlier):
        return None
    voice = Voice(speaker=said.speaker.label, is_own=True)
    subject = Subject(label=said.speaker.label, rest="", voice=voice, names=said.speaker.names, is_third=True)
    statement = make_statement(said, subject, attribute="cancelled", value=match["what"], claim="")
    return replace(statement, claim=claim, is_correction=False)


def call_off(said: ClauseContext, known: Sequence[str]) -> Statement | None:
    """Return that what is planned does not take place, or studies are over: "I'm not moving to Berlin after all"."""
    if said.clause.is_hedged:
        return None
    text = said.clause.text.strip(" .!")
    voice = Voice(speaker=said.speaker.label, is_own=True)
    thing = Subject(label=said.speaker.label, rest="", voice=voice, names=said.speaker.names, is_third=True)
    for subject, claim in (*ending_claims(said, known), (thing, f"{text[:1].upper()}{text[1:]}")):
        if any(ends_plan(claim, each) or ends_studies(claim, each) for each in known):
            statement = make_statement(said, subject, attribute="cancelled", value=claim, claim="")
            temporal = Temporal.PAST if is_past(claim) else Temporal.CURRENT
            return replace(statement, claim=claim, temporal=temporal, is_correction=False)
    return None


def with_name_of_dead(text: str, earlier: Sequence[Earlier], *, speaker: Speaker) -> tuple[str, str]:
    """Return "My cat Biscuit died" for "my cat died" and for "Biscuit died", if the known claims say who it is.

    The second is the name, if the clause does not say it, else empty.
    """
    match = _DIED.fullmatch(text)
    if match is None or not is_death(match["behind"]):
        return text, ""
    known = [each for each in earlier if each.claim.startswith(f"{speaker.owner} ") and each.reading.parts is not None]
    relatives = [_RELATIVE.fullmatch(each.claim.removeprefix(f"{speaker.owner} ")) for each in known]
    said = (match["name"] or "", (match["who"] or "").lower())
    found = {
        (each["who"], each["name"]) for each in relatives if each and said in ((each["name"], ""), ("", each["who"]))
    }
    if len(found) != 1:
        return text, ""
    [(who, name)] = found
    return f"My {who} {name} {match['rest']}", "" if match["name"] else name


def home_after_move(statement: Statement) -> Statement | None:
    """Return where somebody lives since a move that ended a known home: "I moved to Leeds last month"."""
    is_past = statement.temporal == Temporal.PAST and is_move(statement.claim)
    parts = read_claim(statement.claim) if is_past else None
    # people move to departments as well
    if parts is None or not (has_street(parts.value) or _PLACES & set(parts.value.split(", "))):
        return None
    live = "live" if statement.subject.rpartition(" ")[2] in GROUP_RELATIONS | PLURAL_RELATIONS else "lives"
    claim = f"{statement.subject} {live} {'at' if has_street(parts.value) else 'in'} {parts.value}"
    return replace(statement, claim=claim, temporal=Temporal.CURRENT, when="")


def read_replacement(clause: Clause, speaker_last: Statement | None) -> Statement | None:
    """Return the speaker's last statement with a new value, as in "sorry, it's Porto, not Lisbon", "I meant Porto"."""
    if speaker_last is None or not clause.is_correction:
        return None
    text = clause.text.strip(" .!")
    match = _NOT_BUT.fullmatch(text)
    if match:
        return _with_value(speaker_last, match["old"] or match["old2"], match["new"] or match["new2"])
    match = _MEANT.fullmatch(text)
    if match and clause.is_retraction and _is_alike(match["new"], speaker_last.value):
        return _with_value(speaker_last, speaker_last.value, match["new"])
    return None


def replace_known_value(clause: Clause, earlier: Sequence[Earlier], *, speaker: Speaker) -> Statement | None:
    """Return the known fact about the speaker with another value: "Actually, it's Porto, not Lisbon", days later.

    Only one known fact may have the value that is denied.
    """
    # the whole sentence, since "Sorry, Porto, …" looks like an apology to somebody of this name
    text = _APOLOGY.sub("", clause.sentence).strip(" .!")
    match = _NOT_BUT.fullmatch(text) if clause.is_correction else None
    if match is None:
        return None
    old, new = match["old"] or match["old2"], match["new"] or match["new2"]
    found = [
        (each, parts)
        for each in earlier
        if (parts := each.reading.parts) is not None
        and parts.subject.casefold() == speaker.label.casefold()
        and normalize_value(parts.value) == normalize_value(old)
        and parts.value in each.claim
    ]
    if len(found) != 1 or not _is_alike(new, old):
        return None
    [(known, parts)] = found
    before, _, after = known.claim.rpartition(parts.value)
    return Statement(
        turn=0,
        subject=parts.subject,
        attribute=parts.attribute,
        value=new,
        claim=f"{before}{new}{after}".rstrip("."),
        certainty=Certainty.EXPLICIT,
        names=speaker.names,
        is_own=True,
        is_correction=True,
        is_retraction=True,
    )


def replace_target(clause: Clause, earlier: Sequence[Earlier], *, speaker: Speaker) -> Statement | None:
    """Return what somebody aims at with its new value, if a fact names it: "actually make the target 2:05"."""
    match = _NEW_TARGET.fullmatch(_APOLOGY.sub("", clause.sentence).strip(" .!"))
    if match is None:
        return None
    subject = f"{speaker.owner} {match['what'].lower()}"
    known = [each for each in earlier if each.claim.startswith(f"{subject} is ") and each.reading.parts is not None]
    if not known or known[-1].reading.parts is None:
        return None
    parts = known[-1].reading.parts
    return Statement(
        turn=0,
        subject=parts.subject,
        attribute=parts.attribute,
        value=match["new"],
        claim=f"{subject} is {match['new']}",
        certainty=Certainty.EXPLICIT,
        names=speaker.names,
        is_own=True,
        is_change=True,
    )


def _is_alike(new: str, old: str) -> bool:
    """Return True if one value may replace the other: both are names, or both are numbers."""
    if old.isdecimal() or new.isdecimal():
        return old.isdecimal() and new.isdecimal()
    return old[:1].isupper() and new[:1].isupper()


def _with_value(statement: Statement, old: str, new: str) -> Statement | None:
    at = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", statement.value, re.IGNORECASE)
    if at is None or (not statement.claim.endswith(statement.value) and statement.value not in statement.claim):
        return None
    value = statement.value[: at.start()] + new + statement.value[at.end() :]
    before, _, after = statement.claim.rpartition(statement.value)
    return replace(
        statement,
        value=value,
        claim=f"{before}{value}{after}",
        names=tuple(_renamed(name, statement.value, value) for name in statement.names),
        relationship=_renamed_relationship(statement, value),
        certainty=Certainty.EXPLICIT,
        is_correction=True,
        is_retraction=True,
    )


def _renamed(named: NamedThing, old: str, new: str) -> NamedThing:
    return replace(named, name=new) if named.name == old else named


def _renamed_relationship(statement: Statement, value: str) -> tuple[str, str, str] | None:
    if statement.relationship is None:
        return None
    source, target, type_ = statement.relationship
    return source, value if target == statement.value else target, type_
