"""Structured turns (E2): recorded whole, or slot by slot as the turn goes on; outcomes are reconciled later.

A record is numbered under the lock of its conversation's row, as turns are. A slot is told once: the same again is the
same, another text is refused, but for an outcome that is still open. What is merged into a work episode takes no more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from memory.audit import record as record_audit
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.extraction.turn_slots import Slots
from memory.models import CompressionLevel, Conversation, Participant, ReasoningTrace, TurnRecord, TurnSlot
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.conversations.lifecycle import Opening, is_id, lock_conversation, open_conversation
from memory.services.embedding.embed import Embedded
from memory.services.memories.correct import erase_memories
from memory.services.records.reasoning import KeptReasoning, ReasoningPolicy, keep_reasoning, kept_at_most, read_policy
from memory.services.records.references import References, check_references, join, lock_named
from memory.services.records.slots import (
    Changes,
    StoredSlots,
    deepen,
    find_changes,
    make_slots,
    read_slots,
    reconcile,
    seal_trace,
    store_slots,
    tokens_of,
)
from memory_project.ids import uuid7

CLOCK_SKEW = timedelta(minutes=5)
Slot = TurnSlot.Slot
Status = TurnRecord.Status


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDraft:
    """A structured turn before it is recorded, or what there is to add to one.

    `first_index` to `last_index` are the messages that it is about. `produced` and `used` name artifacts, `evidence`
    memories that it went by, `invocations` uses of tools in this conversation.
    """

    slots: Slots
    client_id: str = ""
    goal_id: UUID | None = None
    first_index: int | None = None
    last_index: int | None = None
    invocations: Sequence[UUID] = ()
    produced: Sequence[UUID] = ()
    used: Sequence[UUID] = ()
    evidence: Sequence[UUID] = ()
    event_time: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=uuid7)

    @property
    def references(self) -> References:
        return References(
            goal_id=self.goal_id,
            invocations=self.invocations,
            produced=self.produced,
            used=self.used,
            evidence=self.evidence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The record as it is now, its slots in their order, and what was kept of a reasoning that came with this call."""

    record: TurnRecord
    slots: Sequence[TurnSlot]
    is_new: bool
    kept: KeptReasoning | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A draft with what the account's `policy` keeps of it. `rows` are its slots before they are stored; embed their
    texts."""

    draft: RecordDraft
    rows: Sequence[TurnSlot]
    kept: KeptReasoning | None
    policy: ReasoningPolicy

    @property
    def texts(self) -> list[str]:
        return [row.text for row in self.rows]

    @property
    def status(self) -> str | None:
        """Of the outcome, if there is one."""
        outcome = self.draft.slots.outcome
        return None if outcome is None else outcome.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A draft on its way into a record, under the lock of its conversation."""

    owner: Owner
    conversation: Conversation
    record: TurnRecord
    prepared: Prepared
    embedded: Embedded
    now: datetime


def prepare_record(owner: Owner, draft: RecordDraft, *, now: datetime) -> Prepared:
    """Before the transaction, so that the texts can be embedded. One statement. Raises TooLarge, Unprocessable."""
    check_draft(draft, now=now)
    reasoning, policy = draft.slots.reasoning, read_policy(owner.account_id)
    kept = None if reasoning is None else keep_reasoning(reasoning, policy)
    return Prepared(draft=draft, rows=make_slots(draft.slots, kept), kept=kept, policy=policy)


def check_draft(draft: RecordDraft, *, now: datetime) -> None:
    """Raises Unprocessable."""
    first, last, moment, outcome = draft.first_index, draft.last_index, draft.event_time, draft.slots.outcome
    wrong = ""
    if (first is None) != (last is None) or (first is not None and last is not None and not 0 <= first <= last):
        wrong = "first_index and last_index go together, in this order"
    elif moment is not None and (moment.tzinfo is None or moment > now + CLOCK_SKEW):
        wrong = "its time has no zone, or lies in the future"
    elif outcome is not None and outcome.status not in Status.values:
        wrong = f"an outcome is one of: {', '.join(Status.values)}"
    elif draft.slots == Slots() and draft.references.are_of_slots:
        wrong = "what is produced, used, or gone by is linked with a slot: tell one with it"
    elif draft.client_id and not is_id(draft.client_id):
        wrong = "a client_id has at most 100 characters, no NUL and no lone surrogate"
    if wrong:
        raise Unprocessable(wrong)
    check_references(draft.references)


