"""Comparing memories before one is merged into another: what has to be equal, and which one stays."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db.models.functions import Lower

from memory.kinds import Kind, Merging, spec_of
from memory.models import EntityName, FactReview, Link, Memory, Temporal
from memory.models.memory import model_of
from memory.services.duplicates.paraphrases import paraphrase_words
from memory.services.duplicates.resolve import find_separated_pairs
from memory.services.duplicates.texts import deduplicated_kinds, differing_words
from memory.services.entities.resolve import holder_of_row
from memory.services.items.paths import SEPARATOR
from memory.services.memories.links import ABOUT, DERIVED_FROM
from memory.tiers.base import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCandidate:
    """A memory that may be merged. `about` are the entities of a fact.

    `evidence` counts what it is derived from, or how often it was used or voted on.
    """

    row: Any
    about: frozenset[UUID]
    evidence: int

    @property
    def id(self) -> UUID:
        return cast("UUID", self.row.id)


MemoryPair = tuple[UUID, UUID]


def merging_of(kind: str) -> Merging:
    """Return how memories of a kind are merged."""
    return spec_of(kind).merging or Merging()


def read_merge_candidates(account_id: UUID, ids: Collection[UUID], *, now: datetime) -> dict[UUID, MergeCandidate]:
    """Return those of the memories that may be merged, by id. Three statements, and one for each kind."""
    kinds = dict(Memory.objects.filter(account_id=account_id, id__in=ids).values_list("id", "kind"))
    rows: list[Any] = []
    for kind in sorted(set(kinds.values()) & deduplicated_kinds()):
        model: Any = model_of(kind)
        of_kind = [memory_id for memory_id, its in kinds.items() if its == kind]
        found = model.objects.filter(account_id=account_id, pk__in=of_kind, **merging_of(kind).only)
        rows += found.recallable(now)
    about: dict[UUID, set[UUID]] = defaultdict(set)
    evidence = {row.pk: sum(getattr(row, name) for name in merging_of(row.kind).evidence) for row in rows}
    links = Link.objects.filter(account_id=account_id, source_id__in=evidence, type__in=(ABOUT, DERIVED_FROM))
    for source, type_, target in links.values_list("source_id", "type", "target_id"):
        if type_ == ABOUT:
            about[source].add(target)
        else:
            evidence[source] += 1
    # a decision on a fact in an open review must not miss the fact that it was merged into
    reviews = FactReview.objects.filter(account_id=account_id, status=FactReview.Status.OPEN)
    disputed = set(reviews.filter(old_fact_id__in=[row.pk for row in rows]).values_list("old_fact_id", flat=True))
    return {
        row.pk: MergeCandidate(row=row, about=frozenset(about[row.pk]), evidence=evidence[row.pk])
        for row in rows
        if row.pk not in disputed
    }


def merge_key(candidate: MergeCandidate) -> Hashable:
    """Return what two memories must have in common besides their texts: holder, place, sort, trust."""
    row = candidate.row
    merging = merging_of(row.kind)
    has_beliefs = spec_of(row.kind).has_beliefs
    is_open = has_beliefs and row.temporal == Temporal.CURRENT and row.valid_to is None
    # two facts are the same whenever they were said
    named = {"valid_from": "stated_from"} if has_beliefs else {}
    own = [getattr(row, named.get(name, name)) for name in (("temporal",) if is_open else merging.key)]
    shared = (row.account_id, row.kind, holder_of_row(row), row.channel, row.context_id, row.trust, candidate.about)
    # as JSON, since 1 equals True in Python
    return (*shared, *(value if isinstance(value, datetime) else to_json(value) for value in own))


def filter_duplicate_pairs(candidates: Mapping[UUID, MergeCandidate], pairs: Sequence[MemoryPair]) -> set[MemoryPair]:
    """Return the pairs with equal merge keys and texts that say the same, which nobody separated.

    Two statements at most. Whether their vectors are similar enough is known to the caller.
    """
    words: dict[MemoryPair, frozenset[str]] = {}
    for one, other in pairs:
        if one in candidates and other in candidates and merge_key(candidates[one]) == merge_key(candidates[other]):
            texts = candidates[one].row.text, candidates[other].row.text
            differing = differing_words(*texts)
            if differing is None:
                differing = paraphrase_words(*texts)
            if differing is not None and have_one_value(candidates[one].row, candidates[other].row):
                words[one, other] = differing
    if not words:
        return set()
    account_id = candidates[next(iter(words))[0]].row.account_id
    sought = frozenset().union(*words.values())
    named = EntityName.objects.annotate(spelt=Lower("name")).filter(account_id=account_id, spelt__in=sought)
    names = set(named.values_list("spelt", flat=True)) if sought else set()
    apart = find_separated_pairs(account_id, {each for pair in words for each in pair})
    return {pair for pair, differing in words.items() if not differing & names and frozenset(pair) not in apart}


def have_one_value(one: Any, other: Any) -> bool:
    """Return True for entries of contexts with the same value, and if one has no key and nothing but its text.

    A value that is read under a key stays as it was written. Memories of other kinds have no value. Items, whose keys
    have a namespace, are found by it, and so are not merged with anything.
    """
    if one.kind != Kind.CONTEXT_ENTRY:
        return True
    if SEPARATOR in one.key + other.key:
        return False
    plain = [each for each in (one, other) if not each.key and each.value is None]
    keyed = [each for each in (one, other) if each not in plain]
    return all(each.value == each.text for each in keyed) if plain else to_json(one.value) == to_json(other.value)


def rank_pair(one: MergeCandidate, other: MergeCandidate) -> tuple[MergeCandidate, MergeCandidate]:
    """Return the one that stays, then the one that goes: an entry with a key, pinned, by evidence, reads and age."""

    def need(each: MergeCandidate) -> tuple[bool, bool, int, int, UUID]:
        has_key = bool(getattr(each.row, "key", ""))
        return not has_key, not each.row.pinned, -each.evidence, -each.row.access_count, each.id

    first, second = sorted((one, other), key=need)
    return first, second
