"""Facts (X3, B3): learnt once, believed from then on, read as of any moment.

Learning what is known already comes back with the row that there is: its evidence grows, its confidence rises to the
greater one. One that was merged into another (`duplicates`) is known by that. Open facts are the same where holder,
channel and normalized claim are; of what is past, planned or ended, the times count, too, as something may happen
twice. What became of facts later is in `fact_changes`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from memory.audit import record
from memory.errors import Conflict, NotFound, Unprocessable
from memory.identity import fact_identity
from memory.models import Certainty, Fact, FactVersion, Kind, Memory, Temporal
from memory.models.facts import true_at
from memory.owner import Owner
from memory.retrieval.facts import FactsFound, search_facts
from memory.scoring import CONFIDENCE_OF
from memory.services.duplicates.standing import standing_for, standing_rows
from memory.services.embedding.embed import Embedded
from memory.services.facts.beliefs import add_versions, begin_belief, believed_versions, renew_beliefs
from memory.services.facts.references import check_entities, find_turns, lock_shared, names_of
from memory.services.facts.tombstones import rejected_among
from memory.services.memories.links import ABOUT, DERIVED_FROM, NewLink, insert_links
from memory.services.memories.store import OwnVector, store_memories
from memory.services.recall.search import make_query, record_search
from memory_project.ids import uuid7
from memory_project.tracing import traced

LONGEST_CLAIM = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDraft:
    """A fact before it is learnt. `confidence` follows from `certainty` where it is not given, else it is 1.

    `entity_ids` are what it is about, `turn_ids` where it comes from: the first is its source turn. `own` is a vector
    that the client brought.
    """

    claim: str
    confidence: float | None = None
    certainty: str = ""
    temporal: str = Temporal.CURRENT
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    entity_ids: Sequence[UUID] = ()
    turn_ids: Sequence[UUID] = ()
    source: str = "agent"
    event_time: datetime | None = None
    conversation_id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)

    @property
    def worth(self) -> float:
        """Its confidence."""
        return CONFIDENCE_OF.get(self.certainty, 1.0) if self.confidence is None else self.confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A fact, and whether it was new."""

    fact: Fact
    is_new: bool


def learn_fact(owner: Owner, draft: FactDraft, *, embedded: Embedded, now: datetime) -> Learnt:
    """`learn_facts` of one."""
    return learn_facts(owner, [draft], embedded=embedded, now=now)[0]


@traced("learn", told=lambda learnt: {"count": len(learnt)})
def learn_facts(owner: Owner, drafts: Sequence[FactDraft], *, embedded: Embedded, now: datetime) -> list[Learnt]:
    """Believe these from now on; in the order of the drafts. All or nothing.

    Embed the claims first (`embed_texts`), outside transactions. What is believed already is confirmed: evidence is
    added, confidence rises to the greater one, and it is true from the earlier time. Its other columns stay.
    Raises Conflict for a claim that was rejected, or is in quarantine, Unprocessable for what no fact can be
    (`check_draft`), for entities that are not of the owner's own knowledge and for turns that it may not see.
    """
    for draft in drafts:
        check_draft(draft)
    if not drafts:
        return []
    with transaction.atomic():
        conversations = find_turns(owner, {turn_id for draft in drafts for turn_id in draft.turn_ids})
        return put_facts(owner, drafts, conversations=conversations, embedded=embedded, now=now)


def check_draft(draft: FactDraft) -> None:
    """Raises Unprocessable, whoever brings it: the edges refuse it more kindly."""
    check_claim(draft.claim)
    if not 0 <= draft.worth <= 1:
        raise Unprocessable("confidence is from 0 to 1")
    if draft.certainty and draft.certainty not in Certainty.values:
        raise Unprocessable(f"certainty is one of {', '.join(Certainty.values)}")
    if draft.temporal not in Temporal.values:
        raise Unprocessable(f"temporal is one of {', '.join(Temporal.values)}")
    check_span(draft.valid_from, draft.valid_to)


def check_claim(claim: str) -> None:
    if not claim.strip() or len(claim) > LONGEST_CLAIM or "\x00" in claim:
        raise Unprocessable(f"a claim has 1 to {LONGEST_CLAIM} characters, not only blanks, and no NUL")


def check_span(valid_from: datetime | None, valid_to: datetime | None) -> None:
    if any(time is not None and time.tzinfo is None for time in (valid_from, valid_to)):
        raise Unprocessable("valid_from and valid_to need a zone")
    if valid_from is not None and valid_to is not None and valid_to <= valid_from:
        raise Unprocessable("valid_to must be after valid_from")


