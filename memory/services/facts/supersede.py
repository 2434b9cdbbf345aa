"""What becomes of facts: the world changes, we were wrong, nobody believes it any more, everybody should know it.

Whoever holds a fact changes it, the agent that learnt it, or the account; who may only read it is refused. A change
locks the fact and all that it will refer to first, in one order: of two that come at once, the second finds what
the first one made of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from memory.audit import record, texts_kept
from memory.errors import Conflict, Forbidden, Unprocessable
from memory.models import Fact, FactVersion, Kind, Memory, Temporal
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.accounts.access import Versions, check_version
from memory.services.embedding.embed import Embedded
from memory.services.entities.resolve import lock_holder
from memory.services.facts.beliefs import end_beliefs, moment_after, renew_beliefs, save_facts
from memory.services.facts.learn import (
    FactDraft,
    Learnt,
    check_claim,
    check_draft,
    check_span,
    find_fact,
    identity_of,
    put_facts,
    read_facts,
)
from memory.services.facts.references import (
    find_turns,
    holds,
    links_from,
    lock_alone,
    lock_shared,
    names_about,
    same_claims,
    still_same,
)
from memory.services.facts.tombstones import bury, rejected_among
from memory.services.memories.links import ABOUT, DERIVED_FROM, PROMOTED_FROM, SUPERSEDES, NewLink, insert_links
from memory.services.memories.store import OwnVector, Rewording, reword_memories
from memory.services.profiles import forget_preferences

CORRECTABLE = frozenset({"claim", "confidence", "temporal", "valid_from", "valid_to"})
CORRECTION = {"reason": "correction"}
"""Properties of SUPERSEDES where the old fact was wrong, rather than the world another since."""


def supersede_fact(
    owner: Owner,
    fact_id: UUID,
    draft: FactDraft,
    *,
    also: Sequence[UUID] = (),
    embedded: Embedded,
    now: datetime,
) -> Fact:
    """The world changed: the old fact ends where the new one begins (`valid_from`, now by default), and is kept.

    One that would end before it began never held: it is retracted. A new one that was over by now, and does not say
    when it began, always was. `also` are other facts that it takes the place of.

    The new one goes where the (first) old one is: it is of its holder and channel, so that what supersedes a fact of
    `_global` is known in `_global`, whichever channel it was said in. It is about the same entities where it names
    none. Returns the new fact, which may have been known already. Raises as `learn_facts` does, NotFound, Forbidden,
    Conflict where an old fact is not active.
    """
    check_draft(draft)
    try:
        with transaction.atomic():
            olds = lock_active(owner, [fact_id, *also], draft, now=now)
            now = max(moment_after(old, now) for old in olds)
            begins = draft.valid_from or now
            for old in olds:
                close_fact(owner, old, at=begins, now=now)
            return follow(owner, olds, beginning(draft, begins), properties={}, embedded=embedded, now=now)
    except IntegrityError as err:
        # the only one that is settled by the database: two facts of one identity
        raise Conflict("what is left of the old fact was learnt at the same time: try again") from err


def replace_wrong_fact(
    owner: Owner,
    fact_id: UUID,
    draft: FactDraft,
    *,
    also: Sequence[UUID] = (),
    embedded: Embedded,
    now: datetime,
) -> Fact:
    """The fact was wrong all along: it is retracted, and the new one holds from where the old one did.

    Unless it was over by then: it always was. `also` are others that were wrong as well: it holds from where the
    first of them did. Returns the new fact. Raises as `supersede_fact` does, and goes where that goes.
    """
    check_draft(draft)
    with transaction.atomic():
        olds = lock_active(owner, [fact_id, *also], draft, now=now)
        now = max(moment_after(old, now) for old in olds)
        begun = [old.valid_from for old in olds if old.valid_from is not None]
        draft = beginning(draft, min(begun) if len(begun) == len(olds) else None)
        end_beliefs(olds, status=Fact.Status.SUPERSEDED, now=now)
        return follow(owner, olds, draft, properties=CORRECTION, embedded=embedded, now=now)


def beginning(draft: FactDraft, begins: datetime | None) -> FactDraft:
    """The draft with a beginning, unless it has one, or ends before."""
    if draft.valid_from is not None or begins is None or (draft.valid_to is not None and draft.valid_to <= begins):
        return draft
    return replace(draft, valid_from=begins)


def lock_active(owner: Owner, fact_ids: Sequence[UUID], draft: FactDraft, *, now: datetime) -> list[Fact]:
    """The facts, alone, each once, with all that a draft which follows them refers to. Raises Conflict unless all are
    active."""
    facts = lock_facts(owner, list(dict.fromkeys(fact_ids)), shared={*draft.entity_ids, *draft.turn_ids}, now=now)
    for fact in facts:
        refuse_inactive(fact)
    return facts


def lock_fact(owner: Owner, fact_id: UUID, *, expected: Versions | int = None, now: datetime) -> Fact:
    """`lock_facts` of one. Raises StaleVersion, too."""
    fact = lock_facts(owner, [fact_id], now=now)[0]
    check_version(fact.version, frozenset({expected}) if isinstance(expected, int) else expected)
    return fact


def lock_facts(
    owner: Owner,
    fact_ids: Sequence[UUID],
    *,
    alone: Collection[UUID] = (),
    shared: Collection[UUID] = (),
    now: datetime,
) -> list[Fact]:
    """Facts that the owner may change, in this order, and nobody else until the transaction ends.

    With others that change with them (`alone`), and memories that something is going to refer to (`shared`). Raises
    NotFound, Forbidden where one may only be read.
    """
    read_facts(owner, fact_ids)
    lock_alone(owner, {*fact_ids, *alone}, shared=shared, now=now)
    facts = read_facts(owner, fact_ids)
    if any(owner.agent_id not in ("", fact.agent_id) and not holds(owner, fact) for fact in facts):
        raise Forbidden("who holds a fact changes it, the agent that learnt it, or the account")
    return facts


def refuse_inactive(fact: Fact) -> None:
    if fact.status != Fact.Status.ACTIVE:
        raise Conflict(f"the fact is {fact.status}, not active")


def as_holder(owner: Owner, fact: Fact) -> Owner:
    """The owner, for what goes on where the fact is: its holder and its channel, whoever acts."""
    learner = owner.agent_id if fact.user_id and owner.agent_id else fact.agent_id
    return replace(owner, agent_id=learner, user_id=fact.user_id, channel=fact.channel)


def close_fact(owner: Owner, old: Fact, *, at: datetime, now: datetime) -> None:
    """Let a locked fact be true until `at` and no longer; it stays believed, unless nothing of it is left."""
    if old.valid_from is not None and at <= old.valid_from:
        end_beliefs([old], status=Fact.Status.SUPERSEDED, now=now)
        return
    was_over = old.valid_to is not None and old.valid_to <= at
    old.status, old.valid_to = Fact.Status.SUPERSEDED, old.valid_to if was_over else at
    old.identity = believed_identity(owner, old)
    if was_over:
        save_facts([old], now=now)
    else:
        renew_beliefs(owner, [old], reason=FactVersion.Reason.SUPERSEDED, now=now)


def believed_identity(owner: Owner, fact: Fact) -> str:
    """What makes a locked fact that is believed the same again.

    One that was closed is known again by its claim and times, too, unless another fact is: who tells of them tells
    nothing new.
    """
    identity = identity_of(as_holder(owner, fact), fact)
    if fact.status == Fact.Status.ACTIVE:
        return identity
    others = Fact.objects.filter(account_id=fact.account_id, kind=Kind.FACT, identity=identity).exclude(pk=fact.pk)
    return str(fact.id) if fact.valid_to is None or others.exists() else identity


def follow(
    owner: Owner,
    olds: Sequence[Fact],
    draft: FactDraft,
    *,
    properties: dict[str, Any],
    embedded: Embedded,
    now: datetime,
) -> Fact:
    """Learn the draft in the place of facts that were closed, and link it to them."""
    if not draft.entity_ids:
        draft = replace(draft, entity_ids=entities_of(*olds, now=now))
    conversations = find_turns(owner, draft.turn_ids)
    learnt = put_facts(as_holder(owner, olds[0]), [draft], conversations=conversations, embedded=embedded, now=now)[0]
    new_id = learnt.fact.id
    # what ended just now may be the same that is told
    replaced = [old.id for old in olds if old.id != new_id]
    links = [NewLink(source_id=new_id, type=SUPERSEDES, target_id=old_id, properties=properties) for old_id in replaced]
    insert_links(owner.account_id, links)
    record(owner, operation="supersede", memory_type="semantic", affected_ids=[new_id, *replaced])
    return learnt.fact


def entities_of(*facts: Fact, now: datetime) -> list[UUID]:
    """The live entities that they are about, each once."""
    linked = list(dict.fromkeys(link.target_id for link in links_from(facts, ABOUT)))
    live = set(Memory.objects.live(now).filter(id__in=linked).values_list("id", flat=True))
    return [entity_id for entity_id in linked if entity_id in live]


def correct_fact(
    owner: Owner,
    fact_id: UUID,
    *,
    changes: Mapping[str, Any],
    embedded: Embedded,
    expected: Versions | int = None,
    own: OwnVector | None = None,
    now: datetime,
) -> Fact:
    """We were wrong about it: the fact's next belief says what it really is (columns of CORRECTABLE).

    What it says already changes nothing. Embed another claim first; `own` is the client's vector of it. Raises
    NotFound, Forbidden, StaleVersion, Unprocessable for values that no fact can have, Conflict for a fact that is
    believed no longer, for a claim that was rejected, and for one that another fact makes already.
    """
    check_changes(changes)
    try:
        with transaction.atomic():
            fact = lock_fact(owner, fact_id, expected=expected, now=now)
            refuse_unbelieved(fact)
            if not (others := differing(fact, changes)):
                return fact
            if "claim" in others:
                refuse_rejected_claim(as_holder(owner, fact), fact, others["claim"])
                rewording = Rewording(row=fact, text=others["claim"], own=own)
                reword_memories(owner, [rewording], embedded=embedded, now=now)
            correct_columns(owner, fact, others, now=now)
    except IntegrityError as err:
        # the only one that is settled by the database: two facts of one identity
        raise Conflict("another fact claims this already") from err
    return fact


def check_changes(changes: Mapping[str, Any]) -> None:
    if refused := set(changes) - CORRECTABLE:
        raise Unprocessable(f"cannot be corrected: {', '.join(sorted(refused))}")
    if "claim" in changes:
        check_claim(changes["claim"])
    if not 0 <= changes.get("confidence", 0) <= 1:
        raise Unprocessable("confidence is from 0 to 1")
    if changes.get("temporal", Temporal.CURRENT) not in Temporal.values:
        raise Unprocessable(f"temporal is one of {', '.join(Temporal.values)}")


def refuse_unbelieved(fact: Fact) -> None:
    if fact.recorded_at is None or fact.retracted_at is not None:
        raise Conflict(f"the fact is {fact.status}, and not believed")


def differing(fact: Fact, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the changes that say something else than the fact."""
    return {name: value for name, value in changes.items() if value != getattr(fact, column_of(name))}


