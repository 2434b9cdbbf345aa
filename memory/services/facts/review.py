"""Facts that contradict each other: finding them, preferring the newer one, and reviews in which staff decides.

The account, else MEMORY_CONTRADICTIONS, says what happens to a fact that contradicts others: `prefer_new` supersedes
the old facts, `prefer_old` drops the new one, and `flag_review` stores it as pending and asks staff.

- Facts with the same subject and attribute contradict each other as `extraction.rules.attributes` decides, whoever
  notices it (`contradict.find_contradicted`). What only a language model takes for contradictory has to share an entity
  (or be about the user alone) and be near in meaning (`CONTRADICTION_SIMILARITY`). Where a vector is missing, nobody
  can know: staff is asked.
- A claim that is true when it is said contradicts others that are; "no longer" and "used to", undated, end them, and so
  does what ends something within a year before it was said ("left Brightwave last week"). What else is dated as over,
  and what is planned, is learned next to the old fact.
- Newer is what was said later, not what was extracted later: where two conversations are extracted in the wrong order,
  the older one's fact held until the newer one's began.
- A successor is stored where the old fact is: what corrects a fact of `_global`, wherever it is said, is known there.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max
from pgvector.django import CosineDistance

from memory.audit import record_audit
from memory.errors import Conflict, NotFound, require_found
from memory.extraction.rules.attributes import contradicts, read_meaning
from memory.extraction.rules.denials import opposites_of
from memory.extraction.rules.moves import outdates, replaces_plan
from memory.identity import digest_parts, normalize_claim
from memory.models import Certainty, Fact, FactReview, FactVersion, Kind, Link, Temporal, Vector
from memory.models.facts import ValidFromSource
from memory.models.statements import Embedding, half_vector
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.facts.copies import find_copy_ids, find_following_copies
from memory.services.facts.learn import (
    FactDraft,
    check_fact_draft,
    check_validity,
    fact_from_draft,
    identity_of_fact,
    is_hidden_fact,
    link_evidence,
    lock_references,
    refuse_rejected_drafts,
    restore_facts,
)
from memory.services.facts.lock import act_as_holder, refuse_unbelieved
from memory.services.facts.store import (
    begin_belief,
    end_beliefs,
    find_turn_conversations,
    links_from_facts,
    lock_for_change,
    lock_for_reference,
    names_about_fact,
    revise_beliefs,
    save_facts,
    store_fact_versions,
)
from memory.services.facts.supersede import believed_identity, close_fact, drop_said_start
from memory.services.facts.tombstones import refuse_rejected_claims
from memory.services.memories.links import ABOUT, DERIVED_FROM, SUPERSEDES, NewLink, insert_links
from memory.services.memories.store import own_vectors, store_memories
from memory.services.profiles import forget_preferences
from memory.services.replaced_evidence import link_replaced_evidence

CONTRADICTION_SIMILARITY = 0.5
"""Cosine of two claims from which on one may contradict the other."""
RECENT = timedelta(days=366)
"""Time before it was said in which a dated event, such as a move, ended what was known."""
NAMELESS_USER = "the user"
"""Name that extractors give to a user whose name is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A believed fact that a new one contradicts. `similarity` is None where one of the two has no vector yet.

    `said_at` is when the fact was said last. `is_sure` is True if subject and attribute decide it.
    """

    fact: Fact
    similarity: float | None
    said_at: datetime
    is_sure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The draft to learn, and the outdated facts that it replaces; empty where it is learned next to them."""

    draft: FactDraft
    outdated: Sequence[Fact]


def find_rivals(
    owner: Owner, draft: FactDraft, facts: Sequence[Fact], *, sure: Sequence[Fact] = (), embedded: EmbeddedTexts
) -> list[Rival]:
    """Return the `sure` contradicted facts, and those of `facts` that are about the same and near in meaning.

    Nearest first. Facts are about the same if they share an entity, or are both about the user.
    """
    facts = list({fact.id: fact for fact in (*sure, *facts)}.values())
    surely = {fact.id for fact in (*sure, *(fact for fact in facts if has_same_attribute(draft, fact)))}
    about: dict[UUID, set[UUID]] = defaultdict(set)
    for link in links_from_facts(facts, ABOUT) if facts else ():
        about[link.source_id].add(link.target_id)
    mine = set(draft.entity_ids)
    about_user = is_about_user(draft.claim)
    sharing = [
        fact
        for fact in facts
        if mine & about[fact.id]
        or (about_user and is_about_user(fact.text))
        or (fact.id in surely and not (is_about_name(draft.claim) and mine and about[fact.id]))
    ]
    similarities = similarities_to_claim(owner, draft.claim, sharing, embedded=embedded)
    latest = find_last_mentions(owner, sharing)
    rivals = [
        Rival(
            fact=fact,
            similarity=similarities.get(fact.id),
            said_at=latest[fact.id],
            is_sure=fact.id in surely,
        )
        for fact in sharing
    ]
    near = [
        rival
        for rival in rivals
        if rival.is_sure or rival.similarity is None or rival.similarity >= CONTRADICTION_SIMILARITY
    ]
    return sorted(near, key=lambda rival: -1.0 if rival.similarity is None else -rival.similarity)


