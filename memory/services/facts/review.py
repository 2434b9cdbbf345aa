"""Facts that contradict each other, for staff to decide on: the new one is stored, and not believed meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from pgvector.django import CosineDistance

from memory.audit import record
from memory.errors import Conflict, NotFound
from memory.identity import digest_of, normalize_claim
from memory.models import Fact, FactReview, FactVersion, Kind, Link, Temporal, Vector
from memory.models.binary import Embedding, half_vector
from memory.owner import Owner
from memory.services.embedding.embed import Embedded
from memory.services.facts.beliefs import add_versions, begin_belief, end_beliefs, renew_beliefs, save_facts
from memory.services.facts.learn import (
    FactDraft,
    bring_back,
    check_draft,
    check_span,
    hold_references,
    identity_of,
    is_away,
    link_evidence,
    new_fact,
    refuse_rejected,
)
from memory.services.facts.references import find_turns, lock_alone
from memory.services.facts.supersede import (
    as_holder,
    believed_identity,
    close_fact,
    refuse_rejected_claim,
    refuse_unbelieved,
)
from memory.services.memories.links import ABOUT, DERIVED_FROM, SUPERSEDES, NewLink, insert_links
from memory.services.memories.store import store_memories

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """When two facts that contradict each other were both true: the old one until, the new one from. None: as it is."""

    old_valid_to: datetime | None = None
    new_valid_from: datetime | None = None


def open_review(
    owner: Owner, *, old: Fact, draft: FactDraft, similarity: float | None, embedded: Embedded, now: datetime
) -> FactReview:
    """Ask staff whether the draft takes the old fact's place. It is stored as pending: nobody believes it.

    The same draft again, while it is pending, is the same fact, and with the same old one the same review. Raises as
    `learn_facts` does.
    """
    check_draft(draft)
    with transaction.atomic():
        conversations = find_turns(owner, draft.turn_ids)
        pending = put_pending(owner, draft, conversations=conversations, embedded=embedded, now=now)
        review = FactReview(
            account_id=owner.account_id, old_fact_id=old.id, new_fact_id=pending.id, similarity=similarity
        )
        FactReview.objects.bulk_create([review], ignore_conflicts=True)
        return FactReview.objects.get(account_id=owner.account_id, old_fact_id=old.id, new_fact_id=pending.id)


def put_pending(
    owner: Owner, draft: FactDraft, *, conversations: dict[UUID, str], embedded: Embedded, now: datetime
) -> Fact:
    fact = new_fact(owner, draft, conversations=conversations, now=now)
    fact.status, fact.recorded_at = Fact.Status.PENDING, None
    fact.identity = digest_of("pending", fact.identity)
    hold_references(owner, [draft], identities=[fact.identity], now=now)
    own = {} if draft.own is None else {draft.id: draft.own}
    if not store_memories(owner, [fact], embedded=embedded, own=own, now=now):
        known: Any = Fact.objects.filter(account_id=owner.account_id, kind=fact.kind, identity=fact.identity)
        fact = known.get()
        bring_back([fact], now=now)
    refuse_rejected(owner, [draft])
    link_evidence(owner, [(fact, draft)])
    return fact


def open_reviews(owner: Owner) -> QuerySet[FactReview]:
    """What is to be decided in the account, with both facts."""
    rows = FactReview.objects.filter(account_id=owner.account_id, status=FactReview.Status.OPEN)
    return rows.select_related("old_fact", "new_fact")


def decide_review(
    owner: Owner,
    review_id: UUID,
    *,
    decision: FactReview.Status,
    changed_at: datetime | None = None,
    spans: Spans | None = None,
    now: datetime,
) -> FactReview:
    """Settle which of two facts is believed. For staff, who act for the account.

    `accepted_new`: the old one ends at `changed_at` (now by default), from when on the new one holds unless it says
    when itself. `kept_old`: the new one is retracted. `both_true`: the new one is believed beside the old one, each
    with its time (`spans`). An old one that was put away (archived, quarantined, expired) ends all the same, a new one
    that is accepted comes back. Raises NotFound, Conflict where it is decided already, where the new fact was given up
    in another review, rejected or quarantined, where the same is believed already, and where both were true and the
    old one is put away; Unprocessable for spans that end before they begin.
    """
    try:
        with transaction.atomic():
            review = lock_review(owner, review_id)
            lock_alone(owner, [review.old_fact_id, review.new_fact_id], now=now)
            old, new = read_both(owner, review)
            settle(owner, old, new, decision, changed_at=changed_at, spans=spans or Spans(), now=now)
            review.status, review.decided_by, review.decided_at = decision, owner.actor, now
            review.save(update_fields=["status", "decided_by", "decided_at"])
            record(
                owner,
                operation="review",
                memory_type="semantic",
                affected_ids=[new.id, old.id],
                metadata={"decision": str(decision)},
            )
    except IntegrityError as err:
        # the only one that is settled by the database: two facts of one identity
        raise Conflict("another fact claims the same already: keep the old one, or correct that") from err
    return review


def lock_review(owner: Owner, review_id: UUID) -> FactReview:
    review = FactReview.objects.filter(account_id=owner.account_id, id=review_id).select_for_update().first()
    if review is None:
        raise NotFound("no such review")
    if review.status != FactReview.Status.OPEN:
        raise Conflict(f"it is decided already: {review.status}")
    return review


def read_both(owner: Owner, review: FactReview) -> tuple[Fact, Fact]:
    """The old and the new fact, put away or not. Raises NotFound for what the owner may not see."""
    rows: Any = Fact.objects.visible_to(owner, Kind.FACT).filter(id__in=[review.old_fact_id, review.new_fact_id])
    facts = {fact.id: fact for fact in rows}
    if len(facts) < 2:
        raise NotFound("no such review")
    return facts[review.old_fact_id], facts[review.new_fact_id]


def settle(
    owner: Owner,
    old: Fact,
    new: Fact,
    decision: FactReview.Status,
    *,
    changed_at: datetime | None,
    spans: Spans,
    now: datetime,
) -> None:
    if decision == FactReview.Status.ACCEPTED_NEW:
        accept_new(owner, old, new, changed_at=changed_at or now, now=now)
    elif decision == FactReview.Status.KEPT_OLD:
        give_up(new, now=now)
    elif decision == FactReview.Status.BOTH_TRUE:
        accept_both(owner, old, new, spans=spans, now=now)
    else:
        raise Conflict("a decision is accepted_new, kept_old or both_true")


def accept_new(owner: Owner, old: Fact, new: Fact, *, changed_at: datetime, now: datetime) -> None:
    """An old fact that is no longer active by now stays as it is."""
    begins = new.valid_from or changed_at
    if old.status == Fact.Status.ACTIVE:
        close_fact(owner, old, at=begins, now=now)
    believe_pending(owner, new, valid_from=begins, now=now)
    insert_links(owner.account_id, [NewLink(source_id=new.id, type=SUPERSEDES, target_id=old.id)])


def accept_both(owner: Owner, old: Fact, new: Fact, *, spans: Spans, now: datetime) -> None:
    if is_away(old, now=now):
        raise Conflict("the old fact was put away: accept the new one, or keep the old one")
    believe_pending(owner, new, valid_from=spans.new_valid_from or new.valid_from, now=now)
    if spans.old_valid_to is not None and spans.old_valid_to != old.valid_to:
        refuse_unbelieved(old)
        check_span(old.valid_from, spans.old_valid_to)
        old.valid_to = spans.old_valid_to
        old.identity = believed_identity(owner, old)
        renew_beliefs(owner, [old], reason=FactVersion.Reason.CORRECTED, now=now)


def believe_pending(owner: Owner, new: Fact, *, valid_from: datetime | None, now: datetime) -> None:
    """From now on. One that another review accepted already is believed already."""
    if new.status == Fact.Status.ACTIVE:
        return
    if new.status != Fact.Status.PENDING:
        raise Conflict(f"the new fact is {new.status} by now")
    check_span(valid_from, new.valid_to)
    refuse_rejected_claim(as_holder(owner, new), new, new.text)
    bring_back([new], now=now)
    new.valid_from = valid_from
    new.identity = identity_of(as_holder(owner, new), new)
    begin_belief(new, now=now)
    add_versions(owner, [new], reason=FactVersion.Reason.ACCEPTED)
    save_facts([new], now=now)


def give_up(new: Fact, *, now: datetime) -> None:
    """Retract the new fact, whether it was believed meanwhile or not."""
    if new.status in (Fact.Status.ACTIVE, Fact.Status.PENDING):
        end_beliefs([new], status=Fact.Status.RETRACTED, now=now)
