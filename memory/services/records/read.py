"""Reading structured turns, with their slots and references as far as the account's policy allows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Prefetch, QuerySet

from memory.errors import require_found
from memory.models import Kind, Link, MemoryTable, ToolInvocation, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.conversations.lifecycle import find_conversation
from memory.services.memories.links import PRODUCED, USED
from memory.services.records.reasoning import RedactedSlot, read_policy, redact_slots, visible_tier

MAX_READ_REFERENCES = 1_000
"""Maximum of links, and of tool invocations, that are read with a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """A record with the slots that its reader may see.

    `tier` is the deepest reasoning that the record has and the policy allows; only a deep replay returns a raw trace.
    """

    record: TurnRecord
    slots: Sequence[RedactedSlot]
    tier: ReasoningTier


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedArtifact:
    """An artifact that a turn produced or used."""

    id: UUID
    uri: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedReferences:
    """The references of a record that its reader may see, `truncated` to MAX_READ_REFERENCES."""

    produced: Sequence[ReferencedArtifact]
    used: Sequence[ReferencedArtifact]
    evidence: Sequence[UUID]
    invocations: Sequence[UUID]
    truncated: bool


def get_record(
    owner: Owner, record_id: UUID, *, level: int | None = None, now: datetime
) -> tuple[RecordView, ResolvedReferences]:
    """Return a record with its current slots, or with those of a lower `level`, and its references.

    Raises NotFound.
    """
    record, allowed = find_record(owner, record_id), read_policy(owner.account_id).tier
    ids = [record.id]
    slots = (
        read_current_slots(owner.account_id, ids)
        if level is None
        else read_slots_at_level(owner.account_id, ids, level)[record.id]
    )
    return build_record_view(record, slots, allowed), read_references(owner, record, now=now)


def find_record(owner: Owner, record_id: UUID) -> TurnRecord:
    """Return a record that the owner may see. Raises NotFound."""
    return require_found(TurnRecord.objects.visible_to(owner).filter(id=record_id).first(), "turn record")


def records_of_conversation(owner: Owner, conversation_id: str) -> QuerySet[TurnRecord]:
    """Return the records of a conversation, unordered. Raises NotFound."""
    return TurnRecord.objects.filter(account_id=owner.account_id, log=find_conversation(owner, conversation_id))


def prefetch_slots(account_id: UUID, records: QuerySet[TurnRecord]) -> QuerySet[TurnRecord]:
    """Prefetch the current slots of an account's records for `view_prefetched_record`."""
    return records.prefetch_related(Prefetch("slots", queryset=current_slot_rows(account_id), to_attr="current"))


def view_prefetched_record(record: TurnRecord, allowed: ReasoningTier) -> RecordView:
    """Return the view of a record that was read through `prefetch_slots`."""
    prefetched: Any = record
    return build_record_view(record, sort_slots(prefetched.current), allowed)


def build_record_view(record: TurnRecord, rows: Sequence[TurnSlot], allowed: ReasoningTier) -> RecordView:
    slots = redact_slots(rows, allowed)
    reasoning = next((slot for slot in slots if slot.row.slot == TurnSlot.Slot.REASONING), None)
    return RecordView(record=record, slots=slots, tier=visible_tier(record.reasoning_tier, reasoning, allowed))


def read_current_slots(account_id: UUID, record_ids: Sequence[UUID]) -> list[TurnSlot]:
    """Return the current slots of records, sorted. The caller has checked who may see the records."""
    return sort_slots(current_slot_rows(account_id).filter(record_id__in=record_ids))


def current_slot_rows(account_id: UUID) -> QuerySet[TurnSlot]:
    """Return the slots of the account that are neither archived nor quarantined."""
    return TurnSlot.objects.filter(account_id=account_id, archived=False, quarantined=False)


def read_slots_at_level(
    account_id: UUID, record_ids: Collection[UUID], level: int
) -> Mapping[UUID, Sequence[TurnSlot]]:
    """Return the slots of records as they were at `level`, by record. One statement.

    Compressed slots are archived and stay readable as long as retention keeps them. The nearest lower level stands in
    for a missing one; where none is below, the next higher one does, since a slot that compression would not shorten
    is raised to the next level unchanged. Quarantined slots are left out.
    """
    slots = TurnSlot.objects.filter(account_id=account_id, record_id__in=record_ids)
    best: dict[tuple[UUID, str], TurnSlot] = {}
    for row in slots.order_by("level"):
        key = (row.record_id, row.slot)
        if row.level <= level or key not in best:
            best[key] = row
    by_record: dict[UUID, list[TurnSlot]] = defaultdict(list)
    for row in sort_slots(row for row in best.values() if not row.quarantined):
        by_record[row.record_id].append(row)
    return by_record


def sort_slots(slots: Iterable[TurnSlot]) -> list[TurnSlot]:
    """Sort slots by record, and those of a record from observation to outcome."""
    positions = {slot: position for position, slot in enumerate(TurnSlot.Slot.values)}
    return sorted(slots, key=lambda slot: (str(slot.record_id), positions[slot.slot]))


def read_references(owner: Owner, record: TurnRecord, *, now: datetime) -> ResolvedReferences:
    """Return the references of a record that the owner may see. Three statements."""
    # slots of every level: a compressed slot has copies of its source's links, or left them there
    slots = TurnSlot.objects.filter(account_id=record.account_id, record=record)
    of_slots = Link.objects.filter(account_id=record.account_id, source_id__in=slots.values("id"))
    links = of_slots.filter(type__in=(PRODUCED, USED)).order_by("id").values_list("type", "target_id")
    linked = list(links[: MAX_READ_REFERENCES + 1])
    invocations = ToolInvocation.objects.visible_to(owner).filter(record=record).order_by("timestamp", "id")
    called = list(invocations.values_list("id", flat=True)[: MAX_READ_REFERENCES + 1])
    by_type: dict[str, dict[UUID, None]] = {PRODUCED: {}, USED: {}}
    for link_type, target_id in linked[:MAX_READ_REFERENCES]:
        by_type[link_type][target_id] = None
    targets = MemoryTable.objects.visible_to(owner).live(now).filter(id__in={*by_type[PRODUCED], *by_type[USED]})
    # None stands for a memory that is no artifact
    visible = {
        row_id: ReferencedArtifact(id=row_id, uri=uri or "", title=title or "") if kind == Kind.ARTIFACT else None
        for row_id, kind, uri, title in targets.values_list("id", "kind", "uri", "title")
    }
    return ResolvedReferences(
        produced=[artifact for each in by_type[PRODUCED] if (artifact := visible.get(each))],
        used=[artifact for each in by_type[USED] if (artifact := visible.get(each))],
        evidence=[each for each in by_type[USED] if each in visible and visible[each] is None],
        invocations=called[:MAX_READ_REFERENCES],
        truncated=len(linked) > MAX_READ_REFERENCES or len(called) > MAX_READ_REFERENCES,
    )
