"""The parts of a record: its slots, built, compared with the stored ones and reconciled, its trace and its references.

References are a goal, artifacts, evidence and tool invocations. Slots are linked with them, or they with the record.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.audit import record_audit
from memory.errors import Conflict, TooLarge, Unprocessable
from memory.extraction.turn_slots import Action, Observation, Outcome, Slots
from memory.models import Artifact, CompressionLevel, Kind, Memory, ReasoningTrace, ToolInvocation, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper, shallowest
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.links import PRODUCED, USED, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import TextUpdate, update_texts
from memory.services.records.reasoning import KeptReasoning, redact_slot
from memory.services.tools import check_json_value
from memory.tiers.json_documents import comparable_json
from memory.tokens import estimate_tokens
from memory_project.encryption import SealBroken

MAX_REFERENCES = 200
"""Maximum length of each list of references in a draft."""
Slot = TurnSlot.Slot
PRODUCING_SLOTS = (Slot.ACTION, Slot.OUTCOME)
"""Slots that link to produced artifacts. The first one that the record has gets the links."""
USING_SLOTS = (Slot.OBSERVATION, Slot.REASONING, *PRODUCING_SLOTS)
"""Slots that link to used artifacts and evidence. The first one that the record has gets the links."""
MAX_SLOT_CHARACTERS = 1_000_000
"""Maximum size of a slot's text, its calls included."""
RECONCILED_KEY = "reconciled"
MAX_FORMER_OUTCOMES = 20
MAX_FORMER_CHARACTERS = 1_000_000
"""Former texts of an outcome that are kept, the latest, and how long all but one of them may be together."""
"""Earlier texts of an outcome in its data, oldest first, each with `until` and `by`.

`by` is the agent that replaced the text at that time. The slot's own agent recorded the first one.
"""
RESERVED_KEYS = {"action": {"calls", "text"}, "outcome": {RECONCILED_KEY}}
"""Keys in the data of slots that the service sets itself."""
Status = TurnRecord.Status


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSlots:
    """All rows of a record's slots, of every level, archived and quarantined ones included."""

    rows: Sequence[TurnSlot] = ()

    def levels_of(self, slot: str) -> list[TurnSlot]:
        """Return the rows of a slot, the deepest level last."""
        return sorted((row for row in self.rows if row.slot == slot), key=lambda row: row.level)

    def has(self, slot: str) -> bool:
        return any(row.slot == slot for row in self.rows)

    def contains(self, row: TurnSlot) -> bool:
        """Return whether one of the slot's levels has the same content."""
        return any(is_same_slot(each, row) for each in self.levels_of(row.slot))

    def may_contain(self, row: TurnSlot) -> bool:
        """Return True if `contains` does, or if only a shortened text is left to compare with."""
        return self.contains(row) or self.levels_of(row.slot)[0].level > CompressionLevel.RAW

    @property
    def latest(self) -> list[TurnSlot]:
        """The row of the deepest level of each slot."""
        return [self.levels_of(slot)[-1] for slot in Slot if self.has(slot)]

    @property
    def current(self) -> list[TurnSlot]:
        return [row for row in self.rows if not row.archived and not row.quarantined]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotChanges:
    """Additions of a draft to a record: missing slots, and another `outcome` in place of an open one."""

    new_slots: Sequence[TurnSlot]
    outcome: TurnSlot | None = None

    def __bool__(self) -> bool:
        return bool(self.new_slots) or self.outcome is not None


def build_slots(slots: Slots, kept: KeptReasoning | None) -> list[TurnSlot]:
    """Build the unsaved rows of a draft, from observation to outcome. Raises TooLarge, Unprocessable."""
    given = ((Slot.OBSERVATION, slots.observation), (Slot.ACTION, slots.action), (Slot.OUTCOME, slots.outcome))
    rows = {slot: build_slot(slot, each) for slot, each in given if each is not None}
    if kept is not None and kept.text:
        # the data has the rationale's own shape, whose size is limited elsewhere
        rows[Slot.REASONING] = TurnSlot(
            slot=Slot.REASONING.value,
            text=check_slot_text(Slot.REASONING, kept.text),
            data=dict(kept.data),
            tier=kept.slot_tier.value,
            provenance=kept.provenance.value,
        )
    return [rows[slot] for slot in Slot if slot in rows]


def build_slot(slot: Slot, content: Observation | Action | Outcome) -> TurnSlot:
    """Build the unsaved row of a slot. Raises TooLarge, Unprocessable."""
    data = dict(content.data)
    if reserved := RESERVED_KEYS.get(slot.value, set()) & data.keys():
        raise Unprocessable(f"the data of the slot {slot} cannot hold: {', '.join(sorted(reserved))}")
    if isinstance(content, Action) and content.calls:
        data["calls"] = [call.as_json() for call in content.calls]
    check_json_value(f"the data of the slot {slot}", data)
    # normalized as it will be read back, for comparisons
    data = json.loads(json.dumps(data))
    if isinstance(content, Action) and content.calls and content.text:
        # the prose without the calls, which the row's text includes
        data["text"] = content.text
    text = content.text if isinstance(content, Observation) else content.format()
    return TurnSlot(slot=slot.value, text=check_slot_text(slot, text), data=data)


