"""Declarations of kinds of memory, and their registry."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from django.db.models import TextChoices

from memory.errors import Unprocessable
from memory.scoring import EPISODIC_WEIGHT


class Kind(TextChoices):
    """Constants for the kinds that code names. `Kind(name)` also accepts any other registered kind."""

    TURN = "turn"
    EPISODE = "episode"
    FACT = "fact"
    ENTITY = "entity"
    STRATEGY = "strategy"
    GOAL = "goal"
    CONTEXT_ENTRY = "context_entry"
    TURN_SLOT = "turn_slot"
    WORK_EPISODE = "work_episode"
    ARTIFACT = "artifact"
    LEARNING = "learning"
    NOTE = "note"

    @classmethod
    def _missing_(cls, value: object) -> "Kind | None":
        if value not in _specs:
            return None
        kind = str.__new__(cls, value)
        kind._name_, kind._value_ = str(value).upper(), str(value)
        kind._label_ = _specs[kind].label.title()
        return kind


class Audience(Enum):
    """The agents that see memories of a kind. An owner without an agent acts for the account and sees all of them."""

    AUTHOR = "author"
    """The agent that wrote it."""
    CONTEXT_READERS = "context_readers"
    """Agents that may read the persistent context it lives in."""
    PARTICIPANTS = "participants"
    """Agents that take part in its conversation."""
    KNOWLEDGE = "knowledge"
    """Rows of a user: the agents that act for this user. Rows of no user: the agent that wrote them, or every agent if
    the account itself stored them. An agent that acts for no user also sees the rows that it wrote for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """Rules by which near-duplicates of a kind are merged. All names are columns of its model."""

    key: tuple[str, ...] = ()
    """Columns that must be equal for two to be merged, besides holder, channel, context and trust."""
    sums: tuple[str, ...] = ()
    """Counters that move to the surviving memory. `access_count` of every kind does."""
    maxima: tuple[str, ...] = ()
    """Columns of which the surviving memory gets the greater value."""
    evidence: tuple[str, ...] = ()
    """Counters that say, besides the memories it is derived from, how well founded a memory is."""
    only: Mapping[str, str] = field(default_factory=dict)
    """Values that columns must have for a memory to be merged."""
    moves: Mapping[str, str] = field(default_factory=dict)
    """Dotted paths of functions that move rows which count for a memory, such as votes, from one memory to another, by
    the name under which a merge notes the ids that moved (see services.duplicates.merge.move_rows)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Globalizing:
    """Dotted paths of the functions by which prominent memories of a project's channel get a copy in `_global`.

    The job `globalize_facts` calls them.
    """

    find: str
    """`find(*, now)` returns the query for the prominent memories of all accounts."""
    copy: str
    """`copy(memories, *, now)` copies them and returns counts: `<plural>_promoted` and `<plural>_known` of those that
    have a copy now, `failed`, and others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSpec:
    """The declaration of one kind, for code that treats all kinds alike. The defaults suit plain knowledge."""

    name: str
    """Value of the column `kind`, at most 20 characters."""
    label: str
    """Lower-case singular noun, as headings and error messages show it."""
    plural: str
    model: str = "memory.Memory"
    """Django label of the model of its rows: one with the base MemoryRow if the kind has columns of its own."""
    audience: Audience = Audience.KNOWLEDGE
    memory_type: Literal["episodic", "semantic", "procedural"] = "semantic"
    """Documented word for the kind in the audit log and in filters of the timeline."""

    recall_weight: float = EPISODIC_WEIGHT
    """Documented weight (X8) in the ranking of a recall, relative to the largest, which is the default."""
    scopes: frozenset[str] = frozenset({"profile"})
    """Retrieval scopes (turn, workspace, profile) that may hold it. Every kind is in the scopes session and lineage of
    its conversation, and knowledge in a project's channel is in the scope workspace. The scope turn needs a condition
    of its own in retrieval.scopes."""
    has_links: bool = False
    """True if a recall that finds it reads links, so that linked candidates support one another."""
    replaces: frozenset[str] = frozenset()
    """Kinds whose earlier statements its own may replace, and whose later ones may replace its own
    (services.replacements). With any, `has_links` must be true, so that recalls order them."""
    has_reasoning_tier: bool = False
    """True if its model has a column `tier`, and rows above the account's allowed tier are hidden."""
    repeat_key: tuple[str, ...] | None = None
    """Attributes of a recalled candidate that must be equal, besides its words, for one to stand for another in the
    results. None: each stands for itself."""
    prompt_quote: Literal["note", "message", "summary"] = "note"
    """Form in which a prompt context quotes it: as a note under the kind's label and its belief, as a message under its
    conversation, or as a summary with its similarity in the section of similar episodes. Only the nearest summaries
    are in that section; others are notes."""
    resume_quote: Literal["sentences", "whole", "omitted"] = "sentences"
    """Form in which a resume packet quotes a recalled memory: single sentences, the whole text, or nothing, because
    other sections of the packet show it."""
    has_guarded_text: bool = False
    """True if links and the audit log never quote its text, because it may be reasoning of a deeper tier than the
    account's policy allows later."""
    has_beliefs: bool = False
    """True if its model keeps versions of what is believed: timelines show what is believed now, a merge confirms the
    survivor, and open ones match whenever they began."""
    has_status: bool = False
    """True if its model has a column `status`, which recalls and prompt contexts say."""
    has_access_log: bool = False
    """True if its contexts log who reads and writes it, merges included. Reads are counted from the log."""

    merging: Merging | None = None
    """Rules for merging near-duplicates, or None for kinds that are not deduplicated."""
    globalizing: Globalizing | None = None
    """How prominent memories are copied to `_global`, or None for kinds that stay in their channel."""
    is_decayed: bool = True
    """True if the job `decay` lowers the salience of memories that nobody reads."""
    is_compressed: bool = False
    """True if it holds structured turns at one of several levels of compression."""

    correctable: frozenset[str] = frozenset()
    """Columns of its model that staff may correct, besides the shared ones (services.memories.correct.CORRECTABLE)."""
    not_correctable: frozenset[str] = frozenset()
    """Shared columns whose values are repeated elsewhere, so that only the kind's own services change them."""
    lifecycles: tuple[str, ...] = ()
    """Dotted paths of subclasses of services.memories.lifecycle.Lifecycle, which update what depends on memories of
    this kind when these are corrected, marked or erased."""
    admin_page: str = "memory"
    """Name of the model whose admin page shows it. Staff may read its text with the permission to view that model."""


