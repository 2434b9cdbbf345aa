"""Learning facts (X3, B3): a claim is stored once, believed from then on, and confirmed when it is learned again.

Learning a known claim returns the existing row: its evidence grows, and its confidence rises to the greater of the two.
A fact that was merged into another (`duplicates`) is known as that one. Open facts are equal if holder, channel and
normalized claim are equal; for past, planned or ended facts the times count as well, as something may happen twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory.audit import record_audit
from memory.errors import Conflict, Unprocessable
from memory.extraction.rules.attributes import read_meaning
from memory.identity import fact_identity
from memory.invisible_characters import is_blank
from memory.masking import masks_secrets
from memory.models import Certainty, Fact, FactVersion, Kind, Temporal
from memory.models.facts import ValidFromSource
from memory.owner import Owner
from memory.scoring import CONFIDENCE_BY_CERTAINTY
from memory.services.duplicates.resolve import end_merges, find_survivors, survivors_condition
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.resolve import holds_memory
from memory.services.facts.store import (
    begin_belief,
    entity_names_by_id,
    find_turn_conversations,
    lock_for_reference,
    revise_beliefs,
    store_fact_versions,
)
from memory.services.facts.tombstones import refuse_rejected_claims
from memory.services.memories.links import ABOUT, DERIVED_FROM, NewLink, insert_links
from memory.services.memories.store import MemoryDraft, own_vectors, store_memories
from memory_project.tracing import traced

MAX_CLAIM_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FactDraft(MemoryDraft):
    """A fact before it is learned. Without `confidence`, `certainty` implies it; without either it is 1.

    `entity_ids` are what the fact is about, `turn_ids` where it comes from; the first is its source turn. A fact that
    does not say when it begins (`valid_from`) begins when it was said: at `said_at`, else at `event_time`, else when it
    is stored.
    """

    claim: str
    confidence: float | None = None
    certainty: str = ""
    temporal: str = Temporal.CURRENT
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    said_at: datetime | None = None
    entity_ids: Sequence[UUID] = ()
    turn_ids: Sequence[UUID] = ()
    conversation_id: str = ""

    @property
    def effective_confidence(self) -> float:
        return CONFIDENCE_BY_CERTAINTY.get(self.certainty, 1.0) if self.confidence is None else self.confidence

    @property
    def begins(self) -> datetime | None:
        """The beginning of the fact; None for one that does not say when it was said, or was over by then."""
        said_at = self.said_at or self.event_time
        return self.valid_from or (None if said_at is None else self.starts_by(said_at))

    def starts_by(self, said_at: datetime) -> datetime | None:
        """Return `said_at` as the beginning, or None for a fact that was over by then."""
        return None if self.valid_to is not None and self.valid_to <= said_at else said_at

    def begins_when_stored(self, now: datetime) -> datetime | None:
        """Return the beginning of the fact if it is stored at `now`; None for one that was over when it was said."""
        return self.valid_from or self.starts_by(self.said_at or self.event_time or now)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFact:
    """The stored fact of a draft. `is_new` is False for one that was known."""

    fact: Fact
    is_new: bool


def learn_fact(owner: Owner, draft: FactDraft, *, embedded: EmbeddedTexts, now: datetime) -> LearnedFact:
    """Learn one fact, as `learn_facts` does."""
    return learn_facts(owner, [draft], embedded=embedded, now=now)[0]


@masks_secrets
@traced("learn", attributes=lambda learned: {"count": len(learned)})
def learn_facts(
    owner: Owner, drafts: Sequence[FactDraft], *, embedded: EmbeddedTexts, now: datetime
) -> list[LearnedFact]:
    """Believe these claims from now on. Returns one result for each draft, in order; all are stored or none.

    Embed the claims first (`embed_texts`), outside transactions. A fact that is believed already is confirmed: evidence
    is added, confidence rises to the greater one, and validity starts at the earlier time. Its other columns stay.

    Raises Conflict for a claim that was rejected or is in quarantine; Unprocessable for invalid values
    (`check_fact_draft`), for entities outside the owner's own knowledge and for turns that the owner may not see.
    """
    for draft in drafts:
        check_fact_draft(draft)
    if not drafts:
        return []
    with transaction.atomic():
        conversations = find_turn_conversations(owner, {turn_id for draft in drafts for turn_id in draft.turn_ids})
        return store_fact_drafts(owner, drafts, conversations=conversations, embedded=embedded, now=now)


def check_fact_draft(draft: FactDraft) -> None:
    """Raise Unprocessable for invalid values from any caller; the edges report shape errors in more detail before."""
    check_claim(draft.claim)
    if not 0 <= draft.effective_confidence <= 1:
        raise Unprocessable("confidence must be between 0 and 1")
    if draft.certainty and draft.certainty not in Certainty.values:
        raise Unprocessable(f"certainty must be one of {', '.join(Certainty.values)}")
    if draft.temporal not in Temporal.values:
        raise Unprocessable(f"temporal must be one of {', '.join(Temporal.values)}")
    check_validity(draft.valid_from, draft.valid_to)


def check_claim(claim: str) -> None:
    if is_blank(claim) or len(claim) > MAX_CLAIM_CHARACTERS or "\x00" in claim:
        raise Unprocessable(
            f"a claim must have 1 to {MAX_CLAIM_CHARACTERS} characters, not only blanks, and no NUL character"
        )


def check_validity(valid_from: datetime | None, valid_to: datetime | None) -> None:
    if any(time is not None and time.tzinfo is None for time in (valid_from, valid_to)):
        raise Unprocessable("valid_from and valid_to need a time zone")
    if valid_from is not None and valid_to is not None and valid_to <= valid_from:
        raise Unprocessable("valid_to must be after valid_from")


def check_corrected_times(fact: Fact, columns: Mapping[str, Any]) -> None:
    """Raise Unprocessable if a fact would end before it begins, be it when it was said.

    Raises Conflict if a superseded fact would have no end: it would hold beside the fact that replaced it.
    """
    valid_from, valid_to = (columns.get(name, getattr(fact, name)) for name in ("valid_from", "valid_to"))
    if fact.status == Fact.Status.SUPERSEDED and "valid_to" in columns and valid_to is None:
        raise Conflict("the fact is superseded and needs an end: reject or retract the fact that replaced it instead")
    if "valid_from" in columns or valid_from is None or valid_to is None or valid_to > valid_from:
        check_validity(valid_from, valid_to)
        return
    raise Unprocessable(
        f"valid_to must be after valid_from, which is {valid_from.isoformat()}: correct both, or set valid_from to null"
    )


@masks_secrets
def store_fact_drafts(
    owner: Owner,
    drafts: Sequence[FactDraft],
    *,
    conversations: dict[UUID, str],
    reason: FactVersion.Reason = FactVersion.Reason.LEARNED,
    embedded: EmbeddedTexts,
    now: datetime,
) -> list[LearnedFact]:
    """Learn checked drafts in the caller's transaction. `conversations` maps turn ids to their conversations' ids."""
    rows = [fact_from_draft(owner, draft, conversations=conversations, now=now) for draft in drafts]
    lock_references(owner, drafts, identities=[row.identity for row in rows], now=now)
    stored = store_memories(owner, rows, embedded=embedded, own=own_vectors(drafts), now=now)
    new = {row.identity: row for row in stored}
    # after storing, so that a rejection that was committed meanwhile is seen
    refuse_rejected_drafts(owner, drafts)
    store_fact_versions(owner, list(new.values()), reason=reason)
    facts = new | lock_known_facts(owner, [row.identity for row in rows if row.identity not in new])
    repeated = [row for row in rows if row.id != facts[row.identity].id]
    restore_facts({facts[row.identity].id: facts[row.identity] for row in repeated}.values(), now=now)
    confirm_facts(owner, [(facts[row.identity], row) for row in repeated], now=now)
    link_evidence(owner, zip([facts[row.identity] for row in rows], drafts, strict=True))
    return [LearnedFact(fact=facts[row.identity], is_new=row is facts[row.identity]) for row in rows]


def fact_from_draft(owner: Owner, draft: FactDraft, *, conversations: dict[UUID, str], now: datetime) -> Fact:
    source_turn_id = next(iter(draft.turn_ids), None)
    source_conversation = "" if source_turn_id is None else conversations.get(source_turn_id, "")
    begins = draft.begins_when_stored(now)
    is_said = begins is not None and draft.valid_from is None
    fact = Fact(
        kind=Kind.FACT,
        conversation_id=draft.conversation_id or source_conversation,
        text=draft.claim,
        confidence=draft.effective_confidence,
        certainty=draft.certainty,
        temporal=draft.temporal,
        valid_from=begins,
        valid_to=draft.valid_to,
        valid_from_source=ValidFromSource.SAID if is_said else ValidFromSource.STATED if begins else None,
        attribute=read_meaning(draft.claim).key,
        source_turn_id=source_turn_id,
        **draft.shared_columns(now=now),
    )
    fact.identity = identity_of_fact(owner, fact)
    begin_belief(fact, now=now)
    return fact


def identity_of_fact(owner: Owner, fact: Fact) -> str:
    """Return what identifies a believed fact within its holder's channel.

    A fact that is true now and open is one fact, whatever start it was given, and any fact is one whenever it was said.
    """
    if fact.temporal == Temporal.CURRENT and fact.valid_to is None:
        return fact_identity(owner, claim=fact.text)
    times = ["" if time is None else time.astimezone(UTC).isoformat() for time in (fact.stated_from, fact.valid_to)]
    return fact_identity(owner, claim=fact.text, valid_from=times[0], valid_to=times[1])


def lock_references(owner: Owner, drafts: Sequence[FactDraft], *, identities: Sequence[str], now: datetime) -> None:
    """Lock what the drafts refer to, and facts of the same `identities`, against deletion while the drafts are stored.

    Raises Unprocessable for deleted turns, and for entities that are not live ones of the owner's own knowledge
    (`identity.holder_key`). An owner without agent and user acts for the account and may use any of its entities.
    """
    entity_ids = {entity_id for draft in drafts for entity_id in draft.entity_ids}
    turn_ids = {turn_id for draft in drafts for turn_id in draft.turn_ids}
    locked = lock_for_reference(owner, ids=entity_ids | turn_ids, identities=identities, now=now)
    for entity_id in sorted(entity_ids):
        found = locked.get(entity_id)
        if found is None or found.kind != Kind.ENTITY or found.is_gone or not holds_memory(owner, found):
            raise Unprocessable(f"there is no entity {entity_id}")
    if gone := turn_ids - locked.keys():
        raise Unprocessable(f"there is no turn {min(gone)}")


def refuse_rejected_drafts(owner: Owner, drafts: Sequence[FactDraft]) -> None:
    """Raise Conflict if one of the claims was rejected."""
    names = entity_names_by_id(owner, {entity_id for draft in drafts for entity_id in draft.entity_ids})
    claims = [
        (draft.claim, [name for entity_id in draft.entity_ids for name in names.get(entity_id, ())]) for draft in drafts
    ]
    refuse_rejected_claims(owner, claims)


def lock_known_facts(owner: Owner, identities: Sequence[str]) -> dict[str, Fact]:
    """Lock the active facts with these identities, or the facts that those were merged into. Returns them by identity.

    No query for no identities. Raises Conflict if a fact disappeared, or another survivor came, in the meantime.
    """
    if not identities:
        return {}
    rows = Fact.objects.filter(account_id=owner.account_id)
    wanted = rows.filter(Q(identity__in=identities) | Q(survivors_condition(owner, Kind.FACT, identities)))
    locked = list(wanted.order_by("id").select_for_update(no_key=True))
    by_identity, by_id = {fact.identity: fact for fact in locked}, {fact.id: fact for fact in locked}
    # only if one is merged is there another query
    merged = [fact for fact in locked if fact.archived and fact.identity in identities]
    survivors = find_survivors(owner.account_id, [fact.id for fact in merged]) if merged else {}
    if not (by_identity.keys() >= set(identities) and by_id.keys() >= set(survivors.values())):
        raise Conflict("the same fact was changed at the same time: try again")
    known = {identity: by_identity[identity] for identity in identities}
    stand_ins = {fact.identity: by_id[survivors[fact.id]] for fact in merged if fact.id in survivors}
    return known | {identity: fact for identity, fact in stand_ins.items() if fact.status == Fact.Status.ACTIVE}


def restore_facts(facts: Iterable[Fact], *, now: datetime) -> None:
    """Make locked facts live again that were archived or have expired. Raises Conflict for one in quarantine."""
    hidden = [fact for fact in facts if is_hidden_fact(fact, now=now)]
    for fact in hidden:
        if fact.quarantined:
            raise Conflict("this claim is in quarantine; staff can release it")
        fact.archived, fact.expires_at = False, None
    if hidden:
        rows = Fact.objects.filter(account_id=hidden[0].account_id, id__in=[fact.id for fact in hidden])
        rows.update(archived=False, expires_at=None)
        end_merges(hidden[0].account_id, [fact.id for fact in hidden])


def is_hidden_fact(fact: Fact, *, now: datetime) -> bool:
    """Return True if the fact is archived, quarantined or expired."""
    return fact.archived or fact.quarantined or (fact.expires_at is not None and fact.expires_at <= now)


def confirm_facts(owner: Owner, pairs: Sequence[tuple[Fact, Fact]], *, now: datetime) -> None:
    """Raise confidence and extend validity of locked facts, given as pairs with the fact that was learned again.

    A fact changes if the second one has more confidence or starts earlier.
    """
    changed: dict[UUID, Fact] = {}
    for fact, again in pairs:
        begins = again.valid_from or now
        is_earlier = fact.valid_from is not None and begins < fact.valid_from
        if again.confidence <= fact.confidence and not is_earlier:
            continue
        fact.confidence = max(fact.unfaded_confidence, again.confidence)
        if is_earlier:
            fact.valid_from, fact.valid_from_source = again.valid_from, again.valid_from_source
        changed[fact.id] = fact
    if changed:
        revise_beliefs(owner, list(changed.values()), reason=FactVersion.Reason.CONFIRMED, now=now)
        record_audit(owner, operation="confirm", memory_type="semantic", affected_ids=list(changed))


def link_evidence(owner: Owner, pairs: Iterable[tuple[Fact, FactDraft]]) -> None:
    """Link facts to what their drafts name: ABOUT entities, DERIVED_FROM turns."""
    links = [
        NewLink(source_id=fact.id, type=link_type, target_id=target_id)
        for fact, draft in pairs
        for link_type, target_ids in ((ABOUT, draft.entity_ids), (DERIVED_FROM, draft.turn_ids))
        for target_id in target_ids
    ]
    insert_links(owner.account_id, links)