def check_slot_text(slot: Slot, text: str) -> str:
    """Return the text. Raises TooLarge, Unprocessable."""
    if not text.strip() or any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in text):
        raise Unprocessable(f"the slot {slot} must have a text, without NUL and lone surrogates")
    if len(text) > MAX_SLOT_CHARACTERS:
        limit = f"the slot {slot} has {len(text)} characters, {MAX_SLOT_CHARACTERS} are allowed; nothing was stored"
        raise TooLarge(limit, stored=False)
    return text


def read_stored_slots(record: TurnRecord) -> StoredSlots:
    """Read all rows of a record's slots. One statement."""
    return StoredSlots(rows=list(TurnSlot.objects.filter(account_id=record.account_id, record=record)))


def find_slot_changes(
    record: TurnRecord, stored: StoredSlots, rows: Sequence[TurnSlot], *, status: str | None
) -> SlotChanges:
    """Return what a draft adds; `status` is that of the outcome among its rows. Raises Conflict, Unprocessable."""
    new_slots = [row for row in rows if not stored.has(row.slot)]
    if any(row.slot != Slot.OUTCOME and not stored.may_contain(row) for row in rows if stored.has(row.slot)):
        raise Conflict("a slot of this record has another content already")
    if status is None:
        return SlotChanges(new_slots=new_slots)
    if not (stored.has(Slot.ACTION) or any(row.slot == Slot.ACTION for row in rows)):
        raise Unprocessable("an outcome needs an action: send the action first, or with it")
    outcome = next(row for row in rows if row.slot == Slot.OUTCOME)
    is_known = not stored.has(Slot.OUTCOME) or is_repeated_outcome(record, stored, outcome, status=status)
    if not is_known and record.status != Status.OPEN:
        raise Conflict(f"the record's outcome is final already: {record.status}")
    return SlotChanges(new_slots=new_slots, outcome=None if is_known else outcome)


def is_repeated_outcome(record: TurnRecord, stored: StoredSlots, outcome: TurnSlot, *, status: str) -> bool:
    """Return whether the record has this outcome, or had it while it was open."""
    if status == record.status:
        # another text for an open outcome is a change
        return stored.contains(outcome) if status == Status.OPEN else stored.may_contain(outcome)
    before = stored.levels_of(Slot.OUTCOME)[-1].data.get(RECONCILED_KEY, [])
    return status == Status.OPEN and any(each["text"] == outcome.text for each in before)


def is_same_slot(stored: TurnSlot, row: TurnSlot) -> bool:
    if row.slot == Slot.REASONING:
        # the policy may have changed between the two: compare them at the shallower tier
        tier = shallowest(stored.tier, row.tier)
        one, other = redact_slot(stored, tier), redact_slot(row, tier)
        return one is not None and other is not None and (one.text, one.data) == (other.text, other.data)
    data = {name: value for name, value in stored.data.items() if name != RECONCILED_KEY}
    return stored.text == row.text and comparable_json(data) == comparable_json(row.data)


