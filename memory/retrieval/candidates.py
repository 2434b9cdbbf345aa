"""Data that a recall passes from stage to stage: candidates with scores and reasons, and the bundle that it returns."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memory.instructions import INSTRUCTION_FLAG, gives_instructions
from memory.models import Kind
from memory.tokens import estimate_tokens

SHARES_WORDS = "shares words with the question"
IS_NEAR = "close in meaning"
IS_OF_THE_TIME = "of the time asked about"
IS_NAMED = "named in the question"
IS_LINKED_TO_NAMED = "linked to what the question names"
IS_BENEATH_FOUND = "open beneath a goal that was found"
IS_PINNED = "pinned"
GIVES_ORDERS = "gives orders to the model, so it is told last"
"""Reasons that more than one stage gives; each is shown once. No reason quotes a memory."""


# not kw_only: hundreds are made for each question, and names of so many arguments take twice as long as all else
@dataclass(slots=True)
class Candidate:
    """A memory that may be an answer. Stages change `score`, and record what they did (`signals`, `reasons`).

    `ways` names the retrievers that found it. Only facts have `confidence`, `temporal`, `valid_from` and
    `valid_to`, only facts and goals `status`, only turns `index`, `role` and `speaker`, only turn slots `slot` and
    `record_id`.
    """

    id: UUID
    kind: Kind
    text: str
    """The beginning of a long text, until the memory is known to be a result."""
    agent_id: str
    user_id: str
    channel: str
    conversation_id: str
    event_time: datetime
    last_accessed: datetime | None
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
    """BM25 over the terms that are not stop words."""
    naming: float = 0.0
    """The part of `content` that comes from the names of the question's subjects."""
    quoted: int = 0
    """Number of the question's quoted phrases in the text."""
    gist: float | None = None
    """1 - cosine distance to the question's gist; None without one."""
    held: int = 0
    """The question's terms that the text holds: bit n is term n of the query analysis."""
    hops: int | None = None
    """Number of links from an entity that the question names; 0 for the entity itself."""
    part_of: UUID | None = None
    """The found goal that this goal is a part of, or blocks."""
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
    """True if `text` is only the beginning."""
    passages: int = 0
    """Number of passages with vectors of their own; then `similarity` and `gist` are those of the nearest."""
    passage_start: int | None = None
    passage_end: int | None = None
    """Range of the passage whose vector is nearest to the question; None if the text has no passages."""
    snippet: str = ""
    snippet_start: int = 0
    snippet_end: int | None = None
    """The part of the text that answers the question (`snippets`), and its range; None before it is chosen."""
    superseded_by: UUID | None = None
    """The candidate that replaces what this one says, if any, and when that was said."""
    superseded_at: datetime | None = None
    score: float = 0.0
    likelihood: float = 0.0
    """How likely it helps to answer the question (`confidence`), from 0 to 1."""
    fused: "Fused | None" = None
    row: int = 0
    """What the fusion computed the relevance from, and the candidate's row there; None before the fusion."""
    factors: dict[str, float] = field(default_factory=dict)
    """Numbers by name that later stages have recorded: most of all the factors of scorers and selectors."""
    remarks: list[str] = field(default_factory=list)
    """Reasons that later stages have added."""
    also: list[UUID] = field(default_factory=list)
    """Ids of near-duplicates that this candidate stands for."""
    gives_orders: bool | None = None
    """True if its text gives orders to the model that reads it; None until it is known."""

    @property
    def item_key(self) -> str:
        """The key of this memory in the injection ledger."""
        return f"{self.kind.value}:{self.id}"

    @property
    def snippet_tokens(self) -> int:
        """The estimated tokens of the snippet."""
        is_whole = self.snippet_end is None or len(self.snippet) == len(self.text)
        return self.token_count if is_whole else estimate_tokens(self.snippet)

    @property
    def holder(self) -> str:
        """The user whose knowledge this is, else its agent as `a:<agent_id>` (compare `memory.identity.holder_key`)."""
        return self.user_id or f"a:{self.agent_id}"

    @property
    def day(self) -> date:
        """The day on which it happened."""
        return self.event_time.date()

    @property
    def flags(self) -> list[str]:
        """Warnings for readers: INSTRUCTION_FLAG or nothing. Read them once a long text is known whole."""
        if self.gives_orders is None:
            self.gives_orders = gives_instructions(self.text)
        return [INSTRUCTION_FLAG] if self.gives_orders else []

    def apply_factor(self, name: str, factor: float, reason: str = "") -> None:
        """Multiply the score and record the factor under `name`. A factor of 1 is not recorded."""
        if factor != 1.0:
            self.score *= factor
            self.factors[name] = self.factors.get(name, 1.0) * factor
        if reason:
            self.add_reason(reason)

    def add_reason(self, reason: str) -> None:
        """Add a reason, unless it is already there."""
        if reason not in self.remarks:
            self.remarks.append(reason)

    @property
    def signals(self) -> dict[str, float]:
        """Numbers by name, as `explain` shows them. Hundreds are ranked and few are shown, so each call makes them."""
        return {**self.fused.signals_of(self), **self.factors} if self.fused else dict(self.factors)

    @property
    def reasons(self) -> list[str]:
        """Sentences for people that say why it was found, and what counted."""
        found = self.fused.reasons_of(self) if self.fused else []
        return list(dict.fromkeys((*found, *self.remarks)))

    def absorb(self, other: "Candidate") -> None:
        """Stand for another candidate that says the same, and for all that it stands for. Keep its pin."""
        self.also += [other.id, *other.also]
        self.pinned = self.pinned or other.pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """The result of a fusion for all candidates.

    `columns` are numbers by signal, NaN where a candidate lacks one. `is_near` marks those that are at least as similar
    as the average: vector search finds everything if there are few memories, so only they are said to be close in
    meaning.
    """

    columns: Mapping[str, NDArray[np.float64]]
    is_near: NDArray[np.bool_]

    def signals_of(self, candidate: Candidate) -> dict[str, float]:
        """Return the signals of a candidate by name."""
        found = {name: float(column[candidate.row]) for name, column in self.columns.items()}
        signals = {name: value for name, value in found.items() if not math.isnan(value)}
        signals["bm25"] = candidate.bm25
        if candidate.similarity is not None:
            signals["similarity"] = candidate.similarity
        if candidate.hops is not None:
            signals["hops"] = float(candidate.hops)
        return signals

    def reasons_of(self, candidate: Candidate) -> list[str]:
        """Return the reasons of the retrievers that found a candidate."""
        is_given = {
            SHARES_WORDS: candidate.bm25 > 0,
            IS_NEAR: self.is_near[candidate.row] and "vector" in candidate.ways,
            IS_OF_THE_TIME: "temporal" in candidate.ways,
            IS_NAMED: candidate.hops == 0,
            IS_LINKED_TO_NAMED: bool(candidate.hops),
            IS_BENEATH_FOUND: candidate.part_of is not None,
        }
        return [reason for reason, given in is_given.items() if given]