def find_last_mentions(owner: Owner, facts: Sequence[Fact]) -> dict[UUID, datetime]:
    """Return when each fact was said last: the time of the latest turn that is its evidence, else its own."""
    mentions = Link.objects.filter(account_id=owner.account_id, source_id__in=[fact.id for fact in facts])
    latest = mentions.filter(type=DERIVED_FROM).values_list("source_id").annotate(last=Max("target__event_time"))
    return {fact.id: fact.event_time for fact in facts} | dict(latest)


def is_about_user(claim: str) -> bool:
    """Return True if a claim is about the user without a name, or somebody's of the user: "The user's wife …"."""
    return normalize_claim(claim).startswith((f"{NAMELESS_USER} ", f"{NAMELESS_USER}'s "))


def is_about_name(claim: str) -> bool:
    """Return True if the subject of a claim is a name, which stands for somebody else where the entities differ."""
    parts = read_meaning(claim).parts
    return parts is not None and not is_about_user(claim) and parts.subject[:1].isupper()


def has_same_attribute(draft: FactDraft, fact: Fact) -> bool:
    """Return True if the draft is about the subject and attribute of the fact, or ends that in the same words."""
    if draft.certainty == Certainty.UNCERTAIN:
        return False
    reading = read_meaning(draft.claim)
    known = read_meaning(fact.text)
    is_same = bool(reading.key and reading.key == known.key)
    is_ended = contradicts(reading, known) or outdates(draft.claim, fact.text)
    return is_same or is_ended or normalize_claim(fact.text) in opposites_of(draft.claim)


def similarities_to_claim(
    owner: Owner, claim: str, facts: Sequence[Fact], *, embedded: EmbeddedTexts
) -> dict[UUID, float]:
    """Return the cosines to the claim by fact, where both have vectors of the current model."""
    vector: Embedding | None = embedded.vectors.get(claim)
    if vector is None or not facts:
        return {}
    rows = Vector.objects.whole().filter(
        account_id=owner.account_id,
        memory_id__in=[fact.id for fact in facts],
        model=embedded.model,
        width=len(vector),
    )
    distances = rows.values_list("memory_id", CosineDistance("vector", half_vector(vector)))
    return {memory_id: 1 - distance for memory_id, distance in distances}


def filter_contradicted(draft: FactDraft, rivals: Sequence[Rival], *, said_at: datetime) -> list[Rival]:
    """Return the current rivals, unless the draft is planned or dated as past: what is true when said contradicts.

    A plan contradicts only that of the same thing at another time of the day, and of another home or job. A recent
    event that ends something surely contradicts that: "left Brightwave last week", "moved to Porto in May".
    """
    is_dated = draft.valid_from is not None or draft.valid_to is not None
    is_over = draft.valid_to is not None and draft.valid_to <= said_at
    if draft.temporal == Temporal.FUTURE:
        return [rival for rival in rivals if replaces_plan(draft.claim, rival.fact.text)]
    if is_over:
        return []
    current = list(filter(may_be_outdated, rivals))
    if draft.temporal == Temporal.PAST and is_dated:
        is_recent = draft.valid_from is not None and said_at - draft.valid_from < RECENT
        return [rival for rival in current if rival.is_sure and is_recent]
    return current


def may_be_outdated(rival: Rival) -> bool:
    """Return True if the rival is true now, or surely contradicted: an event such as a move, or a thing's set date."""
    return rival.is_sure or rival.fact.temporal == Temporal.CURRENT


