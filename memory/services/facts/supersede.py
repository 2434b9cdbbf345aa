"""Changing facts: superseding, correcting, retracting and rejecting them, with the copies that follow them (`copies`).

Who may change a fact, and what is locked for it, is decided in `lock`.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from memory.audit import record_audit, texts_metadata
from memory.errors import Conflict, Unprocessable
from memory.extraction.rules.attributes import read_meaning
from memory.masking import masks_secrets
from memory.models import Fact, FactVersion, Kind, Memory, Temporal
from memory.models.facts import ValidFromSource
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.accounts.access import ExpectedVersions, check_version
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.resolve import holder_of_row, lock_holder
from memory.services.facts.copies import find_copy_ids, find_following_copies
from memory.services.facts.learn import (
    FactDraft,
    check_claim,
    check_corrected_times,
    check_fact_draft,
    identity_of_fact,
    is_hidden_fact,
    store_fact_drafts,
)
from memory.services.facts.lock import (
    act_as_holder,
    lock_fact_with_copies,
    lock_facts,
    refuse_inactive,
    refuse_unbelieved,
)
from memory.services.facts.reopen import WAS_WRONG, find_superseded_ids, reopen_superseded
from memory.services.facts.store import (
    COLUMN_OF_FIELD,
    end_beliefs,
    find_fact,
    find_turn_conversations,
    links_from_facts,
    names_about_fact,
    next_belief_at,
    revise_beliefs,
    save_facts,
)
from memory.services.facts.tombstones import (
    add_tombstone,
    filter_equal_claims,
    find_equal_claims,
    refuse_rejected_claims,
)
from memory.services.memories.links import ABOUT, SUPERSEDES, NewLink, insert_links
from memory.services.memories.store import ClientVector, TextUpdate, update_texts
from memory.services.profiles import forget_preferences
from memory.services.replaced_evidence import link_replaced_evidence

CORRECTABLE = frozenset({"claim", "confidence", "temporal", "valid_from", "valid_to"})


@masks_secrets
def supersede_fact(
    owner: Owner,
    fact_id: UUID,
    draft: FactDraft,
    *,
    also: Sequence[UUID] = (),
    expected: ExpectedVersions = None,
    withdraws: bool = True,
    embedded: EmbeddedTexts,
    now: datetime,
) -> Fact:
    """End facts where their successor begins, because the world changed. Returns the successor.

    It begins at its `valid_from`, else at its `event_time`, else now. One that is over already, and has no
    `valid_from`, has no start. An old fact that would end before its stated start never held: it is retracted. `also`
    are further facts that it supersedes.

    The successor belongs to the holder and channel of the first old fact, or of the first in `_global` if that holder
    has one: what supersedes a fact of `_global` is known there, whichever channel it was said in. It is about
    the same entities unless it names some. It may have been known already. Raises as `learn_facts` does, NotFound,
    Forbidden, Conflict where an old fact is not active, StaleVersion where the first one has none of the `expected`
    versions.

    Copies that follow the old facts are superseded as well, so that the successor is known in `_global`, too.
    Preferences that were learned from the old facts are withdrawn, unless the caller does it (`withdraws`).
    """
    check_fact_draft(draft)
    try:
        with transaction.atomic():
            olds = lock_facts_to_replace(owner, [fact_id, *also], draft, now=now)
            check_version(olds[0].version, expected)
            now = max(next_belief_at(old, now) for old in olds)
            begins = draft.begins or now
            for old in olds:
                close_fact(owner, old, at=end_of_old(old, draft, begins), now=now)
            draft = with_default_start(draft, begins)
            return store_successor(owner, olds, draft, properties={}, withdraws=withdraws, embedded=embedded, now=now)
    except IntegrityError as err:
        # only the unique identity of facts can be violated here
        raise Conflict("a fact equal to the ended one was learned at the same time: try again") from err


def end_of_old(old: Fact, draft: FactDraft, begins: datetime) -> datetime:
    """Return when a fact ends that a draft supersedes: where that begins, and not before it was said itself."""
    if old.valid_from is None or old.stated_from is not None or draft.said_at is None:
        return begins
    return max(begins, draft.said_at) if begins < old.valid_from else begins


@masks_secrets
def replace_wrong_fact(
    owner: Owner,
    fact_id: UUID,
    draft: FactDraft,
    *,
    also: Sequence[UUID] = (),
    withdraws: bool = True,
    embedded: EmbeddedTexts,
    now: datetime,
) -> Fact:
    """Retract a fact that was wrong all along; its successor holds from where it did. Returns the successor.

    Where the successor is over by that time, it has no start. `also` are further wrong facts: the successor holds from
    the earliest start of them all. Raises as `supersede_fact` does, and stores the successor in the same place.
    """
    check_fact_draft(draft)
    with transaction.atomic():
        olds = lock_facts_to_replace(owner, [fact_id, *also], draft, now=now)
        now = max(next_belief_at(old, now) for old in olds)
        draft = with_start_of_wrong(draft, olds)
        end_beliefs(olds, status=Fact.Status.SUPERSEDED, now=now)
        return store_successor(
            owner, olds, draft, properties=WAS_WRONG, withdraws=withdraws, embedded=embedded, now=now
        )


def with_start_of_wrong(draft: FactDraft, olds: Sequence[Fact]) -> FactDraft:
    """Return the draft starting where the earliest of the wrong facts did, unless it states a start or one has none."""
    begun = [(old.valid_from, old.stated_from) for old in olds if old.valid_from is not None]
    if draft.valid_from is not None or len(begun) < len(olds):
        return draft
    begins, stated = min(begun, key=lambda times: times[0])
    if stated is None:
        return replace(draft, said_at=begins)
    return with_default_start(replace(draft, said_at=None), begins)


def with_default_start(draft: FactDraft, begins: datetime | None) -> FactDraft:
    """Return the draft starting at `begins`, unless it has a start or ends before that."""
    if draft.begins is not None or begins is None or (draft.valid_to is not None and draft.valid_to <= begins):
        return draft
    return replace(draft, valid_from=begins)


def lock_facts_to_replace(owner: Owner, fact_ids: Sequence[UUID], draft: FactDraft, *, now: datetime) -> list[Fact]:
    """Lock the distinct facts, and what the draft refers to. Returns them and their active copies that follow them.

    Raises Conflict unless all facts are active.
    """
    copy_ids = find_copy_ids(owner.account_id, fact_ids)
    referenced = {*draft.entity_ids, *draft.turn_ids}
    facts = lock_facts(owner, list(dict.fromkeys(fact_ids)), alone=copy_ids, shared=referenced, now=now)
    for fact in facts:
        refuse_inactive(fact)
    copies = find_following_copies(facts, locked=copy_ids)
    return [*facts, *(each for each in copies if each.status == Fact.Status.ACTIVE)]


def close_fact(owner: Owner, old: Fact, *, at: datetime, now: datetime) -> None:
    """End a locked fact at `at`. It stays believed, unless nothing of its time is left."""
    if old.stated_from is not None and at <= old.stated_from:
        end_beliefs([old], status=Fact.Status.SUPERSEDED, now=now)
        return
    was_over = old.valid_to is not None and old.valid_to <= at
    old.status, old.valid_to = Fact.Status.SUPERSEDED, old.valid_to if was_over else at
    drop_said_start(old)
    old.identity = believed_identity(owner, old)
    if was_over:
        save_facts([old], now=now)
    else:
        revise_beliefs(owner, [old], reason=FactVersion.Reason.SUPERSEDED, now=now)


def believed_identity(owner: Owner, fact: Fact) -> str:
    """Return the identity of a locked fact that is believed.

    A closed fact keeps its claim and times as identity unless another fact has it: learning it again adds nothing.
    """
    identity = identity_of_fact(act_as_holder(owner, fact), fact)
    if fact.status == Fact.Status.ACTIVE:
        return identity
    others = Fact.objects.filter(account_id=fact.account_id, kind=Kind.FACT, identity=identity).exclude(pk=fact.pk)
    return str(fact.id) if fact.valid_to is None or others.exists() else identity


def store_successor(
    owner: Owner,
    olds: Sequence[Fact],
    draft: FactDraft,
    *,
    properties: dict[str, Any],
    withdraws: bool,
    embedded: EmbeddedTexts,
    now: datetime,
) -> Fact:
    """Learn the draft in the place of closed facts, and link it to them."""
    if not draft.entity_ids:
        draft = replace(draft, entity_ids=live_entities_of_facts(*olds, now=now))
    conversations = find_turn_conversations(owner, draft.turn_ids)
    holder = act_as_holder(owner, find_place(olds, now=now))
    successor = store_fact_drafts(holder, [draft], conversations=conversations, embedded=embedded, now=now)[0]
    new_id = successor.fact.id
    # the draft may be equal to a fact that was closed just now
    replaced = [old.id for old in olds if old.id != new_id]
    links = [NewLink(source_id=new_id, type=SUPERSEDES, target_id=old_id, properties=properties) for old_id in replaced]
    insert_links(owner.account_id, links)
    if withdraws:
        forget_preferences(owner, [old for old in olds if old.id != new_id], now=now)
    # what is to begin replaces nothing that was said yet
    is_ahead = draft.valid_from is not None and draft.valid_from > now
    if replaced and draft.turn_ids and not is_ahead:
        link_replaced_evidence(owner.account_id, newer=new_id, older=replaced)
    record_audit(owner, operation="supersede", memory_type="semantic", affected_ids=[new_id, *replaced])
    return successor.fact


def find_place(olds: Sequence[Fact], *, now: datetime) -> Fact:
    """Return the old fact whose channel gets the successor: one of `_global` of the first one's holder, else that.

    One that is hidden, such as a copy in quarantine, is known in no channel.
    """
    holder = holder_of_row(olds[0])
    known = [old for old in olds if old.channel == GLOBAL_CHANNEL and holder_of_row(old) == holder]
    return next((old for old in known if not is_hidden_fact(old, now=now)), olds[0])


def live_entities_of_facts(*facts: Fact, now: datetime) -> list[UUID]:
    """Return the ids of the live entities that the facts are about, without duplicates."""
    linked = list(dict.fromkeys(link.target_id for link in links_from_facts(facts, ABOUT)))
    rows = Memory.objects.live(now).filter(account_id=facts[0].account_id, id__in=linked)
    live = set(rows.values_list("id", flat=True))
    return [entity_id for entity_id in linked if entity_id in live]


@masks_secrets
def correct_fact(
    owner: Owner,
    fact_id: UUID,
    *,
    changes: Mapping[str, Any],
    embedded: EmbeddedTexts,
    expected: ExpectedVersions | int = None,
    own: ClientVector | None = None,
    now: datetime,
) -> Fact:
    """Correct what was wrong about a fact: `changes` (columns of CORRECTABLE) become its next belief.

    Changes that equal the stored values do nothing. Copies that follow the fact are corrected with it, or retracted
    where they cannot be. Embed a new claim first; `own` is the client's vector of it. Raises NotFound, Forbidden,
    StaleVersion; Unprocessable for invalid values; Conflict for a fact that is no longer believed, for a superseded one
    that would have no end, and for a claim that was rejected or that another fact makes already.
    """
    check_fact_changes(changes)
    try:
        with transaction.atomic():
            fact, copies = lock_fact_with_copies(owner, fact_id, expected=expected, now=now)
            refuse_unbelieved(fact)
            columns = {COLUMN_OF_FIELD.get(name, name): value for name, value in changes.items()}
            columns = {name: value for name, value in columns.items() if value != getattr(fact, name)}
            if not columns:
                return fact
            check_corrected_times(fact, columns)
            facts = [fact, *(each for each in copies if may_be_corrected(owner, each, columns))]
            ended = [each for each in copies if each not in facts]
            if "text" in columns:
                refuse_rejected_claims(act_as_holder(owner, fact), [(columns["text"], names_about_fact(fact))])
                updates = [TextUpdate(row=each, text=columns["text"], own=own) for each in facts]
                update_texts(owner, updates, embedded=embedded, now=now)
            for each in facts:
                set_corrected(owner, each, columns)
            revise_beliefs(owner, facts, reason=FactVersion.Reason.CORRECTED, now=now)
            if ended:
                end_beliefs(ended, status=Fact.Status.RETRACTED, now=now)
            affected = [each.id for each in (*facts, *ended)]
            if "text" in columns or (fact.valid_to is not None and fact.valid_to <= now):
                forget_preferences(owner, [*facts, *ended], now=now)
            texts = texts_metadata(owner, [fact.text] if "text" in columns else [])
            record_audit(owner, operation="correct", memory_type="semantic", affected_ids=affected, metadata=texts)
    except IntegrityError as err:
        # only the unique identity of facts can be violated here
        raise Conflict("another fact claims this already") from err
    return fact


def set_corrected(owner: Owner, fact: Fact, columns: Mapping[str, Any]) -> None:
    """Give a fact corrected columns, and those that follow from them. A new text has been stored before."""
    for name, value in columns.items():
        if name != "text":
            setattr(fact, name, value)
    if "text" in columns:
        fact.attribute = read_meaning(fact.text).key
    if "valid_from" in columns:
        fact.valid_from_source = None if fact.valid_from is None else ValidFromSource.STATED
    drop_said_start(fact)
    fact.identity = believed_identity(owner, fact)


def may_be_corrected(owner: Owner, copied: Fact, columns: Mapping[str, Any]) -> bool:
    """Return True if a copy can have these columns as well: its times fit, and `_global` does not know the same yet."""
    corrected = copy(copied)
    corrected.text = columns.get("text", copied.text)
    set_corrected(owner, corrected, columns)
    begins, ends = corrected.valid_from, corrected.valid_to
    if begins is not None and ends is not None and ends <= begins:
        return False
    others = Fact.objects.filter(account_id=copied.account_id, kind=Kind.FACT, identity=corrected.identity)
    return not others.exclude(pk=copied.pk).exists()


def drop_said_start(fact: Fact) -> None:
    """Let a fact that was over before it was said have no beginning: nobody stated one."""
    said_at = fact.valid_from if fact.stated_from is None else None
    if said_at is not None and fact.valid_to is not None and fact.valid_to <= said_at:
        fact.valid_from = fact.valid_from_source = None


def check_fact_changes(changes: Mapping[str, Any]) -> None:
    if refused := set(changes) - CORRECTABLE:
        allowed = ", ".join(sorted(CORRECTABLE))
        raise Unprocessable(f"{', '.join(sorted(refused))} of a fact cannot be corrected. Allowed: {allowed}")
    if "claim" in changes:
        check_claim(changes["claim"])
    if not 0 <= changes.get("confidence", 0) <= 1:
        raise Unprocessable("confidence must be between 0 and 1")
    if changes.get("temporal", Temporal.CURRENT) not in Temporal.values:
        raise Unprocessable(f"temporal must be one of {', '.join(Temporal.values)}")


def retract_fact(owner: Owner, fact_id: UUID, *, expected: ExpectedVersions | int = None, now: datetime) -> Fact:
    """End the belief in a fact; it may be learned again. What it superseded is believed again (`reopen`).

    Raises NotFound, Forbidden, StaleVersion, Conflict.
    """
    with transaction.atomic():
        olds = find_superseded_ids(owner.account_id, [fact_id])
        fact, copies = lock_fact_with_copies(owner, fact_id, also=olds, expected=expected, now=now)
        refuse_unbelieved(fact)
        retracted = [fact, *copies]
        end_beliefs(retracted, status=Fact.Status.RETRACTED, now=now)
        affected = [each.id for each in retracted] + reopen_superseded(owner, retracted, locked=olds, now=now)
        forget_preferences(owner, retracted, now=now)
        record_audit(owner, operation="retract", memory_type="semantic", affected_ids=affected)
    return fact


def reject_fact(owner: Owner, fact_id: UUID, *, expected: ExpectedVersions = None, now: datetime) -> Fact:
    """End the belief in a fact for good: a tombstone keeps its holder from learning the claim again.

    All equal claims of the holder are rejected with it (`find_equal_claims`): in other channels, copies in `_global`
    and pending ones. What they superseded is believed again (`reopen`). Raises NotFound, Forbidden, StaleVersion,
    Conflict where the fact is not believed.
    """
    with transaction.atomic():
        seen = find_fact(owner, fact_id)
        holder = act_as_holder(owner, seen)
        # no extraction may learn it again in another channel before the tombstone is visible
        lock_holder(holder)
        others = find_equal_claims(holder, seen)
        olds = find_superseded_ids(owner.account_id, [fact_id, *others])
        fact = lock_facts(owner, [fact_id], alone={*others, *olds}, now=now)[0]
        check_version(fact.version, expected)
        refuse_unbelieved(fact)
        if fact.text != seen.text:
            raise Conflict("the fact was changed at the same time: try again")
        rejected = [fact, *filter_equal_claims(fact, others)]
        end_beliefs(rejected, status=Fact.Status.REJECTED, now=now)
        forget_preferences(owner, rejected, now=now)
        add_tombstone(holder, fact.text, names_about_fact(fact), now=now)
        affected = [each.id for each in rejected] + reopen_superseded(owner, rejected, locked=olds, now=now)
        record_audit(owner, operation="reject", memory_type="semantic", affected_ids=affected)
    return fact