_specs: dict[object, KindSpec] = {}


def register(spec: KindSpec) -> None:
    """Add a kind. Call it before the first request: constants and cached SQL know the kinds registered by then."""
    if spec.name in _specs:
        raise ValueError(f"The kind {spec.name} is registered already.")
    _specs[spec.name] = spec


def unregister(name: str) -> None:
    """Remove a kind that `register` added."""
    del _specs[name]


def spec_of(kind: str) -> KindSpec:
    """Return what a kind declares. Raises LookupError for a kind that is not registered."""
    try:
        return _specs[kind]
    except KeyError as err:
        raise LookupError(f"{kind!r} is not a registered kind of memory: see memory.kinds.") from err


def all_specs() -> Iterable[KindSpec]:
    """Return the declarations of all kinds, in the order of their registration."""
    return _specs.values()


def all_kinds() -> list[Kind]:
    """Return all kinds, in the order of their registration."""
    return [Kind(spec.name) for spec in _specs.values()]


def kind_choices() -> list[tuple[str, str]]:
    """Return all kinds as choices of a form or API field."""
    return [(kind.value, kind.label) for kind in all_kinds()]


def kinds_where(condition: Callable[[KindSpec], object]) -> frozenset[Kind]:
    """Return the kinds whose declaration meets the condition."""
    return frozenset(Kind(spec.name) for spec in _specs.values() if condition(spec))


def kinds_of_types(*, episodic: bool = True, semantic: bool = True, procedural: bool = True) -> list[Kind]:
    """Return the kinds of the included documented types, sorted; empty, which excludes nothing, if all are included.

    Raises Unprocessable if none is.
    """
    included = {"episodic": episodic, "semantic": semantic, "procedural": procedural}
    if all(included.values()):
        return []
    if not any(included.values()):
        raise Unprocessable("nothing is included: include episodic, semantic or procedural memory")
    return sorted(kinds_where(lambda spec: included[spec.memory_type]))


def kinds_seen_by(audience: Audience) -> frozenset[Kind]:
    """Return the kinds that have this audience."""
    return kinds_where(lambda spec: spec.audience is audience)