def record_turn(
    owner: Owner, conversation_id: str, prepared: Prepared, *, embedded: Embedded, now: datetime
) -> Recorded:
    """Record a structured turn in a conversation, which is made where there is none of this id.

    One of the same `client_id` is the same record, and gets the slots that it lacks. Raises NotFound for a conversation
    in which the agent takes no part; Conflict as `add_slots`, and for a draft without a `client_id` that is recorded
    already; Unprocessable for a slot before the one that it follows from, for messages that there are not, and for what
    is named and cannot be seen.
    """
    draft = prepared.draft
    with transaction.atomic():
        conversation = open_for_record(owner, conversation_id, now=now)
        known = find_by_client_id(conversation, draft.client_id)
        record = known or new_record(owner, conversation, draft, now=now)
        writing = Writing(
            owner=owner, conversation=conversation, record=record, prepared=prepared, embedded=embedded, now=now
        )
        return fill_new(writing) if known is None else fill_known(writing)


def add_slots(owner: Owner, record_id: UUID, prepared: Prepared, *, embedded: Embedded, now: datetime) -> Recorded:
    """Add to a record what it lacks, or reconcile its open outcome. What is there already changes nothing.

    Raises NotFound; Conflict for a slot that says something else, and for one that is merged into a work episode;
    Unprocessable as `record_turn`.
    """
    with transaction.atomic():
        conversation, record = lock_record(owner, record_id)
        writing = Writing(
            owner=owner, conversation=conversation, record=record, prepared=prepared, embedded=embedded, now=now
        )
        return fill_known(writing)


def delete_record(owner: Owner, record_id: UUID) -> None:
    """Erase it for good: its slots of every level, its raw trace. Its number is given to no other.

    Raises NotFound; Forbidden for one that another agent, or the account, recorded; Conflict for one that a work
    episode tells of.
    """
    with transaction.atomic():
        _conversation, record = lock_record(owner, record_id)
        if owner.agent_id and owner.agent_id != record.agent_id:
            raise Forbidden("who recorded the turn erases it, or the account")
        if record.level >= CompressionLevel.MERGED:
            raise Conflict("the record is merged into a work episode")
        if slots := read_slots(record).rows:
            erase_memories(owner, [row.id for row in slots])
        ReasoningTrace.objects.filter(record=record).delete()
        rows: Any = TurnRecord.objects.filter(id=record.id)
        # nothing is left that Django would have to look for
        rows._raw_delete(using=rows.db)
        audit_record(owner, "delete", record)


def find_record(owner: Owner, record_id: UUID) -> TurnRecord:
    """Raises NotFound."""
    found = TurnRecord.objects.visible_to(owner).filter(id=record_id).first()
    if found is None:
        raise NotFound("no such turn record")
    return found


def lock_record(owner: Owner, record_id: UUID) -> tuple[Conversation, TurnRecord]:
    """The record, under the lock of its conversation's row. Two statements. Raises NotFound."""
    of_record = Conversation.objects.filter(account_id=owner.account_id, records=record_id)
    conversation = of_record.defer("saved_session").select_for_update(no_key=True, of=("self",)).first()
    if conversation is None:
        raise NotFound("no such turn record")
    return conversation, find_record(owner, record_id)