def prefer_new(draft: FactDraft, rivals: Sequence[Rival], *, said_at: datetime) -> Verdict:
    """Let the draft replace what was said before it, and end where what was said after it begins.

    `rivals` are all facts that the draft contradicts, including plans: where a plan begins, the draft ends, unless it
    begins later itself.
    """
    since = max(said_at, draft.valid_from or said_at)
    ends = [end for rival in rivals if (end := superseded_at(rival, said_at=said_at, since=since)) is not None]
    outdated = [
        rival.fact
        for rival in filter_contradicted(draft, rivals, said_at=said_at)
        if superseded_at(rival, said_at=said_at, since=since) is None
    ]
    if ends and (draft.valid_to is None or draft.valid_to > min(ends)):
        # a start after the end is dropped: then only the end is known
        is_after = draft.valid_from is not None and draft.valid_from >= min(ends)
        draft = replace(draft, valid_from=None if is_after else draft.valid_from, valid_to=min(ends))
    if outdated and draft.begins is None and draft.temporal != Temporal.FUTURE:
        draft = replace(draft, valid_from=said_at)
    return Verdict(draft=draft, outdated=outdated)


def superseded_at(rival: Rival, *, said_at: datetime, since: datetime) -> datetime | None:
    """Return when a claim that was said at `said_at`, and is true since then or from later on, gave way to the rival.

    None if the rival gives way.
    """
    begins = rival.fact.valid_from
    if begins is not None and begins > since:
        return begins
    if not may_be_outdated(rival) or rival.said_at <= said_at:
        return None
    # the rival was said later: from its first mention on, or from the latest where the first was before the claim
    return rival.fact.event_time if rival.fact.event_time > said_at else rival.said_at


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityTimes:
    """Validity of two contradicting facts that were both true: end of the old, start of the new. None keeps a time."""

    old_valid_to: datetime | None = None
    new_valid_from: datetime | None = None


def open_review(
    owner: Owner, *, old: Fact, draft: FactDraft, similarity: float | None, embedded: EmbeddedTexts, now: datetime
) -> FactReview:
    """Store the draft as a pending fact, which nobody believes, and ask staff whether it replaces the old one.

    The same draft again, while pending, is the same fact, and with the same old fact the same review. Raises as
    `learn_facts` does, and Conflict if the old fact was deleted since it was found.
    """
    check_fact_draft(draft)
    with transaction.atomic():
        if old.id not in lock_for_reference(owner, ids=[old.id], now=now):
            raise Conflict("the contradicted fact was deleted at the same time: try again")
        conversations = find_turn_conversations(owner, draft.turn_ids)
        pending = store_pending_fact(owner, draft, conversations=conversations, embedded=embedded, now=now)
        review = FactReview(
            account_id=owner.account_id, old_fact_id=old.id, new_fact_id=pending.id, similarity=similarity
        )
        FactReview.objects.bulk_create([review], ignore_conflicts=True)
        return FactReview.objects.get(account_id=owner.account_id, old_fact_id=old.id, new_fact_id=pending.id)


def store_pending_fact(
    owner: Owner, draft: FactDraft, *, conversations: dict[UUID, str], embedded: EmbeddedTexts, now: datetime
) -> Fact:
    fact = fact_from_draft(owner, draft, conversations=conversations, now=now)
    fact.status, fact.recorded_at = Fact.Status.PENDING, None
    fact.identity = digest_parts("pending", fact.identity)
    lock_references(owner, [draft], identities=[fact.identity], now=now)
    if not store_memories(owner, [fact], embedded=embedded, own=own_vectors([draft]), now=now):
        known = Fact.objects.filter(account_id=owner.account_id, kind=fact.kind, identity=fact.identity)
        fact = known.get()
        restore_facts([fact], now=now)
    refuse_rejected_drafts(owner, [draft])
    link_evidence(owner, [(fact, draft)])
    return fact