def put_facts(
    owner: Owner,
    drafts: Sequence[FactDraft],
    *,
    conversations: dict[UUID, str],
    reason: FactVersion.Reason = FactVersion.Reason.LEARNED,
    embedded: Embedded,
    now: datetime,
) -> list[Learnt]:
    """`learn_facts` of checked drafts in the caller's transaction. `conversations` are those of the turns."""
    rows = [new_fact(owner, draft, conversations=conversations, now=now) for draft in drafts]
    hold_references(owner, drafts, identities=[row.identity for row in rows], now=now)
    own = {draft.id: draft.own for draft in drafts if draft.own is not None}
    new = {row.identity: row for row in store_memories(owner, rows, embedded=embedded, own=own, now=now)}
    # after they are stored: a rejection that was on its way meanwhile is seen
    refuse_rejected(owner, drafts)
    add_versions(owner, list(new.values()), reason=reason)
    facts = new | lock_known(owner, [row.identity for row in rows if row.identity not in new])
    told = [row for row in rows if row.id != facts[row.identity].id]
    bring_back({facts[row.identity].id: facts[row.identity] for row in told}.values(), now=now)
    confirm_facts(owner, [(facts[row.identity], row) for row in told], now=now)
    link_evidence(owner, zip([facts[row.identity] for row in rows], drafts, strict=True))
    return [Learnt(fact=facts[row.identity], is_new=row is facts[row.identity]) for row in rows]


def new_fact(owner: Owner, draft: FactDraft, *, conversations: dict[UUID, str], now: datetime) -> Fact:
    source_turn_id = next(iter(draft.turn_ids), None)
    said_in = "" if source_turn_id is None else conversations.get(source_turn_id, "")
    fact = Fact(
        id=draft.id,
        kind=Kind.FACT,
        conversation_id=draft.conversation_id or said_in,
        text=draft.claim,
        confidence=draft.worth,
        certainty=draft.certainty,
        temporal=draft.temporal,
        valid_from=draft.valid_from,
        valid_to=draft.valid_to,
        source_turn_id=source_turn_id,
        event_time=draft.event_time or now,
        source=draft.source,
        metadata=draft.metadata,
    )
    fact.identity = identity_of(owner, fact)
    begin_belief(fact, now=now)
    return fact


def identity_of(owner: Owner, fact: Fact) -> str:
    """What makes a believed fact the same again, for a holder in a channel.

    What is true now and open is one fact, whenever it is said to have begun.
    """
    if fact.temporal == Temporal.CURRENT and fact.valid_to is None:
        return fact_identity(owner, claim=fact.text)
    times = ["" if time is None else time.astimezone(UTC).isoformat() for time in (fact.valid_from, fact.valid_to)]
    return fact_identity(owner, claim=fact.text, valid_from=times[0], valid_to=times[1])


def hold_references(owner: Owner, drafts: Sequence[FactDraft], *, identities: Sequence[str], now: datetime) -> None:
    """Keep what the drafts refer to, and facts that they may be again, from going while they are stored.

    Raises Unprocessable for entities that are not there, or not of the owner's knowledge, and for turns that went.
    """
    entity_ids = {entity_id for draft in drafts for entity_id in draft.entity_ids}
    turn_ids = {turn_id for draft in drafts for turn_id in draft.turn_ids}
    locked = lock_shared(owner, ids=entity_ids | turn_ids, identities=identities, now=now)
    check_entities(owner, sorted(entity_ids), locked)
    if gone := turn_ids - locked.keys():
        raise Unprocessable(f"there is no turn {min(gone)}")


def refuse_rejected(owner: Owner, drafts: Sequence[FactDraft]) -> None:
    """Raises Conflict where one of the claims was rejected."""
    names = names_of(owner, {entity_id for draft in drafts for entity_id in draft.entity_ids})
    claims = [
        (draft.claim, [name for entity_id in draft.entity_ids for name in names.get(entity_id, ())]) for draft in drafts
    ]
    if any(rejected_among(owner, claims)):
        raise Conflict("this claim was rejected: staff may lift its tombstone")


def lock_known(owner: Owner, identities: Sequence[str]) -> dict[str, Fact]:
    """The active facts of these identities, or those that stand for them. Raises Conflict for one that went while it
    was met. No query for none."""
    if not identities:
        return {}
    rows: Any = Fact.objects.filter(account_id=owner.account_id, kind=Kind.FACT)
    wanted = rows.filter(Q(identity__in=identities) | Q(standing_rows(owner, Kind.FACT, identities)))
    locked = list(wanted.order_by("id").select_for_update(no_key=True, of=("memory_ptr", "self")))
    known = {fact.identity: fact for fact in locked}
    if not known.keys() >= set(identities):
        raise Conflict("the same fact was changed at the same time: try again")
    return {identity: known[identity] for identity in identities} | stand_ins(owner, identities, locked)