def latest_texts(former: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the former texts that are kept, the latest in any case."""
    kept = former[-MAX_FORMER_OUTCOMES:]
    while len(kept) > 1 and sum(len(each["text"]) for each in kept) > MAX_FORMER_CHARACTERS:
        kept = kept[1:]
    return kept


def reconcile_outcome(
    owner: Owner, stored: StoredSlots, outcome: TurnSlot, *, embedded: EmbeddedTexts, now: datetime
) -> int:
    """Replace text and time of an open outcome at each of its levels and return how many tokens that adds.

    The former text stays in its data, with those before it as long as there is room.
    """
    rows = stored.levels_of(Slot.OUTCOME)
    first = rows[0]
    before = {"text": first.text, "until": now.isoformat(), "by": owner.agent_id}
    tokens = first.token_count
    former = latest_texts([*first.data.get(RECONCILED_KEY, []), before])
    data: Mapping[str, Any] = {**outcome.data, RECONCILED_KEY: former}
    update_texts(owner, [TextUpdate(row=row, text=outcome.text) for row in rows], embedded=embedded, now=now)
    for row in rows:
        row.data, row.event_time = dict(data), outcome.event_time
    outcomes = TurnSlot.objects.filter(account_id=owner.account_id, pk__in=[row.pk for row in rows])
    outcomes.update(data=data, event_time=outcome.event_time)
    conversation_id = rows[-1].conversation_id
    record_audit(
        owner,
        operation="update",
        memory_type="episodic",
        affected_ids=[rows[-1].id],
        conversation_id=conversation_id,
        session_id=conversation_id,
    )
    return first.token_count - tokens


def raise_reasoning_tier(record: TurnRecord, new_slots: Iterable[TurnSlot], *, has_trace: bool) -> None:
    """Set the tier of a record whose reasoning becomes deeper by new slots or by a raw trace."""
    tiers = [row.tier for row in new_slots if row.slot == Slot.REASONING]
    for tier in [*tiers, *([ReasoningTier.RAW_TRACE.value] if has_trace else [])]:
        if is_deeper(tier, record.reasoning_tier):
            record.reasoning_tier = tier


def estimate_slot_tokens(rows: Iterable[TurnSlot]) -> int:
    """Return the estimated number of tokens of rows that are not stored yet."""
    return sum(estimate_tokens(row.text) for row in rows)


def store_trace(record: TurnRecord, kept: KeptReasoning, *, is_new: bool) -> bool:
    """Store a raw trace if the record has none, and return whether it did. Raises Conflict for another trace."""
    traces = ReasoningTrace.objects.filter(account_id=record.account_id, record=record)
    known = None if is_new else traces.defer("trace").first()
    if known is None:
        ReasoningTrace.objects.create(
            account_id=record.account_id,
            record=record,
            trace=kept.trace,
            tokens=estimate_tokens(kept.trace),
            provenance=kept.provenance.value,
        )
    else:
        try:
            is_same = known.trace == kept.trace
        except SealBroken:
            # a trace whose key is lost counts as another
            is_same = False
        if not is_same:
            raise Conflict("the record has another raw trace already")
    return known is None


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """The ids that a turn names: goal, tool invocations, artifacts (`produced`, `used`) and memories (`evidence`)."""

    goal_id: UUID | None = None
    invocations: Sequence[UUID] = ()
    produced: Sequence[UUID] = ()
    used: Sequence[UUID] = ()
    evidence: Sequence[UUID] = ()

    @property
    def memory_ids(self) -> set[UUID]:
        named = {*self.produced, *self.used, *self.evidence}
        return named if self.goal_id is None else named | {self.goal_id}


def lock_referenced_memories(owner: Owner, references: References, *, now: datetime) -> None:
    """Lock the referenced memories. Raises Unprocessable if one is missing, invisible or of the wrong kind."""
    wanted = references.memory_ids
    if not wanted:
        return
    rows = Memory.objects.visible_to(owner).live(now).filter(id__in=wanted).order_by("id")
    kinds = dict(rows.select_for_update(no_key=True, of=("self",)).values_list("id", "kind"))
    if wanted - kinds.keys():
        raise Unprocessable("the record names a goal, an artifact or a memory that does not exist")
    artifacts = {*references.produced, *references.used}
    is_wrong = any(kinds[each] != Kind.ARTIFACT for each in artifacts)
    if is_wrong or (references.goal_id is not None and kinds[references.goal_id] != Kind.GOAL):
        raise Unprocessable("produced and used must name artifacts, and goal_id must name a goal")


def link_references(
    owner: Owner,
    record: TurnRecord,
    slots: Sequence[TurnSlot],
    references: References,
    *,
    fresh: Sequence[TurnSlot],
) -> None:
    """Link the slots of a record with its references. `fresh` slots have no link to the record's goal yet.

    Evidence of a record without a slot (its reasoning is not kept) is not linked. Raises Unprocessable for artifacts
    that are produced without an action, for evidence from the record itself, and as `attribute_invocations`.
    """
    by_slot = {slot.slot: slot.id for slot in slots}
    producer, user = (
        next((by_slot[slot] for slot in order if slot in by_slot), None) for order in (PRODUCING_SLOTS, USING_SLOTS)
    )
    if references.produced and producer is None:
        raise Unprocessable("produced artifacts need an action: send the action first, or with them")
    if set(by_slot.values()) & set(references.evidence):
        raise Unprocessable("a record cannot be evidence of itself")
    goal_id, links = record.goal_id, list[NewLink]()
    if goal_id is not None:
        links += [NewLink(source_id=slot.id, type=WORKS_ON, target_id=goal_id) for slot in fresh]
    if producer is not None:
        links += [NewLink(source_id=producer, type=PRODUCED, target_id=each) for each in set(references.produced)]
    if user is not None:
        used = {*references.used, *references.evidence}
        links += [NewLink(source_id=user, type=USED, target_id=each) for each in used]
    insert_links(record.account_id, links)
    if references.produced:
        # the record is the origin of artifacts that have none yet
        artifacts = Artifact.objects.filter(account_id=record.account_id, id__in=references.produced)
        artifacts.filter(source_record=None).update(source_record=record)
    attribute_invocations(owner, record, references.invocations)


def attribute_invocations(owner: Owner, record: TurnRecord, invocation_ids: Collection[UUID]) -> None:
    """Set the record as the origin of tool invocations.

    Raises Unprocessable for invocations that are missing, of another conversation, or of another record.
    """
    if not invocation_ids:
        return
    rows = ToolInvocation.objects.visible_to(owner).filter(
        Q(record=None) | Q(record=record), conversation_id=record.conversation_id, id__in=invocation_ids
    )
    if rows.update(record=record) != len(set(invocation_ids)):
        raise Unprocessable("the record names tool invocations of another conversation or another record")
