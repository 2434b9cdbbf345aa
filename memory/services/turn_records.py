"""Structured turns (E2): recorded whole, or slot by slot as the turn goes on; outcomes are reconciled later.

A record is numbered under the lock of its conversation's row, as turns are. A slot is told once: the same again is the
same, another text is refused, but for an outcome that is still open. What is compressed takes no more slots.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from memory.audit import record as record_audit
from memory.errors import Conflict, NotFound, Unprocessable
from memory.extraction.turn_slots import Action, Observation, Outcome, Slots
from memory.models import (
    Artifact,
    CompressionLevel,
    Conversation,
    Kind,
    Memory,
    ReasoningTrace,
    ToolInvocation,
    TurnRecord,
    TurnSlot,
)
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.reasoning import is_deeper
from memory.services.conversations import Opening, find_conversation, lock_conversation, look_up, open_conversation
from memory.services.embedding import Embedded
from memory.services.links import PRODUCED, USED, WORKS_ON, NewLink, insert_links
from memory.services.memories import Rewording, reword_memories, store_memories
from memory.services.reasoning import KeptReasoning, keep_reasoning, read_policy
from memory.tokens import estimate_tokens
from memory_project.ids import uuid7

CLOCK_SKEW = timedelta(minutes=5)
MOST_NAMED = 200
"""Of the tool uses, artifacts, and memories that a record names, each."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The record as it is now, its slots in their order, and what was kept of a reasoning that came with this call."""

    record: TurnRecord
    slots: Sequence[TurnSlot]
    is_new: bool
    kept: KeptReasoning | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A draft with what its account keeps of it. `rows` are its slots before they are stored; embed their texts."""

    draft: RecordDraft
    rows: Sequence[TurnSlot]
    kept: KeptReasoning | None

    @property
    def texts(self) -> list[str]:
        return [row.text for row in self.rows]

    @property
    def status(self) -> str:
        outcome = self.draft.slots.outcome
        return Status.OPEN.value if outcome is None else outcome.status

    def row(self, slot: str) -> TurnSlot | None:
        return next((row for row in self.rows if row.slot == slot), None)


def prepare_record(owner: Owner, draft: RecordDraft, *, now: datetime) -> Prepared:
    """Before the transaction, so that the texts can be embedded. One statement. Raises Unprocessable."""
    check_draft(draft, now=now)
    slots = draft.slots
    kept = None if slots.reasoning is None else keep_reasoning(slots.reasoning, read_policy(owner.account_id))
    rows = [new_slot(slot, told) for slot, told in told_slots(slots)]
    if kept and kept.text:
        row = TurnSlot(slot=Slot.REASONING.value, text=kept.text, data=dict(kept.data), tier=kept.told_tier.value)
        row.provenance = kept.provenance.value
        rows.append(row)
    in_order = Slot.values
    return Prepared(draft=draft, rows=sorted(rows, key=lambda row: in_order.index(row.slot)), kept=kept)


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
    elif any(len(named) > MOST_NAMED for named in (draft.invocations, draft.produced, draft.used, draft.evidence)):
        wrong = f"a record names at most {MOST_NAMED} of a kind"
    if wrong:
        raise Unprocessable(wrong)


def told_slots(slots: Slots) -> list[tuple[str, Observation | Action | Outcome]]:
    """Those that are told as they come."""
    told = ((Slot.OBSERVATION, slots.observation), (Slot.ACTION, slots.action), (Slot.OUTCOME, slots.outcome))
    return [(slot.value, each) for slot, each in told if each is not None]


def new_slot(slot: str, told: Observation | Action | Outcome) -> TurnSlot:
    """Raises Unprocessable for one that says nothing."""
    text = told.text if isinstance(told, Observation) else told.tell()
    if not text.strip() or "\x00" in text:
        raise Unprocessable(f"the slot {slot} says nothing, or holds a NUL")
    data = dict(told.data)
    if isinstance(told, Action) and told.calls:
        data |= {"calls": [call.as_json() for call in told.calls], "text": told.text}
    return TurnSlot(slot=slot, text=text, data=data)


def record_turn(
    owner: Owner, conversation_id: str, prepared: Prepared, *, embedded: Embedded, now: datetime
) -> Recorded:
    """Record a structured turn in a conversation, which is made where there is none of this id.

    One of the same `client_id` is the same record, and gets the slots that it lacks. Raises NotFound for a conversation
    in which the agent takes no part; Conflict as `add_slots`; Unprocessable for a slot before the one that it follows
    from, for messages that there are not, and for what is named and cannot be seen.
    """
    with transaction.atomic():
        conversation = open_for_record(owner, conversation_id, now=now)
        known = find_by_client_id(conversation, prepared.draft.client_id)
        record = known or new_record(owner, conversation, prepared, now=now)
        return fill(owner, conversation, record, prepared, is_new=known is None, embedded=embedded, now=now)


def add_slots(owner: Owner, record_id: UUID, prepared: Prepared, *, embedded: Embedded, now: datetime) -> Recorded:
    """Add to a record what it lacks, or reconcile its open outcome. What is there already changes nothing.

    Raises NotFound; Conflict for a slot that says something else, and for one that is merged into a work episode;
    Unprocessable as `record_turn`.
    """
    conversation_id = find_record(owner, record_id).conversation_id
    with transaction.atomic():
        conversation = lock_conversation(owner, conversation_id)
        record = TurnRecord.objects.visible_to(owner).filter(id=record_id).first()
        if conversation is None or record is None:
            raise NotFound("no such turn record")
        return fill(owner, conversation, record, prepared, is_new=False, embedded=embedded, now=now)


def find_record(owner: Owner, record_id: UUID) -> TurnRecord:
    """Raises NotFound."""
    found = TurnRecord.objects.visible_to(owner).filter(id=record_id).first()
    if found is None:
        raise NotFound("no such turn record")
    return found


def open_for_record(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    if look_up(owner, conversation_id) is None and look_up(Owner(account_id=owner.account_id), conversation_id):
        raise NotFound("no such conversation")
    return open_conversation(owner, conversation_id, opening=Opening(), now=now)


def find_by_client_id(conversation: Conversation, client_id: str) -> TurnRecord | None:
    return TurnRecord.objects.filter(log=conversation, client_id=client_id).first() if client_id else None


def new_record(owner: Owner, conversation: Conversation, prepared: Prepared, *, now: datetime) -> TurnRecord:
    draft = prepared.draft
    last = TurnRecord.objects.filter(log=conversation).aggregate(last=Max("number"))["last"]
    return TurnRecord(
        id=draft.id,
        account_id=owner.account_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id or conversation.user_id,
        channel=conversation.channel,
        conversation_id=conversation.conversation_id,
        log=conversation,
        number=0 if last is None else last + 1,
        client_id=draft.client_id,
        event_time=draft.event_time or now,
        metadata=draft.metadata,
    )


def fill(
    owner: Owner,
    conversation: Conversation,
    record: TurnRecord,
    prepared: Prepared,
    *,
    is_new: bool,
    embedded: Embedded,
    now: datetime,
) -> Recorded:
    """Store what the draft adds to the record, under the lock of its conversation."""
    stored = {} if is_new else {slot.slot: slot for slot in current_slots([record.id])}
    was = (record.status, record.goal_id, record.first_index, record.last_index, record.reasoning_tier)
    lacking, reconciled = compare(record, stored, prepared)
    take_over(owner, conversation, record, prepared, now=now)
    named = lock_named(owner, record, prepared.draft, now=now)
    if is_new:
        record.tokens = record.raw_tokens = sum(estimate_tokens(row.text) for row in lacking)
        record.save(force_insert=True)
    store_slots(owner, conversation, record, lacking, embedded=embedded, now=now)
    seal_trace(record, prepared)
    if reconciled is not None:
        reconcile(owner, reconciled, prepared, embedded=embedded, now=now)
    slots = in_order([*stored.values(), *lacking])
    join(owner, record, slots, prepared.draft, named)
    is_same = was == (record.status, record.goal_id, record.first_index, record.last_index, record.reasoning_tier)
    if not is_new and (lacking or reconciled is not None or not is_same):
        save_record(record, slots, now=now)
    Conversation.objects.filter(id=conversation.id).update(updated_at=now, archived=False)
    return Recorded(record=record, slots=slots, is_new=is_new, kept=prepared.kept)


def compare(
    record: TurnRecord, stored: Mapping[str, TurnSlot], prepared: Prepared
) -> tuple[list[TurnSlot], TurnSlot | None]:
    """The slots that the record lacks, and its open outcome where the draft says another. Raises Conflict,
    Unprocessable."""
    outcome = stored.get(Slot.OUTCOME.value)
    lacking = [row for row in prepared.rows if row.slot not in stored]
    others = [row for row in prepared.rows if row.slot in stored and not says_the_same(stored[row.slot], row)]
    is_again = outcome is not None and prepared.status == record.status
    reconciled = outcome if any(row.slot == Slot.OUTCOME for row in others) or not is_again else None
    if prepared.draft.slots.outcome is None:
        reconciled = None
    if any(row.slot != Slot.OUTCOME for row in others):
        raise Conflict("a slot of this record says something else already")
    if reconciled is not None and record.status != Status.OPEN:
        raise Conflict(f"the record's outcome is settled already: {record.status}")
    if (lacking or reconciled is not None) and record.level >= CompressionLevel.MERGED:
        raise Conflict("the record is merged into a work episode: record what came later as a turn of its own")
    has_action = Slot.ACTION.value in stored or prepared.row(Slot.ACTION.value) is not None
    if prepared.draft.slots.outcome is not None and not has_action:
        raise Unprocessable("an outcome follows an action: tell the action first, or with it")
    return lacking, reconciled


def says_the_same(stored: TurnSlot, row: TurnSlot) -> bool:
    """As it came, or as it was compressed since: of that, who sends it again means the same."""
    return stored.level > CompressionLevel.RAW or (stored.text, stored.data) == (row.text, row.data)


def take_over(
    owner: Owner, conversation: Conversation, record: TurnRecord, prepared: Prepared, *, now: datetime
) -> None:
    """The record's own columns, as far as the draft gives them. Raises Conflict, Unprocessable."""
    draft = prepared.draft
    if draft.goal_id is not None:
        if record.goal_id not in (None, draft.goal_id):
            raise Conflict("the record is of another goal already")
        record.goal_id = draft.goal_id
    if draft.last_index is not None:
        if draft.last_index >= conversation.turn_count:
            raise Unprocessable(f"there is no message {draft.last_index} in the conversation")
        record.first_index, record.last_index = draft.first_index, draft.last_index
    if draft.slots.outcome is not None:
        record.status = prepared.status
    if prepared.kept is not None and is_deeper(prepared.kept.tier, record.reasoning_tier):
        record.reasoning_tier = prepared.kept.tier.value


