"""What a recall works on: the question as it was asked, and what rewriters made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memory.models import Kind
from memory.models.binary import Embedding

LONGEST_QUERY = 10_000
"""Characters of a query: more would make no search better."""


class Posture(StrEnum):
    """What the agent is about; it picks the order of scopes (`scopes.ORDERS`)."""

    ACTIVE_TURN = "active_turn"
    RESUME = "resume"
    RECOVERY = "recovery"
    AUDIT = "audit"


class Scope(StrEnum):
    """How far a search opens (E1)."""

    TURN = "turn"
    SESSION = "session"
    LINEAGE = "lineage"
    WORKSPACE = "workspace"
    PROFILE = "profile"


class Mode(StrEnum):
    """How much of the vectors is looked at (E7): a prefix of 64 dimensions, of 256, or all of them."""

    BROAD = "broad"
    DEFAULT = "default"
    DEEP = "deep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A half-open span of time; None is without end on that side."""

    since: datetime | None
    until: datetime | None

    def has(self, moment: datetime) -> bool:
        return (self.since is None or self.since <= moment) and (self.until is None or moment < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked. Frozen: a rewriter answers with another one.

    Filters come from the client and leave out what they do not let through: `kinds`, `scopes`, `contexts`, `types` (of
    context entries), `slots` (of structured turns, and nothing else), `since` (inclusive) and `until` (exclusive),
    `min_confidence` (of facts), `without`. All others only prefer. `as_of` and `known_at` ask for facts as they were
    true, or believed, then.
    """

    text: str
    top_k: int = 10
    conversation_id: str = ""
    posture: Posture = Posture.ACTIVE_TURN
    mode: Mode = Mode.DEFAULT
    scopes: Sequence[Scope] = ()
    kinds: Sequence[Kind] = ()
    contexts: Sequence[UUID] = ()
    types: Sequence[str] = ()
    slots: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    min_confidence: float = 0.0
    as_of: datetime | None = None
    known_at: datetime | None = None
    without: Sequence[UUID] = ()
    nearest_episodes: int = 0
    """How many episodes to bring along in any case, among `Bundle.others` where not among the results."""
    skips_question: bool = False
    """Whether to leave out what says just this in the conversation itself: most likely it is the question."""

    # what rewriters find in the text
    phrases: Sequence[str] = ()
    """Quoted: to stand in a text as they are."""
    names: Sequence[str] = ()
    """Of people, places, things; as written."""
    subjects: Sequence[str] = ()
    """Whom it is about, of the names: who does or has what is asked for."""
    gist: str = ""
    """The text without them: what is asked, whomever it is about. Empty where it names nobody so."""
    mentions: Sequence[str] = ()
    """What may be a name, as written: entities are looked up by it, and it weighs no more than other words."""
    windows: Sequence[Window] = ()
    """Times that the text speaks of, which prefer and do not filter."""
    speakers: Sequence[str] = ()
    """Who is asked about as having said something: names as written, or the roles `user` and `assistant`."""
    expansions: Sequence[str] = ()
    """The same in other words, the likely answer among them: embedded, and looked for, beside the text."""

    has_words: bool = True
    """Whether its words count."""

    # what is asked for by meaning; None without a vector
    model: str = ""
    vector: Embedding | None = None
    gist_vector: Embedding | None = None
    """Of the gist; None where there is none."""
    is_nested: bool = False
    """Whether prefixes of the model's vectors mean something by themselves (Matryoshka)."""

    @property
    def width(self) -> int:
        return 0 if self.vector is None else len(self.vector)
