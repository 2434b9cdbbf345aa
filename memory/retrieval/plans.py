"""What the stages of a recall look like, and the plan that says which of them one goes through, in which order.

rewriters -> recallers -> fusion -> scorers -> reranker -> selectors. Each stage is a list of small callables; the
registry of all, and what settings and requests choose of them, is in `techniques`. A stage leaves what it did in
`Candidate.signals`, which is the explanation that clients get.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from memory.errors import ProviderError
from memory.owner import Owner
from memory.providers.deadlines import Deadline
from memory.providers.language_models import LanguageModel, Meter
from memory.retrieval.candidates import Candidate, OpenGoal
from memory.retrieval.queries import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Under which circumstances a question is asked."""

    owner: Owner
    now: datetime
    deadline: Deadline
    model: LanguageModel | None = None
    """For what rules cannot do; None where none is configured."""
    meter: Meter | None = None
    """Told what the model's requests came to."""
    techniques: frozenset[str] = frozenset()
    """The rewriters of the plan: the model is asked once, for all of them that want it."""
    answers: dict[str, BaseModel | ProviderError] = field(default_factory=dict, compare=False)
    """What came of asking the model, by technique."""


Rewriter = Callable[[Query, Moment], Query]
"""Answers with another query, or the same. May raise a ProviderError: the technique then drops out, and is named."""


class RewriteError(ProviderError):
    """A rewriter's model failed, or had no time: the recall goes on with `query`, which is what rules made of it."""

    def __init__(self, message: str, *, query: Query, is_late: bool) -> None:
        super().__init__(message)
        self.query = query
        self.is_late = is_late


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A lexeme of the question: how many of the account's memories hold it, and how much that makes it count."""

    lexeme: str
    docs: int
    weight: float
    selects: bool
    """Whether candidates are looked for by it; others only score what those found."""
    is_content: bool = True
    """Whether it is no stop word of the account's language."""
    is_subject: bool = False
    """Whether it is of the name of whom the question is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orientation:
    """What is known before anything is searched: of the question's words, of whom it names, of the owner's work.

    One statement reads it.
    """

    terms: Sequence[Term] = ()
    """Those that the account knows, the weightiest first."""
    phrases: Sequence[str] = ()
    """As tsqueries."""
    docs: int = 0
    """Memories of the account that are counted."""
    tokens: int = 0
    entities: Sequence[UUID] = ()
    """Those that the question names."""
    lineage: Sequence[str] = ()
    """The conversations that the active one resumes, nearest first, without itself."""
    first_of_turn: int | None = None
    """The index of the message that the request at hand begins with; None without a conversation that there is."""
    records_of_turn: Sequence[UUID] = ()
    """The structured turns that are of the request at hand."""
    goals: Sequence[OpenGoal] = ()
    profile: Mapping[str, Any] | None = None
    has_pending: bool = False
    """Whether memories wait for their vector, as far as that is looked into (`orientation`)."""
    indexed_rows: int = 0
    """That the account's vector index is over, for the question's model and width; 0 without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What decides the text of the statement that gathers candidates; all else of a question is bound."""

    has_agent: bool
    has_user: bool
    has_channel: bool
    kinds: tuple[str, ...]
    recallers: tuple[str, ...]
    width: int
    """Of the question's vector; 0 without one."""
    has_gist: bool
    is_nested: bool
    mode: str
    has_index: bool
    has_since: bool
    has_until: bool
    has_contexts: bool
    has_types: bool
    has_slots: bool
    has_phrases: bool
    is_cut: bool
    """Whether some of the question's words do not select."""
    has_known_at: bool
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where recallers look: conditions on `memories`, and the same on `memory_vectors`, with named parameters.

    `passable` is what a walk may lead through: all that the owner sees and that is true, wanted or not.
    """

    shape: Shape
    rows: str
    vectors: str
    passable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recaller:
    """Finds candidates. `compose` is a SELECT of `id` (and `hops`, of graph walks; `distance`, of vectors; `part_of`,
    of subgoals), best first, at most %(candidates)s rows, over the ground that it is given; `bind` are its own
    parameters. `passage` looks around what others found: in no order, and as many as its bounds say. It drops out of a
    recall for which `serves` is False. All of them run as one statement, in which each begins only before the deadline.
    """

    name: str
    serves: Callable[[Query, Orientation], bool]
    compose: Callable[[Ground], str]
    bind: Callable[[Query, Orientation], dict[str, Any]] = lambda _query, _orientation: {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBetween:
    """A link among candidates, what the question names, and open goals."""

    source: UUID
    target: UUID
    type: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What scorers and selectors may know besides the candidate."""

    owner: Owner
    query: Query
    orientation: Orientation
    now: datetime
    links: Sequence[LinkBetween] = ()


Fusion = Callable[[Sequence[Candidate], Setting], None]
"""Gives each candidate its first `score`, its relevance in [0, 1], out of what the recallers say of it."""

Scorer = Callable[[Sequence[Candidate], Setting], None]
"""Weighs the candidates (`Candidate.multiply`): all at once, so that what it looks up is looked up once."""

Selector = Callable[[Sequence[Candidate], Setting], list[Candidate]]
"""Orders, joins or leaves out candidates that come best first; answers with them best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The stages of one recall, by name, in the order in which they run."""

    rewriters: Mapping[str, Rewriter] = field(default_factory=dict)
    recallers: Sequence[Recaller] = ()
    fusion: str = ""
    fuse: Fusion
    scorers: Mapping[str, Scorer] = field(default_factory=dict)
    selectors: Mapping[str, Selector] = field(default_factory=dict)
    reranks: bool = True
