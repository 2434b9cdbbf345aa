"""Recording structured turns (E2): whole, or slot by slot while the turn goes on.

A record gets its number under the lock of its conversation's row, as turns do. A slot is stored once: sending it again
changes nothing and another text is refused, except for an outcome that is still open, which is reconciled. A record
that is merged into a work episode takes no more slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from memory.audit import record_audit
from memory.dates import has_come
from memory.errors import Conflict, Forbidden, NotFound, Unprocessable, require_found
from memory.extraction.turn_slots import Slots
from memory.masking import masks_secrets
from memory.models import CompressionLevel, Conversation, Kind, Participant, ReasoningTrace, TurnRecord, TurnSlot
from memory.models.writer import clear_record_references, insert_participants
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper
from memory.services.conversations.lifecycle import ConversationDefaults, is_valid_id, open_conversation
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.correct import erase_memories
from memory.services.memories.store import store_memories
from memory.services.records.read import find_record, sort_slots
from memory.services.records.reasoning import REASON_POLICY, KeptReasoning, ReasoningPolicy, keep_reasoning, read_policy
from memory.services.records.slots import (
    MAX_REFERENCES,
    References,
    StoredSlots,
    build_slots,
    estimate_slot_tokens,
    find_slot_changes,
    link_references,
    lock_referenced_memories,
    raise_reasoning_tier,
    read_stored_slots,
    reconcile_outcome,
    store_trace,
)
from memory_project.ids import uuid7
from memory_project.postgresql.constraints import broken_constraint

Slot = TurnSlot.Slot
Status = TurnRecord.Status


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDraft(References):
    """A structured turn before it is recorded, or additions to one.

    It is about the messages `first_index` to `last_index` of its conversation.
    """

    slots: Slots
    client_id: str = ""
    first_index: int | None = None
    last_index: int | None = None
    event_time: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """A record after a call: its current slots, sorted, and what was kept of the reasoning that the call brought."""

    record: TurnRecord
    slots: Sequence[TurnSlot]
    is_new: bool
    kept: KeptReasoning | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRecord:
    """A draft with what the account's `policy` keeps of it. Embed the `texts` of its unsaved slot `rows`."""

    draft: RecordDraft
    rows: Sequence[TurnSlot]
    kept: KeptReasoning | None
    policy: ReasoningPolicy

    @property
    def texts(self) -> list[str]:
        return [row.text for row in self.rows]

    @property
    def status(self) -> str | None:
        """The status of the draft's outcome, if it has one."""
        outcome = self.draft.slots.outcome
        return None if outcome is None else outcome.status


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWrite:
    """A draft on its way into a record, under the lock of its conversation."""

    owner: Owner
    conversation: Conversation
    record: TurnRecord
    prepared: PreparedRecord
    embedded: EmbeddedTexts
    now: datetime


@masks_secrets
def prepare_record(owner: Owner, draft: RecordDraft, *, now: datetime) -> PreparedRecord:
    """Check a draft and build its slots, outside transactions, so that the texts can be embedded. One statement.

    Raises TooLarge, Unprocessable.
    """
    check_record_draft(draft, now=now)
    reasoning, policy = draft.slots.reasoning, read_policy(owner.account_id)
    kept = None if reasoning is None else keep_reasoning(reasoning, policy)
    return PreparedRecord(draft=draft, rows=build_slots(draft.slots, kept), kept=kept, policy=policy)


def check_record_draft(draft: RecordDraft, *, now: datetime) -> None:
    """Raise Unprocessable for a draft that cannot be recorded."""
    first, last, time, outcome = draft.first_index, draft.last_index, draft.event_time, draft.slots.outcome
    error = ""
    if (first is None) != (last is None) or (first is not None and last is not None and not 0 <= first <= last):
        error = "send first_index and last_index together, first_index at most last_index"
    elif time is not None and not has_come(time, now=now):
        error = "its time has no zone, or lies in the future"
    elif outcome is not None and outcome.status not in Status.values:
        error = f"the status of an outcome must be one of: {', '.join(Status.values)}"
    elif draft.slots == Slots() and (draft.produced or draft.used or draft.evidence):
        error = "produced, used and evidence are linked with a slot: send one with them"
    elif draft.client_id and not is_valid_id(draft.client_id):
        error = "a client_id has at most 100 characters, no NUL and no lone surrogate"
    elif max(map(len, (draft.invocations, draft.produced, draft.used, draft.evidence))) > MAX_REFERENCES:
        error = f"a record may name at most {MAX_REFERENCES} memories or tool invocations in each list"
    if error:
        raise Unprocessable(error)