def lock_named(owner: Owner, record: TurnRecord, draft: RecordDraft, *, now: datetime) -> Sequence[UUID]:
    """What the record names: all there, and seen by the owner. Raises Unprocessable."""
    goals = {draft.goal_id} if draft.goal_id is not None else set()
    wanted = {*draft.produced, *draft.used, *draft.evidence} | goals
    if not wanted:
        return []
    rows = Memory.objects.visible_to(owner).live(now).filter(id__in=wanted).order_by("id")
    kinds = dict(rows.select_for_update(no_key=True, of=("self",)).values_list("id", "kind"))
    if wanted - kinds.keys():
        raise Unprocessable("the record names a goal, an artifact or a memory that there is not")
    artifacts = {*draft.produced, *draft.used}
    if any(kinds[each] != Kind.ARTIFACT for each in artifacts) or any(kinds[each] != Kind.GOAL for each in goals):
        raise Unprocessable("what is produced or used is an artifact, and what is worked on is a goal")
    return sorted(kinds)


def store_slots(
    owner: Owner,
    conversation: Conversation,
    record: TurnRecord,
    rows: Sequence[TurnSlot],
    *,
    embedded: Embedded,
    now: datetime,
) -> None:
    writer = replace(owner, user_id=record.user_id, channel=record.channel)
    for row in rows:
        row.kind, row.identity = Kind.TURN_SLOT, f"{record.id}:{row.slot}:{row.level}"
        row.conversation_id, row.record = record.conversation_id, record
        row.event_time, row.source = now if record.created_at else record.event_time, "agent"
    if rows:
        store_memories(writer, rows, embedded=embedded, own={}, now=now)
    else:
        insert_participants(owner, conversation_ids=[conversation.conversation_id])
        record_audit(
            owner,
            operation="store",
            memory_type="turn_record",
            affected_ids=[record.id],
            conversation_id=record.conversation_id,
            session_id=record.conversation_id,
        )