def column_of(name: str) -> str:
    return "text" if name == "claim" else name


def refuse_rejected_claim(holder: Owner, fact: Fact, claim: str) -> None:
    if any(rejected_among(holder, [(claim, entity_names(fact))])):
        raise Conflict("this claim was rejected: staff may lift its tombstone")


def entity_names(fact: Fact) -> list[str]:
    """Of all entities that it is about, all names."""
    return names_about(fact.account_id, [fact.id]).get(fact.id, [])


def correct_columns(owner: Owner, fact: Fact, changes: Mapping[str, Any], *, now: datetime) -> None:
    for name, value in changes.items():
        setattr(fact, column_of(name), value)
    check_span(fact.valid_from, fact.valid_to)
    fact.identity = believed_identity(owner, fact)
    renew_beliefs(owner, [fact], reason=FactVersion.Reason.CORRECTED, now=now)
    texts = texts_kept(owner, [fact.text] if "claim" in changes else [])
    record(owner, operation="correct", memory_type="semantic", affected_ids=[fact.id], metadata=texts)


def retract_fact(owner: Owner, fact_id: UUID, *, expected: Versions | int = None, now: datetime) -> Fact:
    """Believe it no longer; it may be learnt again. Raises as `reject_fact` does, and StaleVersion."""
    with transaction.atomic():
        fact = lock_fact(owner, fact_id, expected=expected, now=now)
        refuse_unbelieved(fact)
        end_beliefs([fact], status=Fact.Status.RETRACTED, now=now)
        forget_preferences(owner, fact.user_id, fact_ids=[fact.id], now=now)
        record(owner, operation="retract", memory_type="semantic", affected_ids=[fact.id])
    return fact


