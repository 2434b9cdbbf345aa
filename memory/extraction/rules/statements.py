"""Statements of single clauses, before they are facts among facts."""

import re
from dataclasses import dataclass
from datetime import datetime

from memory.identity import normalize_name
from memory.models.facts import Temporal


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedThing:
    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A claim, and what it comes to: the `subject` has the `value` as its `attribute`.

    `relationship` is (source, target, type) by names of `names`. `liking` says how the `topic` is liked.
    """

    turn: int
    subject: str
    attribute: str
    value: str
    claim: str
    temporal: str
    certainty: str
    names: tuple[NamedThing, ...] = ()
    relationship: tuple[str, str, str] | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    when: str = ""
    """The date that ends the claim."""
    topic: str = ""
    liking: str = ""
    is_own: bool = False
    is_correction: bool = False
    is_retraction: bool = False
    is_recent: bool = False
    """Of what happened: whether it did in the year before it was told, as far as that is said."""

    @property
    def key(self) -> tuple[str, str]:
        """Return of whom it says what."""
        return self.subject.casefold(), self.attribute


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The parts of a claim in words, as far as the rules can tell."""

    subject: str
    attribute: str
    value: str
    temporal: str = Temporal.CURRENT

    @property
    def key(self) -> tuple[str, str]:
        return self.subject.casefold(), self.attribute


SINGLE = frozenset({"residence", "employer", "age", "birthplace", "birthday", "spouse", "name", "origin"})
"""Attributes of which there is one at a time. So are favourites, attitudes to one topic, and some relations."""


def is_single(attribute: str) -> bool:
    return attribute in SINGLE or attribute.startswith(("favorite:", "attitude:", "only:"))


def comparable(value: str) -> str:
    """Return a value without what does not change it."""
    return re.sub(r"^(?:the|a|an) ", "", normalize_name(value))


_SUBJECT = r"(?P<subject>\S.{0,80}?)"
_DATED = r"(?: (?:in|on|from|since|until) (?:the .{1,40}|[^ ]{1,12} ?[^ ]{0,12} ?)?(?:19|20)\d\d)?"
_READERS = tuple(
    (attribute, temporal, re.compile(rf"{_SUBJECT} {pattern}{_DATED}\.?"))
    for attribute, temporal, pattern in (
        ("residence", Temporal.PAST, r"(?:used to live|no longer lives) in (?P<value>.{1,80}?)"),
        ("residence", Temporal.CURRENT, r"(?:now |currently )?(?:lives|resides) in (?P<value>.{1,80}?)"),
        ("residence", Temporal.CURRENT, r"(?:has )?moved to (?P<value>.{1,80}?)"),
        ("employer", Temporal.PAST, r"(?:used to work|no longer works) (?:for|at) (?P<value>.{1,80}?)"),
        ("employer", Temporal.CURRENT, r"(?:now |currently )?works (?:for|at) (?P<value>.{1,80}?)"),
        ("age", Temporal.CURRENT, r"is (?P<value>\d{1,3})(?: years old)?"),
        ("birthday", Temporal.CURRENT, r"was born on (?P<value>.{1,80}?)"),
        ("birthday", Temporal.CURRENT, r"(?<='s) birthday is (?:on )?(?P<value>.{1,80}?)"),
        ("birthplace", Temporal.CURRENT, r"was born in (?P<value>.{1,80}?)"),
        ("spouse", Temporal.CURRENT, r"is married to (?P<value>.{1,80}?)"),
        ("origin", Temporal.CURRENT, r"is from (?P<value>.{1,80}?)"),
    )
)
_OWNED = re.compile(
    rf"{_SUBJECT}'s (?P<what>name|favou?rite [^\d]{{1,60}}?|[a-zé-]{{2,20}}) is (?P<value>.{{1,80}}?)\.?"
)
_LIKING = re.compile(
    rf"{_SUBJECT} (?P<liking>likes|loves|enjoys|adores|dislikes|hates|no longer likes"
    r"|no longer loves) (?P<value>.{1,120}?)\.?"
)
LIKINGS = {
    "like": "likes", "love": "likes", "enjoy": "likes", "adore": "likes", "dislike": "dislikes", "hate": "dislikes",
}  # fmt: skip


def read_claim(claim: str, *, only_relations: frozenset[str]) -> Read | None:
    """Return what a claim says, if it is worded as the rules word theirs. One has one at most of `only_relations`."""
    claim = " ".join(claim[:300].split())
    for attribute, temporal, pattern in _READERS:
        if match := pattern.fullmatch(claim):
            return Read(subject=match["subject"], attribute=attribute, value=match["value"], temporal=temporal)
    return _read_liking(claim) or _read_owned(claim, only_relations)


def _read_liking(claim: str) -> Read | None:
    match = _LIKING.fullmatch(claim)
    if match is None:
        return None
    verb = match["liking"]
    value = "dislikes" if verb in ("dislikes", "hates") or verb.startswith("no longer") else "likes"
    return Read(subject=match["subject"], attribute=attitude_to(match["value"]), value=value)


def attitude_to(topic: str) -> str:
    return f"attitude:{comparable(topic)}"


def _read_owned(claim: str, only_relations: frozenset[str]) -> Read | None:
    match = _OWNED.fullmatch(claim)
    if match is None:
        return None
    what = match["what"].replace("favourite", "favorite")
    if what.startswith("favorite "):
        what = f"favorite:{what.removeprefix('favorite ')}"
    elif what in only_relations:
        what = f"only:{what}"
    elif what != "name":
        what = f"relation:{what}"
    return Read(subject=match["subject"], attribute=what, value=match["value"])