def seal_trace(record: TurnRecord, prepared: Prepared) -> None:
    """Keep the raw trace, if there is one to keep and none is kept. Raises Conflict for another one."""
    kept = prepared.kept
    if kept is None or not kept.trace:
        return
    provenance = kept.provenance.value
    trace = ReasoningTrace(account_id=record.account_id, record=record, trace=kept.trace, provenance=provenance)
    trace.tokens = estimate_tokens(kept.trace)
    known = ReasoningTrace.objects.filter(record=record).first()
    if known is None:
        trace.save(force_insert=True)
    elif known.trace != kept.trace:
        raise Conflict("the record has another raw trace already")


def reconcile(owner: Owner, outcome: TurnSlot, prepared: Prepared, *, embedded: Embedded, now: datetime) -> None:
    """Tell an open outcome anew; what it said before is kept in its data."""
    row = prepared.row(Slot.OUTCOME.value)
    if row is None:
        return
    before = {"text": outcome.text, "until": now.isoformat()}
    outcome.data = {**row.data, "reconciled": [*outcome.data.get("reconciled", []), before]}
    reword_memories(owner, [Rewording(row=outcome, text=row.text)], embedded=embedded, now=now)
    rows: Any = TurnSlot.objects.filter(pk=outcome.pk)
    rows.update(data=outcome.data)
    record_audit(
        owner,
        operation="update",
        memory_type="episodic",
        affected_ids=[outcome.id],
        conversation_id=outcome.conversation_id,
        session_id=outcome.conversation_id,
    )


