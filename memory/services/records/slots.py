"""The rows of a turn's slots: made of what was told, compared with what there is, stored, reconciled."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory.audit import record as record_audit
from memory.errors import Conflict, TooLarge, Unprocessable
from memory.extraction.turn_slots import Action, Observation, Outcome, Slots
from memory.models import CompressionLevel, Kind, ReasoningTrace, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper, shallowest
from memory.services.embedding.embed import Embedded
from memory.services.memories.store import Rewording, reword_memories, store_memories
from memory.services.records.reasoning import KeptReasoning, within_policy
from memory.services.tools import check_value
from memory.tiers.json_documents import comparable_json
from memory.tokens import estimate_tokens
from memory_project.encryption import SealBroken

LONGEST_TEXT = 1_000_000
"""Characters of what a slot tells, its calls among them."""
RECONCILED = "reconciled"
"""What an outcome said before, in its data: the oldest first, each with until when, and who told the next one then. The
slot's agent told the first."""
RESERVED = {"action": {"calls", "text"}, "outcome": {RECONCILED}}
"""Names in the data of slots that the service gives a meaning to."""
Slot = TurnSlot.Slot
Status = TurnRecord.Status


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSlots:
    """All rows that there are of a record's slots: of each level, archived and quarantined ones among them."""

    rows: Sequence[TurnSlot] = ()

    def of(self, slot: str) -> list[TurnSlot]:
        """The deepest level last."""
        return sorted((row for row in self.rows if row.slot == slot), key=lambda row: row.level)

    def has(self, slot: str) -> bool:
        return any(row.slot == slot for row in self.rows)

    def holds(self, row: TurnSlot) -> bool:
        """Whether this is what was told."""
        return any(is_same(each, row) for each in self.of(row.slot))

    def may_hold(self, row: TurnSlot) -> bool:
        """`holds`; where only a shortened text is left, who tells it again means the same."""
        return self.holds(row) or self.of(row.slot)[0].level > CompressionLevel.RAW

    @property
    def latest(self) -> list[TurnSlot]:
        """Of each slot the row of the deepest level."""
        return [self.of(slot)[-1] for slot in Slot if self.has(slot)]

    @property
    def current(self) -> list[TurnSlot]:
        return [row for row in self.rows if not row.archived and not row.quarantined]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a draft adds to a record: slots that it lacks, and another `outcome` in place of an open one."""

    lacking: Sequence[TurnSlot]
    outcome: TurnSlot | None = None

    def __bool__(self) -> bool:
        return bool(self.lacking) or self.outcome is not None


def make_slots(slots: Slots, kept: KeptReasoning | None) -> list[TurnSlot]:
    """Rows in the order of the slots, before they are of a record. Raises TooLarge, Unprocessable."""
    told = ((Slot.OBSERVATION, slots.observation), (Slot.ACTION, slots.action), (Slot.OUTCOME, slots.outcome))
    rows = {slot: make_slot(slot, each) for slot, each in told if each is not None}
    if kept is not None and kept.text:
        # of the rationale's own shape: it is told apart, and need not be measured again
        rows[Slot.REASONING] = TurnSlot(
            slot=Slot.REASONING.value,
            text=checked_text(Slot.REASONING, kept.text),
            data=dict(kept.data),
            tier=kept.told_tier.value,
            provenance=kept.provenance.value,
        )
    return [rows[slot] for slot in Slot if slot in rows]


def make_slot(slot: Slot, told: Observation | Action | Outcome) -> TurnSlot:
    """Raises TooLarge, Unprocessable."""
    data = dict(told.data)
    if reserved := RESERVED.get(slot.value, set()) & data.keys():
        raise Unprocessable(f"the data of the slot {slot} cannot hold: {', '.join(sorted(reserved))}")
    if isinstance(told, Action) and told.calls:
        data["calls"] = [call.as_json() for call in told.calls]
    check_value(f"the data of the slot {slot}", data)
    # as it will be read again, to be compared with
    data = json.loads(json.dumps(data))
    if isinstance(told, Action) and told.calls and told.text:
        # beside the calls, which the row's text has too
        data["text"] = told.text
    text = told.text if isinstance(told, Observation) else told.tell()
    return TurnSlot(slot=slot.value, text=checked_text(slot, text), data=data)


def checked_text(slot: Slot, text: str) -> str:
    """Raises TooLarge, Unprocessable."""
    if not text.strip() or any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in text):
        raise Unprocessable(f"the slot {slot} says nothing, or holds a NUL or a lone surrogate")
    if len(text) > LONGEST_TEXT:
        message = f"the slot {slot} has {len(text)} characters, {LONGEST_TEXT} are allowed; nothing was stored"
        raise TooLarge(message, stored=False)
    return text


def read_slots(record: TurnRecord) -> StoredSlots:
    """One statement."""
    rows: Any = TurnSlot.objects
    return StoredSlots(rows=list(rows.filter(record=record)))


def find_changes(record: TurnRecord, stored: StoredSlots, rows: Sequence[TurnSlot], *, status: str | None) -> Changes:
    """What there is to store; `status` is that of the outcome among the rows. Raises Conflict, Unprocessable."""
    lacking = [row for row in rows if not stored.has(row.slot)]
    if any(row.slot != Slot.OUTCOME and not stored.may_hold(row) for row in rows if stored.has(row.slot)):
        raise Conflict("a slot of this record says something else already")
    if status is None:
        return Changes(lacking=lacking)
    if not (stored.has(Slot.ACTION) or any(row.slot == Slot.ACTION for row in rows)):
        raise Unprocessable("an outcome follows an action: tell the action first, or with it")
    outcome = next(row for row in rows if row.slot == Slot.OUTCOME)
    is_known = not stored.has(Slot.OUTCOME) or is_told_again(record, stored, outcome, status=status)
    if not is_known and record.status != Status.OPEN:
        raise Conflict(f"the record's outcome is settled already: {record.status}")
    return Changes(lacking=lacking, outcome=None if is_known else outcome)


def is_told_again(record: TurnRecord, stored: StoredSlots, outcome: TurnSlot, *, status: str) -> bool:
    """Whether the outcome is what the record says, or what it said as long as it was open."""
    if status == record.status:
        # of one that is open, another text is news
        return stored.holds(outcome) if status == Status.OPEN else stored.may_hold(outcome)
    before = stored.of(Slot.OUTCOME)[-1].data.get(RECONCILED, [])
    return status == Status.OPEN and any(each["text"] == outcome.text for each in before)


def is_same(stored: TurnSlot, row: TurnSlot) -> bool:
    if row.slot == Slot.REASONING:
        # the policy may have changed between the two: they are compared as far as both tell
        tier = shallowest(stored.tier, row.tier)
        told, again = within_policy(stored, tier), within_policy(row, tier)
        return told is not None and again is not None and (told.text, told.data) == (again.text, again.data)
    data = {name: value for name, value in stored.data.items() if name != RECONCILED}
    return stored.text == row.text and comparable_json(data) == comparable_json(row.data)


def store_slots(
    owner: Owner,
    record: TurnRecord,
    rows: Sequence[TurnSlot],
    *,
    event_time: datetime,
    embedded: Embedded,
    now: datetime,
) -> None:
    """New rows of a stored record. Whoever tells them takes part in the conversation."""
    for row in rows:
        row.kind, row.identity = Kind.TURN_SLOT, f"{record.id}:{row.slot}:{row.level}"
        row.conversation_id, row.record = record.conversation_id, record
        row.event_time, row.source = event_time, "agent"
    writer = replace(owner, user_id=record.user_id, channel=record.channel)
    store_memories(writer, rows, embedded=embedded, own={}, now=now)


def reconcile(owner: Owner, stored: StoredSlots, outcome: TurnSlot, *, embedded: Embedded, now: datetime) -> int:
    """Tell an open outcome anew, at each level that there is of it; how many tokens it has more than before.

    What it said before stays in its data.
    """
    rows = stored.of(Slot.OUTCOME)
    first = rows[0]
    said = [*first.data.get(RECONCILED, []), {"text": first.text, "until": now.isoformat(), "by": owner.agent_id}]
    tokens = first.token_count
    data: Mapping[str, Any] = {**outcome.data, RECONCILED: said}
    reword_memories(owner, [Rewording(row=row, text=outcome.text) for row in rows], embedded=embedded, now=now)
    for row in rows:
        row.data = dict(data)
    told: Any = TurnSlot.objects.filter(pk__in=[row.pk for row in rows])
    told.update(data=data)
    audit_change(owner, "update", rows[-1])
    return first.token_count - tokens


def deepen(record: TurnRecord, lacking: Iterable[TurnSlot], *, has_trace: bool) -> None:
    """To the tier of a reasoning that it has from now on."""
    tiers = [row.tier for row in lacking if row.slot == Slot.REASONING]
    for tier in [*tiers, *([ReasoningTier.RAW_TRACE.value] if has_trace else [])]:
        if is_deeper(tier, record.reasoning_tier):
            record.reasoning_tier = tier


def tokens_of(rows: Iterable[TurnSlot]) -> int:
    """Of rows that are not stored yet."""
    return sum(estimate_tokens(row.text) for row in rows)


def audit_change(owner: Owner, operation: str, row: TurnSlot) -> None:
    record_audit(
        owner,
        operation=operation,
        memory_type="episodic",
        affected_ids=[row.id],
        conversation_id=row.conversation_id,
        session_id=row.conversation_id,
    )


def seal_trace(record: TurnRecord, kept: KeptReasoning, *, is_new: bool) -> bool:
    """Keep the raw trace where none is kept; whether it was. Raises Conflict for another one than is kept."""
    known = None if is_new else ReasoningTrace.objects.defer("trace").filter(record=record).first()
    if known is None:
        ReasoningTrace.objects.create(
            account_id=record.account_id,
            record=record,
            trace=kept.trace,
            tokens=estimate_tokens(kept.trace),
            provenance=kept.provenance.value,
        )
    elif not holds_trace(known, kept.trace):
        raise Conflict("the record has another raw trace already")
    return known is None


def holds_trace(known: ReasoningTrace, trace: str) -> bool:
    """Whether it is this one; one whose key is lost is no other."""
    try:
        return bool(known.trace == trace)
    except SealBroken:
        return False