def reject_fact(owner: Owner, fact_id: UUID, *, now: datetime) -> Fact:
    """Believe it no longer, and never again: a tombstone keeps the claim from being learnt by its holder.

    Whatever of the holder's claims the same goes with it (`same_claims`): in other channels, promoted, or pending.
    Raises NotFound, Forbidden, Conflict where it is not believed.
    """
    with transaction.atomic():
        seen = find_fact(owner, fact_id)
        holder = as_holder(owner, seen)
        # no extraction brings it back, in another channel, before the tombstone is there to be seen
        lock_holder(holder)
        others = same_claims(holder, seen)
        fact = lock_facts(owner, [fact_id], alone=others, now=now)[0]
        refuse_unbelieved(fact)
        if fact.text != seen.text:
            raise Conflict("the fact was changed at the same time: try again")
        rejected = [fact, *still_same(fact, others)]
        end_beliefs(rejected, status=Fact.Status.REJECTED, now=now)
        forget_preferences(owner, fact.user_id, fact_ids=[each.id for each in rejected], now=now)
        bury(holder, fact.text, entity_names(fact), now=now)
        record(owner, operation="reject", memory_type="semantic", affected_ids=[each.id for each in rejected])
    return fact


def promote_fact(
    owner: Owner,
    fact_id: UUID,
    *,
    reason: str,
    thresholds: Mapping[str, Any] | None = None,
    embedded: Embedded,
    now: datetime,
) -> Fact:
    """Let it be known in every channel: a copy in `_global`, PROMOTED_FROM it, of the same holder.

    Embed its claim first. Where the same is known there already, that is linked, and confirmed. Returns the copy.
    `thresholds` are those that it had to reach, for the audit log. Raises NotFound, Forbidden, Conflict where it is not
    active, or is in `_global` already.
    """
    with transaction.atomic():
        fact = lock_fact(owner, fact_id, now=now)
        refuse_inactive(fact)
        if fact.channel == GLOBAL_CHANNEL:
            raise Conflict("the fact is in _global already")
        # of whom it is, not of who promotes it: taking part in its conversation is not what promotes give
        holder = replace(owner, agent_id=fact.agent_id, user_id=fact.user_id, channel=GLOBAL_CHANNEL)
        promoted = FactVersion.Reason.PROMOTED
        learnt = put_facts(
            holder,
            [copy_of(fact, now=now)],
            conversations={},
            reason=promoted,
            embedded=embedded,
            now=moment_after(fact, now),
        )[0]
        turn_ids = link_copy(fact, learnt, reason=reason, now=now)
        snapshot = {} if thresholds is None else {"config_snapshot": dict(thresholds)}
        record_promotion(owner, fact, learnt, turn_ids=turn_ids, metadata={"reason": reason}, **snapshot)
    return learnt.fact


