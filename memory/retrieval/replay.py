"""What a replay is told from (E8): structured turns with their slots, and the work episodes that stand for them.

Each function is one statement, over so many rows at most, however long the work is. Of texts that are longer than a
replay has room for only their length is read.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db.models import BinaryField, Case, Exists, F, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from memory.models import CompressionLevel, Kind, ReasoningTrace, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner

MOST_RECORDS = 200
MOST_EPISODES = 100
MOST_REASONING_TOKENS = 20_000
"""Of a reasoning whose data is read: its summary may have room where its text has none."""

# OFFSET 0 keeps each step within its records: the planner might read all slots of all accounts instead
SLOTS = """
SELECT memories.*, told.memory_ptr_id, told.record_id, told.slot, told.level, told.tier, told.provenance,
    CASE WHEN told.slot = 'reasoning' AND memories.token_count <= %(longest_data)s THEN told.data END AS data
FROM unnest(%(ids)s::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
    SELECT * FROM turn_slots WHERE turn_slots.record_id = wanted.id OFFSET 0
) AS told CROSS JOIN LATERAL (
    SELECT id, kind, conversation_id, event_time, token_count, archived, quarantined,
        CASE WHEN token_count <= %(longest)s THEN text ELSE '' END AS text
    FROM memories WHERE memories.id = told.memory_ptr_id OFFSET 0
) AS memories ORDER BY told.level
"""


def records_seen(owner: Owner) -> QuerySet[TurnRecord]:
    """All that the owner may see; to be filtered, the latest first."""
    return TurnRecord.objects.visible_to(owner).order_by("-event_time", "-id")


def episodes_seen(owner: Owner, *, longest: int) -> QuerySet[WorkEpisode]:
    """As `records_seen`, archived ones too, without those that are quarantined. Texts of more tokens than `longest`
    are empty."""
    rows: Any = WorkEpisode.objects
    seen = rows.visible_to(owner, Kind.WORK_EPISODE).filter(quarantined=False).order_by("-event_time", "-id")
    found: QuerySet[WorkEpisode] = seen.defer("text").annotate(short_text=short_text(longest))
    return found


def short_text(longest: int) -> Case:
    return Case(When(token_count__lte=longest, then=F("text")), default=Value(""), output_field=TextField())


def read_records(records: "QuerySet[TurnRecord]", *, merged_too: bool) -> list[TurnRecord]:
    """The latest of them first."""
    if not merged_too:
        records = records.filter(level__lt=CompressionLevel.MERGED)
    return list(records[:MOST_RECORDS])


def read_episodes(episodes: "QuerySet[WorkEpisode]") -> list[WorkEpisode]:
    """The latest of them first."""
    found = list(episodes[:MOST_EPISODES])
    for row in found:
        row.text = getattr(row, "short_text", "")
    return found


def before(record: TurnRecord) -> Q:
    """Records that came before it."""
    return Q(event_time__lt=record.event_time) | Q(event_time=record.event_time, id__lt=record.id)


def merged_in(episode: WorkEpisode) -> Q:
    """The records that the episode stands for, at whichever level it is."""
    return Q(
        log=episode.log_id,
        number__range=(episode.first_number, episode.last_number),
        level__gte=CompressionLevel.MERGED,
    )


def read_slots(records: Sequence[TurnRecord], *, longest: int) -> dict[UUID, dict[str, TurnSlot]]:
    """The slots of records that the owner sees, by record and slot: as they are told now; of merged records as they
    came, or as early as they are still there.

    One that is quarantined at any level is left out at all of them. Texts of more tokens than `longest` are empty.
    """
    merged = {record.id for record in records if record.level >= CompressionLevel.MERGED}
    rows: Any = TurnSlot.objects
    given = {"ids": [record.id for record in records], "longest": longest, "longest_data": MOST_REASONING_TOKENS}
    # the last one written wins: the earliest level of merged ones, the latest of others
    found: dict[UUID, dict[str, TurnSlot]] = {}
    hidden: set[tuple[UUID, str]] = set()
    for row in rows.raw(SLOTS, given):
        if row.quarantined:
            hidden.add((row.record_id, row.slot))
        elif row.record_id in merged or not row.archived:
            row.data = row.data or {}
            found.setdefault(row.record_id, {})
            if row.record_id not in merged or row.slot not in found[row.record_id]:
                found[row.record_id][row.slot] = row
    for record_id, slot in hidden:
        found.get(record_id, {}).pop(slot, None)
    return found


def reasonings_among(memory_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Of memories that the owner sees, those that are a turn's reasoning: the record of each."""
    rows: Any = TurnSlot.objects
    found = rows.filter(id__in=memory_ids, slot=TurnSlot.Slot.REASONING)
    return dict(found.values_list("id", "record_id"))


def trace_sizes(records: Sequence[TurnRecord]) -> dict[UUID, tuple[int, str]]:
    """Tokens and provenance of the raw traces that may be told of records, by record. Nothing is unsealed."""
    rows = told_traces([record.id for record in records])
    return {
        record_id: (tokens, whence)
        for record_id, tokens, whence in rows.values_list("record_id", "tokens", "provenance")
    }


def told_traces(record_ids: Collection[UUID]) -> QuerySet[ReasoningTrace]:
    """Those of records of which no reasoning is quarantined, at whichever level. A trace that has no slot is hidden by
    erasing its record."""
    slots: Any = TurnSlot.objects
    hidden = slots.filter(record=OuterRef("record"), slot=TurnSlot.Slot.REASONING, quarantined=True)
    return ReasoningTrace.objects.filter(~Exists(hidden), record_id__in=record_ids)


def sealed_traces(record_ids: Collection[UUID]) -> dict[UUID, bytes]:
    """The same traces as they are stored, by record."""
    rows = told_traces(record_ids).annotate(sealed=Cast("trace", BinaryField()))
    return {record_id: bytes(sealed) for record_id, sealed in rows.values_list("record_id", "sealed")}
