"""Effects of a statement on earlier and known facts: it may correct or contradict them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.extraction.knowledge import KnownFact
from memory.extraction.rules.passages import Clause
from memory.extraction.rules.statements import ClaimParts, NamedThing, Statement, is_single, normalize_value, read_claim
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
    """A fact that a new one may correct or contradict. `number` is its number in the chunk or in the extraction."""

    number: int
    read: ClaimParts
    is_known: bool


def read_known(known: Sequence[KnownFact]) -> list[Earlier]:
    """Return the known facts whose claims are in the words that the rules use."""
    earlier = []
    for fact in known:
        read = read_claim(fact.claim, only_relations=SINGLE_RELATIONS)
        if read is not None:
            earlier.append(Earlier(number=fact.number, read=read, is_known=True))
    return earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEffects:
    """The numbers of the facts that a statement corrects and contradicts."""

    corrects: tuple[int, ...] = ()
    contradicts: tuple[int, ...] = ()


def effects_of_statement(statement: Statement, earlier: Sequence[Earlier]) -> ClaimEffects:
    """Return the facts that the statement corrects or contradicts.

    If an attribute has one value at a time, another value contradicts it, or corrects it if the speakers correct
    themselves and do not say that something has changed. If an attribute may have several values, only the last one
    stated in this chunk is corrected, and only by an explicit retraction ("sorry, I meant …").
    """
    against = [each for each in earlier if _is_against(statement, each.read)]
    if against and statement.is_correction and statement.is_own and statement.temporal == Temporal.CURRENT:
        return ClaimEffects(corrects=tuple(each.number for each in against))
    if against:
        return ClaimEffects(contradicts=tuple(each.number for each in against))
    if statement.is_retraction and statement.is_own:
        last = [each for each in earlier if not each.is_known and each.read.key == statement.key][-1:]
        return ClaimEffects(corrects=tuple(each.number for each in last if each.read.value != statement.value))
    return ClaimEffects()


def _is_against(statement: Statement, read: ClaimParts) -> bool:
    if read.key != statement.key or not is_single(statement.attribute):
        return False
    differs = normalize_value(read.value) != normalize_value(statement.value)
    lasts = read.temporal == Temporal.CURRENT or read.attribute in _FOR_GOOD
    if statement.temporal == Temporal.PAST and statement.attribute not in _FOR_GOOD:
        # "no longer lives in Porto" is against living in Porto, and against nothing else
        return lasts and (_moved_lately(statement) if differs else _OVER.search(statement.claim) is not None)
    return lasts and differs and statement.temporal != Temporal.FUTURE


_FOR_GOOD = frozenset({"birthplace", "birthday"})
_OVER = re.compile(r" (?:used to|no longer) ")


def _moved_lately(statement: Statement) -> bool:
    """Return True if the statement reports a recent move, which says where somebody lives now."""
    return statement.attribute == "residence" and " moved " in statement.claim and statement.is_recent


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