def copy_of(fact: Fact, *, now: datetime) -> FactDraft:
    return FactDraft(
        claim=fact.text,
        confidence=fact.unfaded_confidence,
        certainty=fact.certainty,
        temporal=fact.temporal,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        entity_ids=entities_of(fact, now=now),
        source=fact.source,
        event_time=fact.event_time,
        conversation_id=fact.conversation_id,
        metadata=fact.metadata,
    )


def link_copy(fact: Fact, learnt: Learnt, *, reason: str, now: datetime) -> list[UUID]:
    """PROMOTED_FROM the original, DERIVED_FROM the turns that it is derived from, as far as they are there still."""
    owner = Owner(account_id=fact.account_id)
    linked = [link.target_id for link in links_from([fact], DERIVED_FROM)]
    locked = lock_shared(owner, ids=linked, now=now)
    turn_ids = [turn_id for turn_id in linked if turn_id in locked]
    links = [NewLink(source_id=learnt.fact.id, type=DERIVED_FROM, target_id=turn_id) for turn_id in turn_ids]
    properties = {"reason": reason}
    links.append(NewLink(source_id=learnt.fact.id, type=PROMOTED_FROM, target_id=fact.id, properties=properties))
    insert_links(fact.account_id, links)
    if learnt.is_new and fact.source_turn_id in turn_ids:
        rows: Any = Fact.objects.filter(pk=learnt.fact.id)
        rows.update(source_turn_id=fact.source_turn_id)
        learnt.fact.source_turn_id = fact.source_turn_id
    return turn_ids


def record_promotion(
    owner: Owner, fact: Fact, learnt: Learnt, *, turn_ids: Sequence[UUID], **columns: Mapping[str, Any]
) -> None:
    said_in = set(Memory.objects.filter(id__in=turn_ids, kind=Kind.TURN).values_list("conversation_id", flat=True))
    conversations = said_in | {fact.conversation_id} - {""}
    record(
        owner,
        operation="promote",
        memory_type="semantic",
        affected_ids=[learnt.fact.id, fact.id],
        target_channels=[GLOBAL_CHANNEL],
        promoted_from_channel=fact.channel,
        promotion_confidence=fact.confidence,
        promotion_access_count=fact.access_count,
        promotion_conversation_count=len(conversations),
        **columns,
    )