def stand_ins(owner: Owner, identities: Sequence[str], locked: Sequence[Fact]) -> dict[str, Fact]:
    """By identities of facts that were merged into another: that one, if it is believed. No query for none."""
    merged = [fact for fact in locked if fact.archived and fact.identity in identities]
    standing = standing_for(owner.account_id, [fact.id for fact in merged]) if merged else {}
    by_id = {fact.id: fact for fact in locked}
    if not by_id.keys() >= set(standing.values()):
        raise Conflict("the same fact was changed at the same time: try again")
    found = {fact.identity: by_id[standing[fact.id]] for fact in merged if fact.id in standing}
    return {identity: fact for identity, fact in found.items() if fact.status == Fact.Status.ACTIVE}


def bring_back(facts: Iterable[Fact], *, now: datetime) -> None:
    """Make locked facts live again that were archived, or have expired. Raises Conflict for one in quarantine."""
    away = [fact for fact in facts if is_away(fact, now=now)]
    for fact in away:
        if fact.quarantined:
            raise Conflict("this claim is in quarantine: staff may release it")
        fact.archived, fact.expires_at = False, None
    if away:
        Memory.objects.filter(id__in=[fact.id for fact in away]).update(archived=False, expires_at=None)


def is_away(fact: Fact, *, now: datetime) -> bool:
    """Whether nobody sees it: archived, quarantined or expired."""
    return fact.archived or fact.quarantined or (fact.expires_at is not None and fact.expires_at <= now)


def confirm_facts(owner: Owner, told: Sequence[tuple[Fact, Fact]], *, now: datetime) -> None:
    """Raise what locked facts are believed by, where they were told again with more confidence, or from earlier on."""
    changed: dict[UUID, Fact] = {}
    for fact, again in told:
        begins = again.valid_from or now
        is_earlier = fact.valid_from is not None and begins < fact.valid_from
        if again.confidence <= fact.confidence and not is_earlier:
            continue
        fact.confidence = max(fact.unfaded_confidence, again.confidence)
        fact.valid_from = again.valid_from if is_earlier else fact.valid_from
        changed[fact.id] = fact
    if changed:
        renew_beliefs(owner, list(changed.values()), reason=FactVersion.Reason.CONFIRMED, now=now)
        record(owner, operation="confirm", memory_type="semantic", affected_ids=list(changed))


def link_evidence(owner: Owner, told: Iterable[tuple[Fact, FactDraft]]) -> None:
    """ABOUT the entities, DERIVED_FROM the turns."""
    links = [
        NewLink(source_id=fact.id, type=link_type, target_id=target_id)
        for fact, draft in told
        for link_type, target_ids in ((ABOUT, draft.entity_ids), (DERIVED_FROM, draft.turn_ids))
        for target_id in target_ids
    ]
    insert_links(owner.account_id, links)


def visible_facts(
    owner: Owner,
    *,
    now: datetime,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    min_confidence: float | None = None,
) -> QuerySet[Fact]:
    """What is true now, or was at `as_of`, in the owner's channels; as believed now, or as it was at `known_at`.

    With `known_at`, claim, confidence, temporal and both times of each fact are those of the version that was
    believed then; status and everything else are of today.
    """
    rows: Any = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).live(now)
    if known_at is None:
        rows = rows.filter(true_at(as_of or now))
    else:
        rows = believed_versions(rows, true_at(as_of or now, known_at, prefix="versions__"))
    if min_confidence is not None:
        rows = rows.filter(**{f"{'' if known_at is None else 'known_'}confidence__gte": min_confidence})
    return cast("QuerySet[Fact]", rows)


def find_fact(owner: Owner, fact_id: UUID) -> Fact:
    """Whatever its status, time and channel, as it is believed now, or was last. Raises NotFound."""
    return read_facts(owner, [fact_id])[0]


def read_facts(owner: Owner, fact_ids: Sequence[UUID]) -> list[Fact]:
    """As `find_fact`, in their order. Raises NotFound unless all are there."""
    rows: Any = Fact.objects.visible_to(owner, Kind.FACT).filter(archived=False, quarantined=False, id__in=fact_ids)
    facts = {fact.id: fact for fact in rows.filter(Q(expires_at=None) | Q(expires_at__gt=Now()))}
    if not facts.keys() >= set(fact_ids):
        raise NotFound("no such fact")
    return [facts[fact_id] for fact_id in fact_ids]


def find_facts(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    own: OwnVector | None = None,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    min_confidence: float = 0.0,
    now: datetime,
) -> FactsFound:
    """The facts nearest to `text`, or to the client's own vector, of those that are true now, or at other times.

    As `visible_facts` has them. Says when meaning could not be had.
    """
    query = make_query(text, top_k=top_k, own=own)
    found = search_facts(owner, query, as_of=as_of, known_at=known_at, min_confidence=min_confidence, now=now)
    record_search(owner, text, found.hits, top_k=top_k, memory_type="semantic")
    return found
