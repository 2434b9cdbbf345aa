"""What a recall passes from stage to stage: scored memories with what speaks for them, and at the end the bundle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.models import Kind

SHARES_WORDS = "shares words with the question"
IS_NEAR = "close in meaning"
IS_OF_THE_TIME = "of the time asked about"
IS_NAMED = "named in the question"
IS_LINKED_TO_NAMED = "linked to what the question names"
IS_BENEATH_FOUND = "open beneath a goal that was found"
IS_PINNED = "pinned"
"""Reasons of more than one stage, which are told once. No reason quotes a memory."""


@dataclass(slots=True, kw_only=True)
class Candidate:
    """A memory that may be an answer. Stages change `score`, and leave in `signals` and `reasons` what they did.

    `signals` are numbers by name, as `explain` shows them; `reasons` are for people. `ways` names the recallers that
    found it. Of facts `confidence`, `temporal`, `status` and the span in which they are true are set, of turns `index`,
    `role` and `speaker`, of turn slots `slot` and `record_id`.
    """

    id: UUID
    kind: Kind
    text: str
    """Of long ones the beginning, until they are results."""
    agent_id: str
    user_id: str
    channel: str
    conversation_id: str
    event_time: datetime
    created_at: datetime
    last_accessed: datetime | None
    access_count: int
    token_count: int
    salience: float
    trust: float
    pinned: bool
    source: str
    ways: frozenset[str]
    bm25: float
    similarity: float | None
    """1 - cosine distance; None without a vector."""
    content: float = 0.0
    """BM25 over the terms that are no stop words."""
    naming: float = 0.0
    """What of that is due to the names of whom the question is about."""
    quoted: int = 0
    """How many of the question's phrases stand in it."""
    gist: float | None = None
    """As `similarity`, to the question's gist."""
    held: int = 0
    """Which of the question's terms it holds: bit n is term n of the orientation."""
    hops: int | None = None
    """Links from what the question names; 0 is what it names."""
    part_of: UUID | None = None
    """Of goals, one that was found too, and that it is a part of, or holds up."""
    index: int | None = None
    role: str = ""
    speaker: str = ""
    slot: str = ""
    record_id: UUID | None = None
    confidence: float | None = None
    temporal: str = ""
    status: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    is_cut: bool = False
    """Whether `text` is no more than the beginning."""
    score: float = 0.0
    signals: dict[str, float] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    also: list[UUID] = field(default_factory=list)
    """Near-duplicates that it stands for."""

    @property
    def item_key(self) -> str:
        """Its name in the injection ledger."""
        return f"{self.kind.value}:{self.id}"

    def multiply(self, name: str, factor: float, reason: str = "") -> None:
        """Weigh the score, and remember by what. A factor of 1 says nothing, and is not kept."""
        if factor != 1.0:
            self.score *= factor
            self.signals[name] = self.signals.get(name, 1.0) * factor
        self.give(reason)

    def tell_ways(self, *, is_near: bool) -> None:
        """Give the reasons of the recallers that found it. By meaning everything is found where there is little: only
        what `is_near` is said to be so."""
        self.give(SHARES_WORDS if self.bm25 > 0 else "")
        self.give(IS_NEAR if is_near and "vector" in self.ways else "")
        self.give(IS_OF_THE_TIME if "temporal" in self.ways else "")
        if self.hops is not None:
            self.give(IS_LINKED_TO_NAMED if self.hops else IS_NAMED)
        self.give(IS_BENEATH_FOUND if self.part_of else "")
        self.give(IS_PINNED if self.pinned else "")

    def give(self, reason: str) -> None:
        """Tell people why it was recalled; each reason once."""
        if reason and reason not in self.reasons:
            self.reasons.append(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What one technique took, and how many candidates it brought, weighed or kept; of rewriters whether it changed the
    question, of the orientation how many entities that names, of links how many there are."""

    technique: str
    took_ms: float
    results: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGoal:
    """A goal that the owner has open."""

    id: UUID
    description: str
    status: str
    priority: int
    deadline: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What a recall answers with: memories best first, the most urgent open goals, the user's profile.

    `degraded` names what kept it from being better. `others` are the rest of the ranking, which nobody asked for.
    """

    results: Sequence[Candidate]
    goals: Sequence[OpenGoal]
    profile: Mapping[str, Any] | None
    metrics: Sequence[Metric]
    degraded: Sequence[str]
    others: Sequence[Candidate] = ()
    took_ms: float | None = None
    """From the question to the answer."""

    def of_kind(self, kind: Kind) -> list[Candidate]:
        """The memories of that kind, best first."""
        return [result for result in self.results if result.kind == kind]

    @property
    def turns(self) -> list[Candidate]:
        return self.of_kind(Kind.TURN)

    @property
    def episodes(self) -> list[Candidate]:
        return self.of_kind(Kind.EPISODE)

    @property
    def facts(self) -> list[Candidate]:
        return self.of_kind(Kind.FACT)

    @property
    def entities(self) -> list[Candidate]:
        return self.of_kind(Kind.ENTITY)

    @property
    def strategies(self) -> list[Candidate]:
        return self.of_kind(Kind.STRATEGY)
