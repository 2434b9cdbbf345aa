"""Work episodes for tests, as compression leaves them: their records merged, the slots of these archived."""

from collections.abc import Sequence
from typing import Any

from memory.models import CompressionLevel, Kind, Memory, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.services.memories.links import DERIVED_FROM, NewLink, insert_links
from memory.services.memories.store import store_memories
from tests.memory.episodes import NOTHING, NOW

TEXT = "Goal: Save the roses.\nDecided: Water them daily.\nOutcome: They stand upright."
DATA: dict[str, Any] = {
    "goal": "Save the roses.",
    "decisions": ["Water them daily."],
    "rejected": ["Cut them back: too late in the year."],
    "produced": ["docs/roses.md"],
    "tools": ["hose"],
    "outcome": "They stand upright.",
}


def merged(owner: Owner, records: Sequence[TurnRecord], **fields: Any) -> WorkEpisode:
    """Store a work episode merged from adjacent records of one conversation. `fields` are columns."""
    first, last = records[0], records[-1]
    columns = {"text": TEXT, "data": DATA, "tier": "structured_rationale", "level": CompressionLevel.MERGED, **fields}
    episode = WorkEpisode(
        kind=Kind.WORK_EPISODE,
        conversation_id=first.conversation_id,
        log_id=first.log_id,
        for_goal_id=first.goal_id,
        first_number=first.number,
        last_number=last.number,
        event_time=NOW,
        **columns,
    )
    store_memories(owner, [episode], embedded=NOTHING, own={}, now=NOW)
    ids = [record.id for record in records]
    slots = TurnSlot.objects
    slots.filter(record_id__in=ids).update(archived=True)
    TurnRecord.objects.filter(id__in=ids).update(level=CompressionLevel.MERGED, episode=episode)
    return episode


def shortened(owner: Owner, slot: TurnSlot, text: str) -> TurnSlot:
    """The slot as a row of level 1; the former is archived."""
    row = TurnSlot(kind=Kind.TURN_SLOT, text=text, level=CompressionLevel.SLOT_SUMMARIZED, event_time=NOW)
    row.record_id, row.slot, row.data, row.tier = slot.record_id, slot.slot, slot.data, slot.tier
    row.conversation_id, row.identity = slot.conversation_id, f"{slot.record_id}:{slot.slot}:1"
    store_memories(owner, [row], embedded=NOTHING, own={}, now=NOW)
    Memory.objects.filter(id=slot.id).update(archived=True)
    return row


def archived(owner: Owner, episode: WorkEpisode, **fields: Any) -> WorkEpisode:
    """The episode as a row of level 3, DERIVED_FROM the one of level 2, which is archived."""
    columns = {"text": "Saved the roses.", "data": episode.data, "tier": episode.tier, **fields}
    row = WorkEpisode(
        kind=Kind.WORK_EPISODE,
        conversation_id=episode.conversation_id,
        log_id=episode.log_id,
        level=CompressionLevel.ARCHIVED,
        first_number=episode.first_number,
        last_number=episode.last_number,
        event_time=NOW,
        **columns,
    )
    store_memories(owner, [row], embedded=NOTHING, own={}, now=NOW)
    insert_links(owner.account_id, [NewLink(source_id=row.id, type=DERIVED_FROM, target_id=episode.id)])
    Memory.objects.filter(id=episode.id).update(archived=True)
    return row