def open_for_record(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """The conversation's row, locked; made where it is new. Raises NotFound where the agent takes no part in it."""
    conversation = lock_conversation(owner, conversation_id)
    if conversation is None:
        conversation = open_conversation(owner, conversation_id, opening=Opening(), now=now)
    # who made it takes part in it
    if owner.agent_id and owner.agent_id != conversation.agent_id:
        taking_part = Participant.objects.of_agent(owner).filter(conversation_id=conversation_id)
        if not taking_part.exists():
            raise NotFound("no such conversation")
    return conversation


def fill_new(writing: Writing) -> Recorded:
    record, prepared, kept = writing.record, writing.prepared, writing.prepared.kept
    rows = find_changes(record, StoredSlots(), prepared.rows, status=prepared.status).lacking
    take_over(writing)
    lock_named(writing.owner, prepared.draft.references, now=writing.now)
    record.reasoning_tier = ReasoningTier.NONE.value if kept is None else kept.tier.value
    record.tokens = record.raw_tokens = tokens_of(rows)
    insert_record(record)
    if kept is not None and kept.trace:
        seal_trace(record, kept, is_new=True)
    put_slots(writing, rows)
    if not rows:
        audit_record(writing.owner, "store", record)
    join(writing.owner, record, rows, prepared.draft.references, fresh=rows)
    writing.conversation.record_count += 1
    touch_conversation(writing)
    return Recorded(record=record, slots=rows, is_new=True, kept=kept)


def fill_known(writing: Writing) -> Recorded:
    """What adds nothing leaves the record as it is, at its version."""
    record, prepared, kept = writing.record, writing.prepared, writing.prepared.kept
    stored = read_slots(record)
    changes = find_changes(record, stored, prepared.rows, status=prepared.status)
    has_moved = take_over(writing)
    lock_named(writing.owner, prepared.draft.references, now=writing.now)
    has_trace = kept is not None and bool(kept.trace) and seal_trace(record, kept, is_new=False)
    if (changes or has_moved or has_trace) and record.level >= CompressionLevel.MERGED:
        raise Conflict("the record is merged into a work episode: record what came later as a turn of its own")
    deepen(record, changes.lacking, has_trace=has_trace)
    record.raw_tokens += tell_changes(writing, stored, changes)
    slots, latest = in_order([*stored.current, *changes.lacking]), [*stored.latest, *changes.lacking]
    fresh = latest if has_moved else changes.lacking
    join(writing.owner, record, latest, prepared.draft.references, fresh=fresh)
    if changes or has_moved or has_trace:
        save_record(writing, slots)
    if (has_moved or has_trace) and not changes:
        audit_record(writing.owner, "update", record)
    return Recorded(record=record, slots=slots, is_new=False, kept=kept and kept_at_most(kept, record.reasoning_tier))


def take_over(writing: Writing) -> bool:
    """The record's own columns, as far as the draft gives them; whether that changes any. Raises Conflict,
    Unprocessable."""
    record, draft, status = writing.record, writing.prepared.draft, writing.prepared.status
    before = (record.goal_id, record.first_index, record.last_index, record.status)
    if draft.goal_id is not None:
        if record.goal_id not in (None, draft.goal_id):
            raise Conflict("the record is of another goal already")
        record.goal_id = draft.goal_id
    if draft.last_index is not None:
        if draft.last_index >= writing.conversation.turn_count:
            raise Unprocessable(f"there is no message {draft.last_index} in the conversation")
        record.first_index, record.last_index = draft.first_index, draft.last_index
    if status is not None and record.status == Status.OPEN:
        # of a settled one, what is told again was said before
        record.status = status
    return before != (record.goal_id, record.first_index, record.last_index, record.status)


def put_slots(writing: Writing, rows: Sequence[TurnSlot]) -> None:
    if not rows:
        insert_participants(writing.owner, conversation_ids=[writing.record.conversation_id])
        return
    moment, embedded, now = writing.prepared.draft.event_time or writing.now, writing.embedded, writing.now
    store_slots(writing.owner, writing.record, rows, event_time=moment, embedded=embedded, now=now)


def tell_changes(writing: Writing, stored: StoredSlots, changes: Changes) -> int:
    """Store them; how many tokens the slots have more than before, as they came."""
    if changes.lacking:
        put_slots(writing, changes.lacking)
    added = tokens_of(changes.lacking)
    if changes.outcome is not None:
        outcome, embedded = changes.outcome, writing.embedded
        added += reconcile(writing.owner, stored, outcome, embedded=embedded, now=writing.now)
    return added


def save_record(writing: Writing, slots: Sequence[TurnSlot]) -> None:
    """At its next version."""
    record = writing.record
    record.tokens = sum(slot.token_count for slot in slots)
    record.version, record.updated_at = record.version + 1, writing.now
    columns = ("status", "goal", "first_index", "last_index", "reasoning_tier", "tokens", "raw_tokens")
    record.save(update_fields=[*columns, "version", "updated_at"])
    touch_conversation(writing)


def touch_conversation(writing: Writing) -> None:
    conversation = Conversation.objects.filter(id=writing.conversation.id)
    conversation.update(updated_at=writing.now, archived=False, record_count=writing.conversation.record_count)


def audit_record(owner: Owner, operation: str, record: TurnRecord) -> None:
    record_audit(
        owner,
        operation=operation,
        memory_type="turn_record",
        affected_ids=[record.id],
        conversation_id=record.conversation_id,
        session_id=record.conversation_id,
    )


def current_slots(record_ids: Sequence[UUID]) -> list[TurnSlot]:
    """The slots of records as they are told now, by record and in their order; whoever may see the records."""
    return in_order(current_rows().filter(record_id__in=record_ids))


def current_rows() -> Any:
    slots: Any = TurnSlot.objects
    return slots.filter(archived=False, quarantined=False)


def in_order(slots: Iterable[TurnSlot]) -> list[TurnSlot]:
    places = {slot: place for place, slot in enumerate(Slot.values)}
    return sorted(slots, key=lambda slot: (str(slot.record_id), places[slot.slot]))


def listed_records(owner: Owner) -> QuerySet[TurnRecord]:
    """All that the owner may see; to be filtered and ordered."""
    return TurnRecord.objects.visible_to(owner)


def slots_at(record: TurnRecord, level: int) -> list[TurnSlot]:
    """The record's slots as they were at that level, or at the nearest below it: what was compressed is still there
    as long as retention keeps it. A slot that came to a higher level as it stood is told for those below, too. Those
    that are quarantined are left out."""
    slots: Any = TurnSlot.objects
    by_slot: dict[str, TurnSlot] = {}
    for row in slots.filter(record=record).order_by("level"):
        if row.level <= level or row.slot not in by_slot:
            by_slot[row.slot] = row
    return in_order(row for row in by_slot.values() if not row.quarantined)


if TYPE_CHECKING:
    from memory.services.records.record import RecordDraft


def find_by_client_id(conversation: Conversation, client_id: str) -> TurnRecord | None:
    return TurnRecord.objects.filter(log=conversation, client_id=client_id).first() if client_id else None


def new_record(owner: Owner, conversation: Conversation, draft: "RecordDraft", *, now: datetime) -> TurnRecord:
    return TurnRecord(
        id=draft.id,
        account_id=owner.account_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id or conversation.user_id,
        channel=conversation.channel,
        conversation_id=conversation.conversation_id,
        log=conversation,
        number=conversation.record_count,
        client_id=draft.client_id,
        event_time=draft.event_time or now,
        metadata=draft.metadata,
    )


def insert_record(record: TurnRecord) -> None:
    """In the caller's transaction, which is lost where the database refuses it. Raises Conflict."""
    try:
        record.save(force_insert=True)
    except IntegrityError as err:
        if getattr(getattr(err.__cause__, "diag", None), "constraint_name", None) == "turn_records_pkey":
            raise Conflict("this draft is recorded already: one that may come again needs a client_id") from err
        raise
