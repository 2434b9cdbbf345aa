"""The question of a recall: what the client asked, and what rewriters found in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memory.models import Kind
from memory.models.statements import Embedding
from memory.providers.passages import MAX_PASSAGE_TOKENS

MAX_QUERY_CHARACTERS = 10_000
"""Longer queries would not improve any search."""


class Posture(StrEnum):
    """The agent's situation. It decides the order of scopes (`scopes.ORDERS`)."""

    ACTIVE_TURN = "active_turn"
    RESUME = "resume"
    RECOVERY = "recovery"
    AUDIT = "audit"


class Scope(StrEnum):
    """A range of memories that a search prefers or is limited to (E1)."""

    TURN = "turn"
    SESSION = "session"
    LINEAGE = "lineage"
    WORKSPACE = "workspace"
    PROFILE = "profile"


class Mode(StrEnum):
    """The part of each vector that a search compares (E7): a prefix of 64 dimensions, of 256, or the whole vector."""

    BROAD = "broad"
    DEFAULT = "default"
    DEEP = "deep"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """A half-open time range; None leaves that side open."""

    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and its filters. Frozen: a rewriter returns a new one.

    The client's filters exclude memories: `kinds`, `scopes`, `contexts`, `types` (of context entries), `slots` (limits
    the search to slots of structured turns), `since` (inclusive) and `until` (exclusive), `min_confidence` (of facts)
    and `without` (ids). All other fields only change the order. `as_of` and `known_at` ask for facts as they were true,
    or believed, at that time.
    """

    text: str
    top_k: int = 10
    conversation_id: str = ""
    posture: Posture = Posture.ACTIVE_TURN
    mode: Mode | None = None
    """None compares prefixes of 256 dimensions where the model has usable ones, else whole vectors."""
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
    max_snippet_tokens: int = MAX_PASSAGE_TOKENS
    """Estimated tokens of a text above which a snippet stands for it."""
    whole: bool = False
    """True for whole texts in place of their snippets."""
    include_superseded: bool = False
    """True ranks replaced statements like any others. They are marked all the same."""
    nearest_episodes: int = 0
    """Number of episodes to return in any case: in `Bundle.others` unless they are among the results."""
    skips_question: bool = False
    """True leaves out turns of the conversation that repeat the text, because they most likely are the question."""

    # found in the text by rewriters
    phrases: Sequence[str] = ()
    """Quoted phrases, which a text should hold word for word."""
    names: Sequence[str] = ()
    """Names of people, places and things as written."""
    subjects: Sequence[str] = ()
    """The names that do or have what the question is about."""
    gist: str = ""
    """The text without its subjects; empty if it has none."""
    mentions: Sequence[str] = ()
    """Possible names as written. Entities are looked up by them; they weigh no more than other words."""
    windows: Sequence[TimeWindow] = ()
    """Times that the text mentions. They change the order and do not filter."""
    speakers: Sequence[str] = ()
    """Speakers whose words the text asks for: names as written, or the roles `user` and `assistant`."""
    expansions: Sequence[str] = ()
    """Rephrasings and likely answers, which are embedded and searched for together with the text."""

    has_words: bool = True
    """False if candidates are scored by meaning alone."""

    model: str = ""
    """Name of the embedding model that produced `vector`."""
    vector: Embedding | None = None
    gist_vector: Embedding | None = None
    """Embedding of the gist, if there is one."""
    is_nested: bool = False
    """True if prefixes of the model's vectors are usable embeddings themselves (Matryoshka)."""

    @property
    def width(self) -> int:
        return 0 if self.vector is None else len(self.vector)
