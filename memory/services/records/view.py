"""Structured turns as they are told: what the account's policy allows of their slots, and what they name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Prefetch, QuerySet

from memory.models import TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.conversations.lifecycle import find_conversation
from memory.services.records.reasoning import ToldSlot, read_policy, told_slots, told_tier
from memory.services.records.record import current_rows, current_slots, find_record, in_order, slots_at
from memory.services.records.references import Named, read_named


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """A record with what may be told of its slots. `tier` is the deepest that there is of its reasoning and that may
    be told: a raw trace by deep replay alone.
    """

    record: TurnRecord
    slots: Sequence[ToldSlot]
    tier: ReasoningTier


def get_record(owner: Owner, record_id: UUID, *, level: int | None = None, now: datetime) -> tuple[RecordView, Named]:
    """The record with its slots as they are told now, or as they were at a `level` below; and what it names.

    Raises NotFound.
    """
    record, allowed = find_record(owner, record_id), read_policy(owner.account_id).tier
    rows = current_slots([record.id]) if level is None else slots_at(record, level)
    return view_of(record, rows, allowed), read_named(owner, record, now=now)


def view_of(record: TurnRecord, rows: Sequence[TurnSlot], allowed: ReasoningTier) -> RecordView:
    slots = told_slots(rows, allowed)
    reasoning = next((told for told in slots if told.row.slot == TurnSlot.Slot.REASONING), None)
    return RecordView(record=record, slots=slots, tier=told_tier(record.reasoning_tier, reasoning, allowed))


def records_of_conversation(owner: Owner, conversation_id: str) -> QuerySet[TurnRecord]:
    """In no order. Raises NotFound."""
    return TurnRecord.objects.filter(log=find_conversation(owner, conversation_id))


def with_slots(records: QuerySet[TurnRecord]) -> QuerySet[TurnRecord]:
    """Records that bring their current slots, for `listed_view`."""
    return records.prefetch_related(Prefetch("slots", queryset=current_rows(), to_attr="current"))


def listed_view(record: TurnRecord, allowed: ReasoningTier) -> RecordView:
    """Of a record of `with_slots`."""
    listed: Any = record
    return view_of(record, in_order(listed.current), allowed)
