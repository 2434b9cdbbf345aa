"""Compression levels 1 and 3: a row is replaced by one shorter row, which is derived from it.

Level 1 shortens the prose of a record's slots. Tool calls and their results, the points of a rationale, and the data of
a slot stay whole. A slot that would not be shorter, a pinned one, and reasoning deeper than the account's policy stay
unchanged.

Level 3 reduces a work episode, long after its goal was closed, to the goal, decisions, products, outcomes and
corrections. The merged episode is archived and can still be read.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from memory import conf
from memory.extraction.compression import Passage
from memory.extraction.compressors import work_compressor
from memory.extraction.turn_slots import Call, Rationale
from memory.extraction.work_stories import archive_work
from memory.models import CompressionLevel, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.providers.language_models import Usage
from memory.reasoning import ReasoningTier, is_deeper
from memory.services.compression.compress import (
    ACTOR,
    CompressionBatch,
    CompressionWorker,
    Task,
    archive_sources,
    completed_columns,
    due_records,
    has_closed_goal,
    link_compressed,
    lock_conversation_row,
    lock_unchanged_memories,
    lock_unchanged_records,
)
from memory.services.conversations.queue import BatchResult, ClaimOutcome, ClaimResult
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import store_memories
from memory.services.records.reasoning import read_policy
from memory.tokens import estimate_tokens

logger = logging.getLogger(__name__)

RAW, SUMMARIZED = CompressionLevel.RAW, CompressionLevel.SLOT_SUMMARIZED
MERGED, ARCHIVED = CompressionLevel.MERGED, CompressionLevel.ARCHIVED
COPIED_SLOT_COLUMNS = (
    *("slot", "tier", "provenance", "record_id", "kind", "agent_id", "user_id", "channel", "conversation_id"),
    *("language", "salience", "event_time", "expires_at", "source", "trust", "metadata"),
)
COPIED_EPISODE_COLUMNS = (
    *("kind", "conversation_id", "language", "salience", "event_time", "expires_at", "source", "trust", "metadata"),
    *("log_id", "for_goal_id", "first_number", "last_number", "status", "tier", "raw_tokens", "compressor"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotText:
    """A slot's text: prose, followed by what stays whole. A corrected text is all prose."""

    slot: TurnSlot
    prose: str
    whole: str

    def with_prose(self, prose: str) -> str:
        return "\n".join(filter(None, [prose, self.whole]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsInput:
    """A record whose slots are to be shortened."""

    record: TurnRecord
    texts: Sequence[SlotText]
    usages: list[Usage] = field(default_factory=list)

    @property
    def records(self) -> Sequence[TurnRecord]:
        return [self.record]

    @property
    def passages(self) -> Sequence[Passage]:
        return [Passage(part=text.slot.slot, text=text.prose) for text in self.texts]


def compress_slots(batch: CompressionBatch) -> BatchResult:
    """Bring a batch of raw records to level 1."""
    after = timedelta(hours=conf.COMPRESS_AFTER_HOURS)
    due = due_records(RAW, older_than=after, now=batch.now, account_id=batch.account_id)
    rows = due if batch.after is None else due.filter(id__gt=batch.after)
    ids = list(rows.order_by("id").values_list("id", flat=True)[: batch.limit])
    last = ids[-1] if len(ids) == batch.limit else None
    if batch.dry_run:
        return BatchResult(claimed=len(ids), stored=len(ids), last=last)
    store = partial(store_shortened_slots, now=batch.now)
    worker = CompressionWorker(compressor=work_compressor(), read=read_slot_inputs, store=store, now=batch.now)
    return BatchResult.of(list(worker.process_tasks([[each] for each in ids], renew=batch.renew)), last=last)


def read_slot_inputs(task: Task) -> Sequence[SlotsInput]:
    """Read the slots of a raw record, without quarantined ones. Three statements."""
    record = TurnRecord.objects.filter(id__in=task, level=RAW).first()
    if record is None:
        return []
    slots: Any = TurnSlot.objects
    rows = slots.filter(record=record, level=RAW, archived=False, quarantined=False)
    allowed = read_policy(record.account_id).tier
    return [SlotsInput(record=record, texts=[split_slot_text(slot, allowed) for slot in rows.order_by("id")])]


def split_slot_text(slot: TurnSlot, allowed: ReasoningTier) -> SlotText:
    whole = "\n".join(fixed_lines(slot))
    # reasoning that the account does not allow now goes to no language model, and no shorter text of it to an embedder
    is_withheld = slot.slot == TurnSlot.Slot.REASONING and is_deeper(slot.tier, allowed)
    if slot.pinned or is_withheld or (whole and slot.text == whole):
        return SlotText(slot=slot, prose="", whole=slot.text)
    if whole and slot.text.endswith(f"\n{whole}"):
        return SlotText(slot=slot, prose=slot.text.removesuffix(f"\n{whole}"), whole=whole)
    return SlotText(slot=slot, prose=slot.text, whole="")


def fixed_lines(slot: TurnSlot) -> list[str]:
    """Return the lines of a slot that stay whole: tool calls, or the points of a rationale."""
    if slot.slot == TurnSlot.Slot.ACTION:
        return [Call(**call).format() for call in slot.data.get("calls", [])]
    if slot.slot == TurnSlot.Slot.REASONING:
        return list(filter(None, [Rationale.of_json(slot.data.get("rationale", {})).format()]))
    return []


def store_shortened_slots(inputs: SlotsInput, proses: Sequence[str], *, now: datetime) -> Mapping[str, int] | None:
    """Store the shortened slots of a record, or return None if one has changed since it was read."""
    texts = {text.slot.id: text.with_prose(prose) for text, prose in zip(inputs.texts, proses, strict=True)}
    record, slots = inputs.record, [text.slot for text in inputs.texts]
    shorter = [slot for slot in slots if is_shorter(texts[slot.id], slot)]
    # outside the transaction: it may take seconds
    embedded = embed_texts([texts[slot.id] for slot in shorter])
    with transaction.atomic():
        if not lock_conversation_row(record.log_id) or not lock_unchanged_records([record], RAW):
            return None
        if lock_unchanged_memories(slots) is None:
            return None
        made = {slot: build_shortened_slot(slot, texts[slot.id]) for slot in shorter}
        owner = Owner(account_id=record.account_id, channel=record.channel, actor=ACTOR)
        for holder, rows in groupby(made.values(), key=lambda row: (row.agent_id, row.user_id, row.channel)):
            writer = replace(owner, agent_id=holder[0], user_id=holder[1], channel=holder[2])
            store_memories(writer, list(rows), embedded=embedded, own={}, now=now)
        link_compressed(record.account_id, {slot.id: row.id for slot, row in made.items()})
        archive_sources(owner, shorter, conversation_id=record.conversation_id, now=now)
        # the others are of the next level unchanged
        unchanged: Any = TurnSlot.objects.filter(pk__in=[slot.pk for slot in slots if slot not in made])
        unchanged.update(level=SUMMARIZED)
        tokens = sum(made.get(slot, slot).token_count for slot in slots)
        TurnRecord.objects.filter(id=record.id).update(level=SUMMARIZED, tokens=tokens, **completed_columns(now))
    before = sum(slot.token_count for slot in slots)
    return {"tokens_before": before, "tokens_after": tokens, "slots": len(shorter)}


def is_shorter(text: str, slot: TurnSlot) -> bool:
    return bool(text.strip()) and estimate_tokens(text) < slot.token_count


def build_shortened_slot(slot: TurnSlot, text: str) -> TurnSlot:
    copied = {name: getattr(slot, name) for name in COPIED_SLOT_COLUMNS}
    row = TurnSlot(text=text, level=SUMMARIZED, data=slot.data, **copied)
    row.identity = f"{slot.record_id}:{slot.slot}:{SUMMARIZED.value}"
    return row


def archive_episodes(batch: CompressionBatch) -> BatchResult:
    """Reduce a batch of due merged episodes to level 3."""
    rows: Any = due_episodes(batch)
    due = list(rows.order_by("id")[: batch.limit])
    last = due[-1].id if len(due) == batch.limit else None
    if batch.dry_run:
        return BatchResult(claimed=len(due), stored=len(due), last=last)
    results = []
    for episode in due:
        results.append(archive_episode(episode, now=batch.now))
        batch.renew()
    return BatchResult.of(results, last=last)


def due_episodes(batch: CompressionBatch) -> QuerySet[WorkEpisode]:
    """Return unpinned episodes whose goal was closed long ago or, without one, whose last record is so old."""
    oldest = batch.now - timedelta(days=conf.ARCHIVE_WORK_AFTER_DAYS)
    closed = has_closed_goal("for_goal_id")
    rows: Any = WorkEpisode.objects.filter(
        Q(has_closed_goal("for_goal_id", completed_at__lte=oldest)) | (~Q(closed) & Q(event_time__lte=oldest)),
        level=MERGED,
        archived=False,
        quarantined=False,
        pinned=False,
    )
    if batch.account_id is not None:
        rows = rows.filter(account_id=batch.account_id)
    due: QuerySet[WorkEpisode] = rows if batch.after is None else rows.filter(id__gt=batch.after)
    return due


def archive_episode(episode: WorkEpisode, *, now: datetime) -> ClaimResult:
    try:
        figures = store_archived_episode(episode, now=now)
    except Exception as err:  # noqa: BLE001 - the job's outermost loop
        # the error's message may quote the episode
        logger.error("archiving of work episode %s failed: %s", episode.id, type(err).__name__)
        return ClaimResult(outcome=ClaimOutcome.FAILED)
    if figures is None:
        return ClaimResult(outcome=ClaimOutcome.OUTDATED)
    return ClaimResult(outcome=ClaimOutcome.STORED, figures=figures)


def store_archived_episode(episode: WorkEpisode, *, now: datetime) -> Mapping[str, int] | None:
    """Store the reduced episode, or return None if it has changed since it was read."""
    row = build_archived_episode(episode)
    # outside the transaction: it may take seconds
    embedded = embed_texts([row.text])
    owner = Owner(account_id=episode.account_id, user_id=episode.user_id, channel=episode.channel, actor=ACTOR)
    with transaction.atomic():
        if not lock_conversation_row(episode.log_id) or lock_unchanged_memories([episode]) is None:
            return None
        store_memories(replace(owner, agent_id=episode.agent_id), [row], embedded=embedded, own={}, now=now)
        link_compressed(episode.account_id, {episode.id: row.id})
        archive_sources(owner, [episode], conversation_id=episode.conversation_id, now=now)
        TurnRecord.objects.filter(episode=episode).update(episode=row, level=ARCHIVED, **completed_columns(now))
    return {"tokens_before": episode.token_count, "tokens_after": row.token_count, "archived": 1}


def build_archived_episode(episode: WorkEpisode) -> WorkEpisode:
    text, data = archive_work(episode.text, episode.data)
    copied = {name: getattr(episode, name) for name in COPIED_EPISODE_COLUMNS}
    row = WorkEpisode(text=text, data=data, level=ARCHIVED, **copied)
    row.identity = f"{episode.log_id}:{episode.first_number}:{ARCHIVED.value}"
    return row