def record_turn(
    owner: Owner, conversation_id: str, prepared: PreparedRecord, *, embedded: EmbeddedTexts, now: datetime
) -> RecordedTurn:
    """Record a structured turn in a conversation, which is created if it does not exist.

    A draft with a known `client_id` adds the missing slots to that record. Raises NotFound for a conversation in which
    the agent takes no part; Conflict as `add_slots`, and for a draft without a `client_id` that is already recorded;
    Unprocessable for a slot before the one that it follows from, for messages that do not exist, and for references
    that do not exist or cannot be seen.
    """
    draft = prepared.draft
    with transaction.atomic():
        conversation = open_conversation(owner, conversation_id, defaults=ConversationDefaults(), now=now)
        # the agent that created it takes part in it
        if owner.agent_id and owner.agent_id != conversation.agent_id:
            taking_part = Participant.objects.of_agent(owner).filter(conversation_id=conversation_id)
            if not taking_part.exists():
                raise NotFound("no such conversation")
        same = TurnRecord.objects.filter(account_id=owner.account_id, log=conversation, client_id=draft.client_id)
        known = same.first() if draft.client_id else None
        record = known or build_record(owner, conversation, draft, now=now)
        write = RecordWrite(
            owner=owner, conversation=conversation, record=record, prepared=prepared, embedded=embedded, now=now
        )
        return store_new_record(write) if known is None else extend_record(write)


def add_slots(
    owner: Owner, record_id: UUID, prepared: PreparedRecord, *, embedded: EmbeddedTexts, now: datetime
) -> RecordedTurn:
    """Add missing slots to a record, or reconcile its open outcome. Slots that it has already change nothing.

    Raises NotFound; Conflict for a slot with another content, and for a record that is merged into a work episode;
    Unprocessable as `record_turn`.
    """
    with transaction.atomic():
        conversation, record = lock_record(owner, record_id)
        write = RecordWrite(
            owner=owner, conversation=conversation, record=record, prepared=prepared, embedded=embedded, now=now
        )
        return extend_record(write)


def delete_record(owner: Owner, record_id: UUID) -> None:
    """Erase a record for good, with its slots of every level and its raw trace. Its number is not reused.

    Raises NotFound; Forbidden for an agent that did not record it; Conflict if it is merged into a work episode.
    """
    with transaction.atomic():
        _conversation, record = lock_record(owner, record_id)
        if owner.agent_id and owner.agent_id != record.agent_id:
            raise Forbidden("only the agent that recorded the turn, or the account, may erase it")
        if record.level >= CompressionLevel.MERGED:
            raise Conflict("the record is merged into a work episode")
        if slots := read_stored_slots(record).rows:
            erase_memories(owner, [row.id for row in slots])
        ReasoningTrace.objects.filter(account_id=owner.account_id, record=record).delete()
        clear_record_references(owner.account_id, [record.id])
        rows: Any = TurnRecord.objects.filter(account_id=owner.account_id, id=record.id)
        # nothing is left for Django's cascade to look for
        rows._raw_delete(using=rows.db)
        audit_turn_record(owner, "delete", record)


def lock_record(owner: Owner, record_id: UUID) -> tuple[Conversation, TurnRecord]:
    """Lock the row of a record's conversation and return both. Two statements. Raises NotFound."""
    of_record = Conversation.objects.filter(account_id=owner.account_id, records=record_id)
    conversation = of_record.defer("saved_session").select_for_update(no_key=True, of=("self",)).first()
    return require_found(conversation, "turn record"), find_record(owner, record_id)


def build_record(owner: Owner, conversation: Conversation, draft: RecordDraft, *, now: datetime) -> TurnRecord:
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


def store_new_record(write: RecordWrite) -> RecordedTurn:
    record, prepared, kept = write.record, write.prepared, write.prepared.kept
    rows = find_slot_changes(record, StoredSlots(), prepared.rows, status=prepared.status).new_slots
    apply_draft(write)
    lock_referenced_memories(write.owner, prepared.draft, now=write.now)
    record.reasoning_tier = ReasoningTier.NONE.value if kept is None else kept.tier.value
    record.tokens = record.raw_tokens = estimate_slot_tokens(rows)
    insert_record(record)
    if kept is not None and kept.trace:
        store_trace(record, kept, is_new=True)
    if rows:
        store_new_slots(write, rows)
    else:
        insert_participants(write.owner, conversation_ids=[record.conversation_id])
        audit_turn_record(write.owner, "store", record)
    link_references(write.owner, record, rows, prepared.draft, fresh=rows)
    write.conversation.record_count += 1
    touch_conversation(write)
    return RecordedTurn(record=record, slots=rows, is_new=True, kept=kept)


