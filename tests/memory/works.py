"""Structured turns at deeper levels for tests, as compression leaves them, without running it."""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from memory.models import CompressionLevel, Kind, Memory, MemoryRow, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.services.records.record import RecordedTurn
from tests.memory.graphs import link, store_node

M = TypeVar("M", bound=MemoryRow)


def shorten(owner: Owner, recorded: RecordedTurn) -> dict[str, TurnSlot]:
    """Shorten the slots of a record to level 1 and archive the raw ones. Return them by slot."""
    made = {}
    for raw in recorded.slots:
        row = TurnSlot(kind=Kind.TURN_SLOT, text=f"Short: {raw.text}", record_id=recorded.record.id, slot=raw.slot)
        row.level, row.tier, row.provenance, row.data = CompressionLevel.SLOT_SUMMARIZED, raw.tier, raw.provenance, {}
        row.conversation_id, row.token_count = raw.conversation_id, raw.token_count
        made[raw.slot] = stand_for(owner, row, [raw])
    TurnRecord.objects.filter(id=recorded.record.id).update(level=CompressionLevel.SLOT_SUMMARIZED)
    return made


def merge(owner: Owner, record: TurnRecord, slots: Sequence[TurnSlot]) -> WorkEpisode:
    """Merge slots of a record into a work episode and archive them."""
    episode = make_episode(record, CompressionLevel.MERGED)
    stand_for(owner, episode, slots)
    TurnRecord.objects.filter(id=record.id).update(level=CompressionLevel.MERGED, episode_id=episode.pk)
    return episode


def reduce(owner: Owner, record: TurnRecord, merged: WorkEpisode) -> WorkEpisode:
    """Reduce a merged episode to one of level 3 and archive it."""
    episode = make_episode(record, CompressionLevel.ARCHIVED)
    stand_for(owner, episode, [merged])
    TurnRecord.objects.filter(id=record.id).update(level=CompressionLevel.ARCHIVED, episode_id=episode.pk)
    return episode


def make_episode(record: TurnRecord, level: int) -> WorkEpisode:
    episode = WorkEpisode(kind=Kind.WORK_EPISODE, text=f"Watered roses, level {level}.", log=record.log, level=level)
    episode.first_number = episode.last_number = record.number
    episode.conversation_id, episode.data = record.conversation_id, {"decisions": ["water the roses"]}
    return episode


def stand_for(owner: Owner, row: M, sources: Sequence[MemoryRow]) -> M:
    store_node(owner, row)
    for source in sources:
        link(row, source, "DERIVED_FROM")
    Memory.objects.filter(id__in=[source.pk for source in sources]).update(archived=True)
    return row


def texts_left(conversation_id: str = "chat-1") -> set[str]:
    """Return the texts of all levels of slots and episodes of a conversation."""
    rows = Memory.objects.filter(conversation_id=conversation_id, kind__in=(Kind.TURN_SLOT, Kind.WORK_EPISODE))
    return set(rows.values_list("text", flat=True))


def ids_where(**fields: object) -> set[UUID]:
    return set(Memory.objects.filter(**fields).values_list("id", flat=True))