def apply_factors(name: str, candidates: Sequence[Candidate], factors: Iterable[float]) -> None:
    """Apply a factor to each candidate, as `Candidate.apply_factor` does."""
    for candidate, factor in zip(candidates, factors, strict=True):
        if factor != 1.0:
            candidate.score *= factor
            candidate.factors[name] = candidate.factors.get(name, 1.0) * factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Time and result of one technique.

    `results` is the number of candidates that it found, scored or kept; for a rewriter 1 if it changed the question;
    for the query analysis (`orientation`) the number of named entities; for `links` the number of links.
    """

    technique: str
    took_ms: float
    results: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallUsage:
    """The cost of an answer.

    `candidates` is the number of memories that were scored, `tokens` those of the answer's texts, `source_tokens` those
    of the whole memories that the texts come from. `stages_ms` are the milliseconds of each stage, in order.
    """

    candidates: int
    tokens: int
    source_tokens: int
    stages_ms: Mapping[str, float]

    def with_whole_texts(self) -> "RecallUsage":
        """Return the cost of the same answer with whole texts in place of snippets."""
        return replace(self, tokens=self.source_tokens)


def to_milliseconds(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the times of stages in milliseconds, as `stages_ms` holds them."""
    return {name: round(1_000 * each, 3) for name, each in seconds.items()}


NO_USAGE = RecallUsage(candidates=0, tokens=0, source_tokens=0, stages_ms={})


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
    """The result of a recall: memories best first, the most urgent open goals, the user's profile.

    `degraded` names the techniques that were left out, and why. `others` is the rest of the ranking, best first.
    `candidates` and `stages_ms` are as in `RecallUsage`; `whole` is True if whole texts are wanted. `abstained` is True
    if all that was found is too unlikely to help.
    """

    results: Sequence[Candidate]
    goals: Sequence[OpenGoal]
    profile: Mapping[str, Any] | None
    metrics: Sequence[Metric]
    degraded: Sequence[str]
    others: Sequence[Candidate] = ()
    candidates: int = 0
    stages_ms: Mapping[str, float] = field(default_factory=dict)
    whole: bool = False
    abstained: bool = False
    took_ms: float | None = None
    """Milliseconds from the question to the answer."""

    @property
    def usage(self) -> RecallUsage:
        """Return the cost of answering with the snippets of the results, or with whole texts if they are wanted."""
        source_tokens = sum(result.token_count for result in self.results)
        return RecallUsage(
            candidates=self.candidates,
            tokens=source_tokens if self.whole else sum(result.snippet_tokens for result in self.results),
            source_tokens=source_tokens,
            stages_ms=self.stages_ms,
        )

    def of_kind(self, kind: Kind) -> list[Candidate]:
        """Return the results of that kind, best first."""
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
