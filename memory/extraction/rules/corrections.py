"""Effects of a statement on earlier or known ones: it retracts them, or cannot be true beside them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.extraction.knowledge import KnownFact
from memory.extraction.rules.passages import Clause
from memory.extraction.rules.statements import NamedThing, Read, Statement, comparable, is_single, read_claim
from memory.extraction.rules.words import SINGLE_RELATIONS
from memory.models.facts import Certainty, Temporal

_VALUE = r"[\w'$€£.-]+(?: [\w'$€£.-]+){0,5}?"
_NOT_BUT = re.compile(
    rf"(?:(?:it|that|he|she)(?: is|'s| was) )?(?P<new>{_VALUE}),? not (?P<old>{_VALUE})[.!]?"
    rf"|(?:(?:it|that)(?: is|'s| was) )?not (?P<old2>{_VALUE}),? (?:but|it's|it is|rather) (?P<new2>{_VALUE})[.!]?",
    re.IGNORECASE,
)
_MEANT = re.compile(rf"(?P<new>{_VALUE})[.!]?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A fact that a new one may bear on. `number` is that of the chunk's known facts, or of the extraction."""

    number: int
    read: Read
    claim: str
    is_known: bool


def read_known(known: Sequence[KnownFact]) -> list[Earlier]:
    """Return the known facts that are worded as the rules word theirs."""
    earlier = []
    for fact in known:
        read = read_claim(fact.claim, only_relations=SINGLE_RELATIONS)
        if read is not None:
            earlier.append(Earlier(number=fact.number, read=read, claim=fact.claim, is_known=True))
    return earlier


def as_earlier(number: int, statement: Statement) -> Earlier:
    read = Read(
        subject=statement.subject,
        attribute=statement.attribute,
        value=statement.value,
        temporal=statement.temporal,
    )
    return Earlier(number=number, read=read, claim=statement.claim, is_known=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearing:
    corrects: tuple[int, ...] = ()
    contradicts: tuple[int, ...] = ()


def bearing_of(statement: Statement, earlier: Sequence[Earlier]) -> Bearing:
    """Return what the statement retracts, or contradicts.

    Of what one has one of, another value cannot be true beside the first: it is taken back where the speaker corrects
    themselves and does not say that the world has changed. Of what one may have several of, only the last that was
    said in this chunk is taken back, and only outright ("sorry, I meant …").
    """
    against = [each for each in earlier if _is_against(statement, each.read)]
    if against and statement.is_correction and statement.is_own and statement.temporal == Temporal.CURRENT:
        return Bearing(corrects=tuple(each.number for each in against))
    if against:
        return Bearing(contradicts=tuple(each.number for each in against))
    if statement.is_retraction and statement.is_own:
        last = [each for each in earlier if not each.is_known and each.read.key == statement.key][-1:]
        return Bearing(corrects=tuple(each.number for each in last if each.read.value != statement.value))
    return Bearing()


def _is_against(statement: Statement, read: Read) -> bool:
    if read.key != statement.key or not is_single(statement.attribute):
        return False
    differs = comparable(read.value) != comparable(statement.value)
    lasts = read.temporal == Temporal.CURRENT or read.attribute in _FOR_GOOD
    if statement.temporal == Temporal.PAST and statement.attribute not in _FOR_GOOD:
        # "no longer lives in Porto" is against living in Porto, and against nothing else
        return lasts and (_moved_lately(statement) if differs else _is_over(statement))
    return lasts and differs and statement.temporal != Temporal.FUTURE


_FOR_GOOD = frozenset({"birthplace", "birthday"})
_OVER = re.compile(r" (?:used to|no longer) ")


def _is_over(statement: Statement) -> bool:
    return _OVER.search(statement.claim) is not None


def _moved_lately(statement: Statement) -> bool:
    """Return whether a move says where one lives now: "moved to Berlin" does, unless it was long ago."""
    return statement.attribute == "residence" and " moved " in statement.claim and statement.is_recent


def replaced(clause: Clause, speaker_last: Statement | None) -> Statement | None:
    """Return the speaker's last statement with another value: "sorry, it's Porto, not Lisbon", "I meant Porto"."""
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


def _is_alike(new: str, old: str) -> bool:
    """Return whether one may stand for the other: both names, or both numbers."""
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
        relationship=_relinked(statement, value),
        certainty=Certainty.EXPLICIT,
        is_correction=True,
        is_retraction=True,
    )


def _renamed(named: NamedThing, old: str, new: str) -> NamedThing:
    return replace(named, name=new) if named.name == old else named


def _relinked(statement: Statement, value: str) -> tuple[str, str, str] | None:
    if statement.relationship is None:
        return None
    source, target, type_ = statement.relationship
    return source, value if target == statement.value else target, type_
