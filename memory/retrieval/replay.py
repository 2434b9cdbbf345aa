"""Reads for a replay (E8): structured turns with their slots, and the work episodes that stand for them.

Each function is one statement over a bounded number of rows, however long the work is. Of texts that are longer than a
replay has room for only the length is read.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db.models import BinaryField, Case, Exists, F, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from memory.models import CompressionLevel, Kind, ReasoningTrace, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner

MAX_RECORDS = 200
MAX_EPISODES = 100
MAX_REASONING_TOKENS = 20_000
"""Tokens of a reasoning up to which its data is read: its summary may fit where its text does not."""

# OFFSET 0 keeps each step within its records; the planner might read all slots of all accounts instead
SLOTS = """
SELECT slots.* FROM unnest(%(ids)s::uuid[]) AS wanted (id) CROSS JOIN LATERAL (
    SELECT id, account_id, kind, conversation_id, event_time, token_count, archived, quarantined, record_id, slot,
        level, tier, provenance, CASE WHEN token_count <= %(longest)s THEN text ELSE '' END AS text,
        CASE WHEN slot = 'reasoning' AND token_count <= %(longest_data)s THEN data END AS data
    FROM memories WHERE account_id = %(account_id)s AND kind = 'turn_slot' AND record_id = wanted.id OFFSET 0
) AS slots ORDER BY level
"""


def visible_records(owner: Owner) -> QuerySet[TurnRecord]:
    """Return the records that the owner may see, latest first, to be filtered further."""
    return TurnRecord.objects.visible_to(owner).order_by("-event_time", "-id")


def visible_episodes(owner: Owner, *, max_tokens: int) -> QuerySet[WorkEpisode]:
    """Return the work episodes that the owner may see, latest first: archived ones too, quarantined ones not.

    Texts of more than `max_tokens` are empty.
    """
    rows = WorkEpisode.objects
    short_text = Case(When(token_count__lte=max_tokens, then=F("text")), default=Value(""), output_field=TextField())
    seen = rows.visible_to(owner, Kind.WORK_EPISODE).filter(quarantined=False).order_by("-event_time", "-id")
    found: QuerySet[WorkEpisode] = seen.defer("text").annotate(short_text=short_text)
    return found


def read_replay_records(records: "QuerySet[TurnRecord]", *, merged_too: bool) -> list[TurnRecord]:
    """Return the first records, without merged ones unless they are asked for."""
    if not merged_too:
        records = records.filter(level__lt=CompressionLevel.MERGED)
    return list(records[:MAX_RECORDS])


def read_replay_episodes(episodes: "QuerySet[WorkEpisode]") -> list[WorkEpisode]:
    """Return the first episodes of `visible_episodes`, with short texts."""
    found = list(episodes[:MAX_EPISODES])
    for row in found:
        row.text = getattr(row, "short_text", "")
    return found


def records_before(record: TurnRecord) -> Q:
    """Return the condition on records before this one."""
    return Q(event_time__lt=record.event_time) | Q(event_time=record.event_time, id__lt=record.id)


def records_merged_into(episode: WorkEpisode) -> Q:
    """Return the condition on the records that an episode stands for, whatever its level."""
    return Q(
        log=episode.log_id,
        number__range=(episode.first_number, episode.last_number),
        level__gte=CompressionLevel.MERGED,
    )


def read_slots_of_records(records: Sequence[TurnRecord], *, max_tokens: int) -> dict[UUID, dict[str, TurnSlot]]:
    """Return the current slots of visible records, at least one, by record and slot.

    Merged records have their earliest kept slots. A slot that is quarantined at any level is left out
    at all levels. Texts of more than `max_tokens` are empty.
    """
    merged = {record.id for record in records if record.level >= CompressionLevel.MERGED}
    rows = TurnSlot.objects
    given = {
        "account_id": records[0].account_id,
        "ids": [record.id for record in records],
        "longest": max_tokens,
        "longest_data": MAX_REASONING_TOKENS,
    }
    # rows come by level: merged records keep the first row of a slot, others the last
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


def records_of_reasonings(owner: Owner, memory_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Return the record of each visible memory that is a turn's reasoning, by memory."""
    rows = TurnSlot.objects
    found = rows.filter(account_id=owner.account_id, id__in=memory_ids, slot=TurnSlot.Slot.REASONING)
    return dict(found.values_list("id", "record_id"))


def trace_sizes(records: Sequence[TurnRecord]) -> dict[UUID, tuple[int, str]]:
    """Return tokens and provenance of the readable raw traces of one or more records. Nothing is unsealed."""
    rows = readable_traces(records[0].account_id, [record.id for record in records])
    return {
        record_id: (tokens, provenance)
        for record_id, tokens, provenance in rows.values_list("record_id", "tokens", "provenance")
    }


def readable_traces(account_id: UUID, record_ids: Collection[UUID]) -> QuerySet[ReasoningTrace]:
    """Return the traces of records without a reasoning that is quarantined at any level.

    A trace without a slot can only be hidden by erasing its record.
    """
    slots = TurnSlot.objects.filter(account_id=account_id)
    hidden = slots.filter(record_id=OuterRef("record_id"), slot=TurnSlot.Slot.REASONING, quarantined=True)
    return ReasoningTrace.objects.filter(~Exists(hidden), account_id=account_id, record_id__in=record_ids)


def sealed_traces(owner: Owner, record_ids: Collection[UUID]) -> dict[UUID, bytes]:
    """Return the readable traces of records as they are stored, by record."""
    rows = readable_traces(owner.account_id, record_ids).annotate(sealed=Cast("trace", BinaryField()))
    return {record_id: bytes(sealed) for record_id, sealed in rows.values_list("record_id", "sealed")}
