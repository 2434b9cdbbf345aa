"""Statements of single clauses, and the reading of claims that are in the words of the rules."""

import re
from dataclasses import dataclass
from datetime import datetime

from memory.identity import normalize_name
from memory.models.facts import Temporal


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedThing:
    """A name and the type of entity that it stands for."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimParts:
    """The meaning of a claim, as far as the rules can tell: the `subject` has the `value` as its `attribute`."""

    subject: str
    attribute: str
    value: str
    temporal: str = Temporal.CURRENT

    @property
    def key(self) -> tuple[str, str]:
        """The subject in lower case and the attribute: claims with the same key may contradict each other."""
        return self.subject.casefold(), self.attribute


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(ClaimParts):
    """A claim that a clause of a turn makes.

    `relationship` is (source, target, type) by names of `names`. `liking` says how the `topic` is liked.
    """

    turn: int
    claim: str
    certainty: str
    names: tuple[NamedThing, ...] = ()
    relationship: tuple[str, str, str] | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    when: str = ""
    """The words of the date at the end of the claim."""
    topic: str = ""
    liking: str = ""
    is_own: bool = False
    is_correction: bool = False
    is_retraction: bool = False
    is_recent: bool = False
    """True for an event of the year before the turn, as far as the clause says when."""


SINGLE = frozenset({"residence", "employer", "age", "birthplace", "birthday", "spouse", "name", "origin"})
"""Attributes with one value at a time. Favourites, attitudes to a topic and some relations have one as well."""


def is_single(attribute: str) -> bool:
    return attribute in SINGLE or attribute.startswith(("favorite:", "attitude:", "only:"))


def normalize_value(value: str) -> str:
    """Return a normalized value without its article, for comparisons."""
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


def read_claim(claim: str, *, only_relations: frozenset[str]) -> ClaimParts | None:
    """Return the parts of a claim in the words of the rules, else None. People have one of each of `only_relations`."""
    claim = " ".join(claim[:300].split())
    for attribute, temporal, pattern in _READERS:
        if match := pattern.fullmatch(claim):
            return ClaimParts(subject=match["subject"], attribute=attribute, value=match["value"], temporal=temporal)
    return _read_liking(claim) or _read_owned(claim, only_relations)


def _read_liking(claim: str) -> ClaimParts | None:
    match = _LIKING.fullmatch(claim)
    if match is None:
        return None
    verb = match["liking"]
    value = "dislikes" if verb in ("dislikes", "hates") or verb.startswith("no longer") else "likes"
    return ClaimParts(subject=match["subject"], attribute=attitude_to(match["value"]), value=value)


def attitude_to(topic: str) -> str:
    return f"attitude:{normalize_value(topic)}"


def _read_owned(claim: str, only_relations: frozenset[str]) -> ClaimParts | None:
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
    return ClaimParts(subject=match["subject"], attribute=what, value=match["value"])
