"""Memories as they are compared before one is merged into another: what has to be equal, and which one stays."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db.models.functions import Lower

from memory.identity import holder
from memory.models import ContextEntry, EntityName, Fact, FactReview, Kind, Learning, Link, Memory, Strategy, Temporal
from memory.owner import Owner
from memory.services.duplicates.standing import taken_apart
from memory.services.duplicates.texts import differing_words
from memory.services.memories.links import ABOUT, DERIVED_FROM
from memory.tiers.base import to_json

MODELS: Mapping[str, type[Memory]] = {
    Kind.FACT: Fact,
    Kind.CONTEXT_ENTRY: ContextEntry,
    Kind.LEARNING: Learning,
    Kind.STRATEGY: Strategy,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A memory that may be merged. `about` are the entities that a fact is about, `evidence` counts what it is derived
    from, or how often it was put to use."""

    row: Any
    about: frozenset[UUID]
    evidence: int

    @property
    def id(self) -> UUID:
        return cast("UUID", self.row.id)


Pair = tuple[UUID, UUID]


def read_subjects(account_id: UUID, ids: Collection[UUID], *, now: datetime) -> dict[UUID, Subject]:
    """Those of the memories that may be merged at all, by id. Three statements, and one for each kind."""
    kinds = dict(Memory.objects.filter(account_id=account_id, id__in=ids).values_list("id", "kind"))
    rows: list[Any] = []
    for kind in sorted(set(kinds.values()) & MODELS.keys()):
        model: Any = MODELS[kind]
        of_kind = [memory_id for memory_id, its in kinds.items() if its == kind]
        rows += filter(is_mergeable, model.objects.filter(account_id=account_id, pk__in=of_kind).recallable(now))
    about, derived = links_of(account_id, [row.pk for row in rows])
    disputed = disputed_among(account_id, [row.pk for row in rows])
    return {
        row.pk: Subject(row=row, about=frozenset(about.get(row.pk, ())), evidence=derived.get(row.pk, 0) + uses_of(row))
        for row in rows
        if row.pk not in disputed
    }


def disputed_among(account_id: UUID, ids: Collection[UUID]) -> set[UUID]:
    """The facts that staff is asked about (`fact_reviews`): what becomes of one becomes of none that stands for it."""
    reviews = FactReview.objects.filter(account_id=account_id, status=FactReview.Status.OPEN, old_fact_id__in=ids)
    return set(reviews.values_list("old_fact_id", flat=True))


def links_of(account_id: UUID, ids: Sequence[UUID]) -> tuple[dict[UUID, set[UUID]], dict[UUID, int]]:
    """What each is about, and how many links say what it is derived from."""
    about: dict[UUID, set[UUID]] = {}
    derived: dict[UUID, int] = {}
    links = Link.objects.filter(account_id=account_id, source_id__in=ids, type__in=(ABOUT, DERIVED_FROM))
    for source, type_, target in links.values_list("source_id", "type", "target_id"):
        if type_ == ABOUT:
            about.setdefault(source, set()).add(target)
        else:
            derived[source] = derived.get(source, 0) + 1
    return about, derived


def is_mergeable(row: Any) -> bool:
    """Facts that are believed; entries without a key: under two keys are two things, whatever they say."""
    if isinstance(row, Fact):
        return row.status == Fact.Status.ACTIVE
    return not (isinstance(row, ContextEntry) and row.key)


def uses_of(row: Any) -> int:
    """How often it was tried by those who told how it served."""
    if isinstance(row, Strategy):
        return row.success_count + row.failure_count
    return row.helpful_count + row.unhelpful_count if isinstance(row, Learning) else 0


def place_of(subject: Subject) -> Hashable:
    """What two have to have in common, but for what they say: whose they are, where, of what sort, how far trusted."""
    row = subject.row
    held_by = holder(Owner(account_id=row.account_id, agent_id=row.agent_id, user_id=row.user_id))
    whose = (row.account_id, row.kind, held_by, row.channel, row.context_id, row.trust)
    if isinstance(row, Fact):
        is_open = row.temporal == Temporal.CURRENT and row.valid_to is None
        return (*whose, row.temporal, subject.about, None if is_open else (row.valid_from, row.valid_to))
    if isinstance(row, Strategy):
        return (*whose, row.task_type, tuple(map(str, row.tool_sequence)))
    if isinstance(row, ContextEntry):
        return (*whose, row.entry_type, row.memory_type, to_json(row.value))
    return whose


def same_pairs(subjects: Mapping[UUID, Subject], pairs: Sequence[Pair]) -> set[Pair]:
    """Those of the pairs that are of one place and say the same, and that nobody took apart. Two statements at most."""
    words: dict[Pair, frozenset[str]] = {}
    for one, other in pairs:
        if one in subjects and other in subjects and place_of(subjects[one]) == place_of(subjects[other]):
            differing = differing_words(subjects[one].row.text, subjects[other].row.text)
            if differing is not None:
                words[one, other] = differing
    if not words:
        return set()
    account_id = subjects[next(iter(words))[0]].row.account_id
    names = names_among(account_id, frozenset().union(*words.values()))
    apart = taken_apart(account_id, {each for pair in words for each in pair})
    return {pair for pair, differing in words.items() if not differing & names and frozenset(pair) not in apart}


def names_among(account_id: UUID, words: Collection[str]) -> set[str]:
    """Those of the words, in small letters, that the account knows as the name of something. No query for none."""
    if not words:
        return set()
    rows = EntityName.objects.annotate(spelt=Lower("name")).filter(account_id=account_id, spelt__in=words)
    return set(rows.values_list("spelt", flat=True))


def ranked(one: Subject, other: Subject) -> tuple[Subject, Subject]:
    """The one that stays, then the one that goes: pinned, more evidence, more reads, older."""
    first, second = sorted((one, other), key=rank_of)
    return first, second


def rank_of(subject: Subject) -> tuple[bool, int, int, UUID]:
    return (not subject.row.pinned, -subject.evidence, -subject.row.access_count, subject.id)