def decide_review(
    owner: Owner,
    review_id: UUID,
    *,
    decision: FactReview.Status,
    changed_at: datetime | None = None,
    times: ValidityTimes | None = None,
    now: datetime,
) -> FactReview:
    """Decide which of two facts is believed. For staff, who act for the account.

    `accepted_new` ends the old fact at `changed_at` (by default when the new one was said, else now), where the new one
    starts unless it states a start. `kept_old` retracts the new fact. `both_true` believes both, each with its `times`.
    A hidden old fact (archived, quarantined, expired) ends all the same; a hidden new one is restored where it is
    accepted, unless it is quarantined.

    Raises NotFound; Conflict where the review is decided already, the new fact was given up in another review, rejected
    or quarantined, an equal fact is believed already, or both are true and the old one is hidden; Unprocessable for
    times that end before they begin.
    """
    try:
        with transaction.atomic():
            review = lock_review(owner, review_id)
            copy_ids = find_copy_ids(owner.account_id, [review.old_fact_id])
            lock_for_change(owner, {review.old_fact_id, review.new_fact_id, *copy_ids}, now=now)
            old, new = read_reviewed_facts(owner, review)
            copies: list[Fact] = []
            if decision == FactReview.Status.ACCEPTED_NEW:
                copies = find_following_copies([old], locked=copy_ids)
                accept_new_fact(owner, [old, *copies], new, changed_at=changed_at, now=now)
            elif decision == FactReview.Status.KEPT_OLD:
                # believed in the meantime or not
                if new.status in (Fact.Status.ACTIVE, Fact.Status.PENDING):
                    end_beliefs([new], status=Fact.Status.RETRACTED, now=now)
            elif decision == FactReview.Status.BOTH_TRUE:
                accept_both_facts(owner, old, new, times=times or ValidityTimes(), now=now)
            else:
                raise Conflict("a decision is accepted_new, kept_old or both_true")
            review.status, review.decided_by, review.decided_at = decision, owner.actor, now
            review.save(update_fields=["status", "decided_by", "decided_at"])
            ids, decided = [new.id, old.id, *(each.id for each in copies)], {"decision": str(decision)}
            record_audit(owner, operation="review", memory_type="semantic", affected_ids=ids, metadata=decided)
    except IntegrityError as err:
        # only the unique identity of facts can be violated here
        raise Conflict("another fact claims the same already: keep the old fact, or correct that one") from err
    return review


def lock_review(owner: Owner, review_id: UUID) -> FactReview:
    found = FactReview.objects.filter(account_id=owner.account_id, id=review_id).select_for_update().first()
    review = require_found(found, "review")
    if review.status != FactReview.Status.OPEN:
        raise Conflict(f"the review is decided already: {review.status}")
    return review


def read_reviewed_facts(owner: Owner, review: FactReview) -> tuple[Fact, Fact]:
    """Return the old and the new fact, hidden or not. Raises NotFound for facts that the owner may not see."""
    rows = Fact.objects.visible_to(owner, Kind.FACT).filter(id__in=[review.old_fact_id, review.new_fact_id])
    facts = {fact.id: fact for fact in rows}
    if len(facts) < 2:
        raise NotFound("no such review")
    return facts[review.old_fact_id], facts[review.new_fact_id]


def accept_new_fact(
    owner: Owner, olds: Sequence[Fact], new: Fact, *, changed_at: datetime | None, now: datetime
) -> None:
    """Believe the new fact and end the old ones, unless they are no longer active."""
    begins = new.stated_from or changed_at or new.valid_from or now
    for old in olds:
        if old.status == Fact.Status.ACTIVE:
            close_fact(owner, old, at=begins, now=now)
    accept_pending_fact(owner, new, valid_from=begins, now=now)
    ids = [old.id for old in olds if old.id != new.id]
    insert_links(owner.account_id, [NewLink(source_id=new.id, type=SUPERSEDES, target_id=each) for each in ids])
    link_replaced_evidence(owner.account_id, newer=new.id, older=ids)
    forget_preferences(owner, [old for old in olds if old.id != new.id], now=now)


def accept_both_facts(owner: Owner, old: Fact, new: Fact, *, times: ValidityTimes, now: datetime) -> None:
    if is_hidden_fact(old, now=now):
        raise Conflict("the old fact is archived, quarantined or expired: accept the new fact, or keep the old one")
    accept_pending_fact(owner, new, valid_from=times.new_valid_from or new.valid_from, now=now)
    if times.old_valid_to is not None and times.old_valid_to != old.valid_to:
        refuse_unbelieved(old)
        old.valid_to = times.old_valid_to
        drop_said_start(old)
        check_validity(old.valid_from, old.valid_to)
        old.identity = believed_identity(owner, old)
        revise_beliefs(owner, [old], reason=FactVersion.Reason.CORRECTED, now=now)


def accept_pending_fact(owner: Owner, new: Fact, *, valid_from: datetime | None, now: datetime) -> None:
    """Believe the new fact from now on, unless another review accepted it already."""
    if new.status == Fact.Status.ACTIVE:
        return
    if new.status != Fact.Status.PENDING:
        raise Conflict(f"the new fact is {new.status} by now, and can no longer be accepted")
    check_validity(valid_from, new.valid_to)
    holder = act_as_holder(owner, new)
    refuse_rejected_claims(holder, [(new.text, names_about_fact(new))])
    restore_facts([new], now=now)
    if valid_from != new.valid_from:
        new.valid_from, new.valid_from_source = valid_from, ValidFromSource.STATED
    new.identity = identity_of_fact(holder, new)
    begin_belief(new, now=now)
    store_fact_versions(owner, [new], reason=FactVersion.Reason.ACCEPTED)
    save_facts([new], now=now)