def join(
    owner: Owner, record: TurnRecord, slots: Sequence[TurnSlot], draft: RecordDraft, named: Sequence[UUID]
) -> None:
    """Link the slots with what the record names."""
    by_slot = {slot.slot: slot.id for slot in slots}
    links = (
        []
        if record.goal_id is None
        else [NewLink(source_id=slot.id, type=WORKS_ON, target_id=record.goal_id) for slot in slots]
    )
    doing, seeing = (first_of(by_slot, order) for order in (("action", "outcome"), ("observation", "reasoning")))
    if doing is not None:
        links += [NewLink(source_id=doing, type=PRODUCED, target_id=each) for each in draft.produced]
    if (looking := seeing or doing) is not None:
        links += [NewLink(source_id=looking, type=USED, target_id=each) for each in (*draft.used, *draft.evidence)]
    insert_links(record.account_id, links)
    if draft.produced:
        rows: Any = Artifact.objects.filter(account_id=record.account_id, id__in=draft.produced, record=None)
        rows.update(record=record)
    if draft.invocations:
        claim_invocations(owner, record, draft.invocations)


def first_of(by_slot: Mapping[str, UUID], order: Sequence[str]) -> UUID | None:
    return next((by_slot[slot] for slot in order if slot in by_slot), None)


def claim_invocations(owner: Owner, record: TurnRecord, invocations: Sequence[UUID]) -> None:
    """Raises Unprocessable for uses that are not there, of another conversation, or of another record."""
    rows = ToolInvocation.objects.visible_to(owner).filter(
        Q(record=None) | Q(record=record), conversation_id=record.conversation_id, id__in=invocations
    )
    if rows.update(record=record) != len(set(invocations)):
        raise Unprocessable("the record names uses of tools that are not of this conversation, or of another record")


def save_record(record: TurnRecord, slots: Sequence[TurnSlot], *, now: datetime) -> None:
    """At its next version."""
    record.tokens = sum(slot.token_count for slot in slots)
    record.raw_tokens = max(record.raw_tokens, record.tokens)
    record.version, record.updated_at = record.version + 1, now
    columns = ("status", "goal", "first_index", "last_index", "reasoning_tier", "tokens", "raw_tokens")
    record.save(update_fields=[*columns, "version", "updated_at"])


def current_slots(record_ids: Sequence[UUID]) -> list[TurnSlot]:
    """The slots of records as they are told now, by record and in their order; whoever may see the records."""
    slots: Any = TurnSlot.objects
    return in_order(slots.filter(record_id__in=record_ids, archived=False, quarantined=False))


def in_order(slots: Any) -> list[TurnSlot]:
    places = {slot: place for place, slot in enumerate(Slot.values)}
    return sorted(slots, key=lambda slot: (str(slot.record_id), places[slot.slot]))


def listed_records(owner: Owner) -> QuerySet[TurnRecord]:
    """All that the owner may see; to be filtered and ordered."""
    return TurnRecord.objects.visible_to(owner)


def records_of_conversation(owner: Owner, conversation_id: str) -> QuerySet[TurnRecord]:
    """In their order. Raises NotFound."""
    conversation = find_conversation(owner, conversation_id)
    return TurnRecord.objects.filter(log=conversation).order_by("number")


def slots_at(record: TurnRecord, level: int) -> list[TurnSlot]:
    """The record's slots as they were at that level, or at the nearest below it: what was compressed is still there
    as long as retention keeps it. Those that are quarantined are left out."""
    slots: Any = TurnSlot.objects
    rows = slots.filter(record=record, level__lte=level, quarantined=False).order_by("level")
    by_slot: dict[str, TurnSlot] = {row.slot: row for row in rows}
    return in_order(by_slot.values())
