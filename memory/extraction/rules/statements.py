"""Statements of single clauses: their subject, attribute and value, and the claim that they make."""

import re
from dataclasses import dataclass
from datetime import datetime

from memory.identity import normalize_claim, normalize_name
from memory.models.facts import Temporal

_OUR = re.compile(r"(?<=\b(?:col|fav))our|(?<=\bflav)our|(?<=\bneighb)our")
"""The British spelling of "color", "favorite", "flavor" and "neighbor"."""

_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
"""The hyphen of "go-live", which is "go live" as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedThing:
    """A name and the type of entity that it stands for."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimParts:
    """The meaning of a claim, as far as the rules can tell: the `subject` has the `value` as its `attribute`.

    `is_change` is True if the words of the claim say that the value replaces another ("was postponed to"). `is_end` is
    True if they say that the subject has the value no more ("no longer lives in"). `is_owned` is True for what somebody
    has one of ("the user's rent").
    """

    subject: str
    attribute: str
    value: str
    temporal: str = Temporal.CURRENT
    is_change: bool = False
    is_end: bool = False
    is_owned: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The subject in lower case and the attribute, in one spelling: claims with the same key may contradict."""
        subject = _HYPHEN.sub(" ", _OUR.sub("or", self.subject.casefold()))
        return subject, _OUR.sub("or", self.attribute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(ClaimParts):
    """A claim that a clause of a turn makes.

    `relationship` is (source, target, type) by names of `names`. `liking` says how the `topic` is liked. `sentence` is
    the one that the clause is a part of.
    """

    turn: int
    claim: str
    certainty: str
    sentence: str = ""
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
    replaces: tuple[str, ...] = ()
    """The claims of the speaker's last turn that the statement takes back."""
    is_recent: bool = False
    """True for an event of the year before the turn, as far as the clause says when."""

    @property
    def identity(self) -> object:
        """The claim and when it is true: statements of one identity are one fact."""
        return normalize_claim(self.claim), self.valid_from, self.valid_to


SINGLE = frozenset(
    {
        *("residence", "employer", "age", "birthplace", "birthday", "spouse", "name", "origin", "called"),
        *("marital status", "diet", "date", "time", "amount", "shift", "grade", "income"),
        *("owner", "identifier", "version", "boss", "rising", "plan"),
    }
)
"""Attributes with one value at a time. Favourites, attitudes to a topic and some relations have one as well."""


def is_single(attribute: str) -> bool:
    return attribute in SINGLE or attribute.startswith(("favorite:", "attitude:", "only:", "ability:", "style:"))


def normalize_value(value: str) -> str:
    """Return a normalized value without its article, for comparisons."""
    return re.sub(r"^(?:the|a|an) ", "", normalize_name(value))


LIKINGS = {
    "like": "likes", "love": "likes", "enjoy": "likes", "adore": "likes", "dislike": "dislikes", "hate": "dislikes",
}  # fmt: skip


def attitude_to(topic: str) -> str:
    return f"attitude:{normalize_value(topic)}"
