"""What becomes of an extracted fact that contradicts others: MEMORY_CONTRADICTIONS, and when which of them was said.

- `prefer_new` supersedes the old facts, `prefer_old` leaves the new one out, `flag_review` asks staff.
- Contradicting is believed only of facts that share an entity (or are both about the user alone) and whose claims are
  near in meaning (`CONTRADICTION_SIMILARITY`). Where a vector is missing, nobody can tell: staff is asked.
- What is so when it is said contradicts what is so; "no longer" and "used to", undated, end it. What is dated to be
  over, and what is planned, is learnt beside it.
- New is what was said later, not what was looked through later: of two conversations that are looked through in the
  wrong order, the older one's fact held until the newer one's began.
- A successor is where the old fact was: who corrects or changes what is known in `_global`, wherever it is said,
  changes it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db.models import Max
from pgvector.django import CosineDistance

from memory.identity import normalize_claim
from memory.models import Fact, Link, Temporal, Vector
from memory.models.binary import Embedding, half_vector
from memory.owner import Owner
from memory.services.embedding.embed import Embedded
from memory.services.facts.learn import FactDraft
from memory.services.memories.links import ABOUT, DERIVED_FROM

CONTRADICTION_SIMILARITY = 0.5
"""Cosine of two claims, from which on one may contradict the other."""
NAMELESS_USER = "the user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A believed fact that a new one contradicts. `similarity` is None where one of them has no vector yet.

    `said_at` is when it was said last.
    """

    fact: Fact
    similarity: float | None
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The draft as it is to be learnt, and the facts whose place it takes; none where it is learnt beside them."""

    draft: FactDraft
    outdated: Sequence[Fact]


def rivals_of(owner: Owner, draft: FactDraft, facts: Sequence[Fact], *, embedded: Embedded) -> list[Rival]:
    """Those of the facts that share an entity with the draft and are near it in meaning, nearest first."""
    about = entities_of(owner, facts)
    mine = set(draft.entity_ids)
    sharing = [fact for fact in facts if mine & about.get(fact.id, set()) or are_about_user(draft.claim, fact.text)]
    similarities = similarities_to(owner, draft.claim, sharing, embedded=embedded)
    said = said_last(owner, sharing)
    rivals = [
        Rival(fact=fact, similarity=similarities.get(fact.id), said_at=said.get(fact.id, fact.event_time))
        for fact in sharing
    ]
    near = [rival for rival in rivals if rival.similarity is None or rival.similarity >= CONTRADICTION_SIMILARITY]
    return sorted(near, key=lambda rival: -1.0 if rival.similarity is None else -rival.similarity)


def is_about_user(claim: str) -> bool:
    """Whether a claim is about the user, whose name nobody knows: extractors then say "The user …"."""
    return normalize_claim(claim).startswith(f"{NAMELESS_USER} ")


def are_about_user(*claims: str) -> bool:
    return all(map(is_about_user, claims))


def entities_of(owner: Owner, facts: Sequence[Fact]) -> dict[UUID, set[UUID]]:
    links = Link.objects.filter(account_id=owner.account_id, source_id__in=[fact.id for fact in facts], type=ABOUT)
    about: dict[UUID, set[UUID]] = {}
    for source_id, target_id in links.values_list("source_id", "target_id"):
        about.setdefault(source_id, set()).add(target_id)
    return about


def said_last(owner: Owner, facts: Sequence[Fact]) -> dict[UUID, datetime]:
    """When the latest turn said each of them."""
    ids = [fact.id for fact in facts]
    links = Link.objects.filter(account_id=owner.account_id, source_id__in=ids, type=DERIVED_FROM)
    return dict(links.values_list("source_id").annotate(last=Max("target__event_time")))


def similarities_to(owner: Owner, claim: str, facts: Sequence[Fact], *, embedded: Embedded) -> dict[UUID, float]:
    """Cosines, by fact, where both have vectors of the current model."""
    vector: Embedding | None = embedded.vectors.get(claim)
    if vector is None or not facts:
        return {}
    rows = Vector.objects.filter(
        account_id=owner.account_id,
        memory_id__in=[fact.id for fact in facts],
        model=embedded.model,
        width=len(vector),
    )
    distances = rows.values_list("memory_id", CosineDistance("vector", half_vector(vector)))
    return {memory_id: 1 - distance for memory_id, distance in distances}


def contradicting(draft: FactDraft, rivals: Sequence[Rival], *, said_at: datetime) -> list[Rival]:
    """Those that cannot be so beside the draft: both are so when they are said."""
    is_dated = draft.valid_from is not None or draft.valid_to is not None
    is_over = draft.valid_to is not None and draft.valid_to <= said_at
    if draft.temporal == Temporal.FUTURE or is_over or (draft.temporal == Temporal.PAST and is_dated):
        return []
    return [rival for rival in rivals if rival.fact.temporal == Temporal.CURRENT]


def prefer_new(draft: FactDraft, rivals: Sequence[Rival], *, said_at: datetime) -> Verdict:
    """The draft takes the place of what was said before it; it ends where what was said after it begins.

    `rivals` are all that it was said to contradict, plans among them: where one begins, the draft ends.
    """
    ends = [end for rival in rivals if (end := end_before(rival, said_at=said_at)) is not None]
    outdated = [
        rival.fact
        for rival in contradicting(draft, rivals, said_at=said_at)
        if end_before(rival, said_at=said_at) is None
    ]
    if ends and (draft.valid_to is None or draft.valid_to > min(ends)):
        # what is known of its beginning may lie after its end: then only the end is known
        is_after = draft.valid_from is not None and draft.valid_from >= min(ends)
        draft = replace(draft, valid_from=None if is_after else draft.valid_from, valid_to=min(ends))
    if outdated and draft.valid_from is None:
        draft = replace(draft, valid_from=said_at)
    return Verdict(draft=draft, outdated=outdated)


def end_before(rival: Rival, *, said_at: datetime) -> datetime | None:
    """When what was said at `said_at` gave way to the rival; None where it is the rival that gives way."""
    begins = rival.fact.valid_from
    if begins is not None and begins > said_at:
        return begins
    if rival.fact.temporal != Temporal.CURRENT or rival.said_at <= said_at:
        return None
    # said later, or once more: from its first saying on, or, where that was before, from the latest
    return rival.fact.event_time if rival.fact.event_time > said_at else rival.said_at