def insert_record(record: TurnRecord) -> None:
    """Insert a record. Raises Conflict if the draft is recorded already, which aborts the caller's transaction."""
    try:
        record.save(force_insert=True)
    except IntegrityError as err:
        if broken_constraint(err) == "turn_records_pkey":
            raise Conflict(
                "this draft is recorded already: send a client_id with a draft that may be repeated"
            ) from err
        raise


def extend_record(write: RecordWrite) -> RecordedTurn:
    """Apply a draft to a stored record. A draft that adds nothing leaves the record's version unchanged."""
    record, prepared, kept = write.record, write.prepared, write.prepared.kept
    stored = read_stored_slots(record)
    changes = find_slot_changes(record, stored, prepared.rows, status=prepared.status)
    has_moved = apply_draft(write)
    lock_referenced_memories(write.owner, prepared.draft, now=write.now)
    has_trace = kept is not None and bool(kept.trace) and store_trace(record, kept, is_new=False)
    if (changes or has_moved or has_trace) and record.level >= CompressionLevel.MERGED:
        raise Conflict("the record is merged into a work episode: record later additions as a turn of their own")
    raise_reasoning_tier(record, changes.new_slots, has_trace=has_trace)
    if changes.new_slots:
        store_new_slots(write, changes.new_slots)
        record.raw_tokens += estimate_slot_tokens(changes.new_slots)
    if changes.outcome is not None:
        embedded, now = write.embedded, write.now
        changes.outcome.event_time = prepared.draft.event_time or now
        record.raw_tokens += reconcile_outcome(write.owner, stored, changes.outcome, embedded=embedded, now=now)
    slots, latest = sort_slots([*stored.current, *changes.new_slots]), [*stored.latest, *changes.new_slots]
    fresh = latest if has_moved else changes.new_slots
    link_references(write.owner, record, latest, prepared.draft, fresh=fresh)
    if changes or has_moved or has_trace:
        save_next_version(write, slots)
    if (has_moved or has_trace) and not changes:
        audit_turn_record(write.owner, "update", record)
    if kept is not None and is_deeper(kept.tier, record.reasoning_tier):
        # a repeated reasoning may have been kept under another policy
        kept = replace(kept, tier=ReasoningTier(record.reasoning_tier), reason=REASON_POLICY)
    return RecordedTurn(record=record, slots=slots, is_new=False, kept=kept)


def apply_draft(write: RecordWrite) -> bool:
    """Set the columns that the draft gives and return whether any has changed. Raises Conflict, Unprocessable."""
    record, draft, status = write.record, write.prepared.draft, write.prepared.status
    before = (record.goal_id, record.first_index, record.last_index, record.status)
    if draft.goal_id is not None:
        if record.goal_id not in (None, draft.goal_id):
            raise Conflict("the record has another goal already")
        record.goal_id = draft.goal_id
    if draft.last_index is not None:
        if draft.last_index >= write.conversation.turn_count:
            raise Unprocessable(f"there is no message {draft.last_index} in the conversation")
        record.first_index, record.last_index = draft.first_index, draft.last_index
    if status is not None and record.status == Status.OPEN:
        # the status of a final outcome can only be sent again, not changed
        record.status = status
    return before != (record.goal_id, record.first_index, record.last_index, record.status)


def store_new_slots(write: RecordWrite, rows: Sequence[TurnSlot]) -> None:
    """Store new rows of the stored record. Their agent takes part in the conversation from now on."""
    record, event_time = write.record, write.prepared.draft.event_time or write.now
    for row in rows:
        row.kind, row.identity = Kind.TURN_SLOT, f"{record.id}:{row.slot}:{row.level}"
        row.conversation_id, row.record = record.conversation_id, record
        row.event_time, row.source = event_time, "agent"
    writer = replace(write.owner, user_id=record.user_id, channel=record.channel)
    store_memories(writer, rows, embedded=write.embedded, own={}, now=write.now)


def save_next_version(write: RecordWrite, slots: Sequence[TurnSlot]) -> None:
    record = write.record
    record.tokens = sum(slot.token_count for slot in slots)
    record.version, record.updated_at = record.version + 1, write.now
    columns = ("status", "goal", "first_index", "last_index", "reasoning_tier", "tokens", "raw_tokens")
    record.save(update_fields=[*columns, "version", "updated_at"])
    touch_conversation(write)


def touch_conversation(write: RecordWrite) -> None:
    conversation = Conversation.objects.filter(account_id=write.owner.account_id, id=write.conversation.id)
    conversation.update(updated_at=write.now, archived=False, record_count=write.conversation.record_count)


def audit_turn_record(owner: Owner, operation: str, record: TurnRecord) -> None:
    record_audit(
        owner,
        operation=operation,
        memory_type="turn_record",
        affected_ids=[record.id],
        conversation_id=record.conversation_id,
        session_id=record.conversation_id,
    )
