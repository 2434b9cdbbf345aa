"""Interfaces of the recall stages, and the plan that says which techniques of each stage a recall uses.

The order is rewriters, retrievers, fusion, scorers, reranker, selectors. `techniques` holds the registry of all
techniques, and chooses among them by settings and requests. Each stage records its effect in `Candidate.signals`, which
is the explanation that clients get.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from pydantic import BaseModel

from memory.errors import ProviderError
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.providers.language_models import LanguageModel, Meter
from memory.retrieval.candidates import Candidate, OpenGoal
from memory.retrieval.queries import Query
from memory.retrieval.statements import OwnerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallContext:
    """The circumstances in which a question is asked."""

    owner: Owner
    now: datetime
    deadline: Deadline
    model: LanguageModel | None = None
    """The language model for what rules cannot do; None if none is configured."""
    meter: Meter | None = None
    """Called with the usage of each request to the model."""
    techniques: frozenset[str] = frozenset()
    """Names of the plan's rewriters. The model is asked once for all of them that need it."""
    answers: dict[str, BaseModel | ProviderError] = field(default_factory=dict, compare=False)
    """The model's answer, or its failure, by technique."""


Rewriter = Callable[[Query, RecallContext], Query]
"""Returns another query, or the same. May raise ProviderError: the recall then goes on without it and reports it."""


class RewriteError(ProviderError):
    """A rewriter's model failed or ran out of time. The recall goes on with `query`, the result of the rules alone."""

    def __init__(self, message: str, *, query: Query, is_late: bool) -> None:
        super().__init__(message)
        self.query = query
        self.is_late = is_late


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A lexeme of the question. `docs` is how many of the account's memories hold it."""

    lexeme: str
    docs: int
    weight: float
    selects: bool
    """True if the term finds candidates; the others only add to the scores of candidates that are found."""
    is_content: bool = True
    """False for stop words of the account's language."""
    is_subject: bool = False
    """True if the term is part of the name of a subject of the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnalysis:
    """Facts about a question that one statement reads before the search: terms, named entities, the owner's work."""

    terms: Sequence[Term] = ()
    """Terms that the account knows, by descending weight."""
    unknown: Sequence[Term] = ()
    """Terms of the question itself that no memory of the account holds."""
    phrases: Sequence[str] = ()
    """Quoted phrases as tsqueries."""
    docs: int = 0
    """Number of the account's memories that count in the statistics of words."""
    tokens: int = 0
    """Sum of their lengths."""
    entities: Sequence[UUID] = ()
    """Entities that the question names."""
    lineage: Sequence[str] = ()
    """Conversations that the active one resumes, nearest first, without itself."""
    first_of_turn: int | None = None
    """Index of the message that the current request begins with; None if there is no such conversation."""
    records_of_turn: Sequence[UUID] = ()
    """Structured turns that belong to the current request."""
    goals: Sequence[OpenGoal] = ()
    profile: Mapping[str, Any] | None = None
    has_pending: bool = False
    """True if memories are known to wait for their vector; only a bounded number is looked at (`query_analysis`)."""
    has_passages: bool = False
    """True if the account has vectors of passages by the question's model: then a memory counts by its best one."""
    indexed_rows: int = 0
    """Rows of the account's vector index for the question's model and width; 0 if there is no index."""
    partition: str = ""
    """The partition of `memory_vectors` with the account's vectors; empty if there are none or the query has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheringShape:
    """The properties of a question that decide the text of the gathering statement. All else is bound as parameters."""

    owner: OwnerShape
    kinds: tuple[str, ...]
    retrievers: tuple[str, ...]
    width: int
    """Dimensions of the question's vector; 0 without one."""
    has_gist: bool
    is_nested: bool
    mode: str
    has_index: bool
    has_passages: bool
    has_since: bool
    has_until: bool
    has_contexts: bool
    has_types: bool
    has_slots: bool
    has_phrases: bool
    is_cut: bool
    """True if some of the question's terms do not select."""
    has_known_at: bool
    scopes: tuple[str, ...]
    keeps_plan: bool
    partition: str
    """The partition of the account's vectors, which a statement with a kept plan names; else empty (`kept_plans`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleRows:
    """SQL conditions for the rows that a retriever may return: on `memories` and on `memory_vectors`.

    `passable` is the condition on memories that a walk may pass through: everything that the owner sees and that is
    true, whether or not the filters let it through. All parameters are named.
    """

    shape: GatheringShape
    rows: str
    vectors: str
    passable: str


class Retriever(ABC):
    """A way to find candidates, as a part of the gathering statement. Retrievers hold no state.

    The retrievers of a plan run one after the other in one statement; each begins only before the deadline.
    """

    name: ClassVar[str]

    def applies(self, query: Query, analysis: QueryAnalysis) -> bool:
        """Return False if this retriever has nothing to look for. It is left out of the statement then."""
        return True

    @abstractmethod
    def to_sql(self, visible: VisibleRows) -> str:
        """Return a SELECT of `id`, best first, at most %(candidates)s rows.

        Graph walks add the column `hops`, vector search `distance`, subgoals `part_of`. `passage` returns its rows in
        no order and within bounds of its own.
        """

    def params(self, query: Query, analysis: QueryAnalysis) -> dict[str, Any]:
        """Return the parameters of `to_sql` that belong to this retriever alone."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBetween:
    """A link among candidates, entities that the question names, and open goals."""

    source: UUID
    target: UUID
    type: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringContext:
    """Data that fusions, scorers and selectors may use besides the candidates."""

    owner: Owner
    query: Query
    analysis: QueryAnalysis
    now: datetime
    links: Sequence[LinkBetween] = ()


Fusion = Callable[[Sequence[Candidate], ScoringContext], None]
"""Sets the first `score` of each candidate, its relevance in [0, 1], from what the retrievers found."""

Scorer = Callable[[Sequence[Candidate], ScoringContext], None]
"""Multiplies scores (`Candidate.apply_factor`). Gets all candidates together, so that each look-up is made once."""

Selector = Callable[[Sequence[Candidate], ScoringContext], list[Candidate]]
"""Orders, joins or leaves out candidates. Both its argument and its result are best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The stages of one recall by name, each in the order in which its techniques run."""

    rewriters: Mapping[str, Rewriter] = field(default_factory=dict)
    retrievers: Sequence[Retriever] = ()
    fusion: str = ""
    fuse: Fusion
    scorers: Mapping[str, Scorer] = field(default_factory=dict)
    selectors: Mapping[str, Selector] = field(default_factory=dict)
    reranks: bool = True
