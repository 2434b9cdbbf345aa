"""Compression level 1, and the frame of all levels (E5): what is due, how it is processed, what becomes of failures.

Three stages work on rows that are their own queue: slots are shortened (`compress_slots`), adjacent records of one goal
are merged into work episodes (`merge.merge_records`), and old episodes are reduced (`merge.archive_episodes`). Sources
are archived and linked, not deleted. A killed worker leaves each row either untouched or done, and none is done twice,
since each is checked again under the locks under which its result is stored.

Level 1 replaces a slot by a shorter one, which is derived from it. It shortens the prose. Tool calls and their results,
the points of a rationale, and the data of a slot stay whole. A slot that would not be shorter, a pinned one, and
reasoning deeper than the account's policy stay unchanged.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Least

from memory import conf
from memory.audit import record_audit
from memory.errors import ProviderError
from memory.extraction.compression import Compressor, Passage
from memory.extraction.model_compressor import work_compressor
from memory.extraction.turn_slots import Call, Rationale
from memory.models import (
    CompressionLevel,
    Conversation,
    Goal,
    Link,
    Memory,
    MemoryRow,
    TurnRecord,
    TurnSlot,
    WorkEpisode,
)
from memory.owner import Owner
from memory.providers.language_models import Usage
from memory.reasoning import ReasoningTier, is_deeper
from memory.services.account_walk import Batch, BatchReport
from memory.services.claims import backoff
from memory.services.compression.batches import result_of, take_batch
from memory.services.conversations.queue import (
    MAX_ATTEMPTS,
    MAX_ERROR_CHARACTERS,
    ClaimOutcome,
    ClaimResult,
)
from memory.services.embedding.embed import embed_texts
from memory.services.memories.correct import mark_rows
from memory.services.memories.links import DERIVED_FROM, PRODUCED, USED, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import store_memories
from memory.services.operations.usage import keep_usage
from memory.services.records.reasoning import read_policy
from memory.tokens import estimate_tokens
from memory_project.tracing import carried

logger = logging.getLogger(__name__)

USE = "compression"
ACTOR = "job:compress"
MAX_CONCURRENT_REQUESTS = 4
"""Maximum of concurrent requests to a language model."""
RAW, SUMMARIZED = CompressionLevel.RAW, CompressionLevel.SLOT_SUMMARIZED
COPIED_SLOT_COLUMNS = (
    *("slot", "tier", "provenance", "record_id", "kind", "agent_id", "user_id", "channel", "conversation_id"),
    *("language", "salience", "event_time", "expires_at", "source", "trust", "metadata"),
)

COPIED_LINK_TYPES = (WORKS_ON, PRODUCED, USED)
"""Types of links that a compressed memory copies from its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionTask:
    """Records of one account that are processed together."""

    account_id: UUID
    record_ids: Sequence[UUID]

    @property
    def rows(self) -> QuerySet[TurnRecord]:
        """The query for the records."""
        return TurnRecord.objects.filter(account_id=self.account_id, id__in=self.record_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionInput:
    """Records and the passages of them that a compressor is to shorten. `usages` grow meanwhile."""

    records: Sequence[TurnRecord]
    passages: Sequence[Passage]
    usages: list[Usage] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionWorker:
    """The steps of processing tasks.

    `read` runs first, then the compressor in threads without database access. `store` returns figures, no figures if
    the records wait, or None if something has changed since it was read, in which case it is due again.
    """

    compressor: Compressor
    read: Callable[[CompressionTask], Sequence[Any]]
    store: Callable[[Any, Sequence[str]], Mapping[str, int] | None]
    now: datetime

    def process_tasks(self, tasks: Sequence[CompressionTask], *, renew: Callable[[], None]) -> Iterator[ClaimResult]:
        threads = MAX_CONCURRENT_REQUESTS if self.compressor.is_remote else 1
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(tasks), threads):
                outstanding: list[tuple[Any, Future[list[str]]]] = []
                for task in tasks[start : start + threads]:
                    try:
                        inputs = self.read(task)
                    except Exception as err:  # noqa: BLE001 - the job's outermost loop
                        yield postpone_after_error(task, err, now=self.now)
                    else:
                        outstanding += [(each, pool.submit(carried(self.shorten), each)) for each in inputs]
                for each, shortening in outstanding:
                    yield self.store_result(each, shortening)
                    renew()

    def shorten(self, source: CompressionInput) -> list[str]:
        deadline = conf.COMPRESSION_TIMEOUT_SECONDS
        return self.compressor.shorten(source.passages, meter=source.usages.append, deadline_seconds=deadline)

    def store_result(self, source: CompressionInput, shortening: "Future[list[str]]") -> ClaimResult:
        """Record what shortening cost and store the result."""
        account_id = source.records[0].account_id
        task = CompressionTask(account_id=account_id, record_ids=[record.id for record in source.records])
        try:
            # waits for the thread, which adds usages until then
            failure = shortening.exception()
            keep_usage(account_id, use=USE, usages=source.usages, now=self.now)
            if failure is not None:
                raise failure
            figures = self.store(source, shortening.result())
        except ProviderError as err:
            logger.warning("compression of record %s failed: %s", task.record_ids[0], err)
            postpone_records(task, error=err.code, now=self.now)
            return ClaimResult(outcome=ClaimOutcome.UNANSWERED)
        except Exception as err:  # noqa: BLE001 - the job's outermost loop
            return postpone_after_error(task, err, now=self.now)
        if figures is None:
            return ClaimResult(outcome=ClaimOutcome.OUTDATED)
        return ClaimResult(outcome=ClaimOutcome.STORED if figures else ClaimOutcome.POSTPONED, figures=figures)


def postpone_after_error(task: CompressionTask, error: Exception, *, now: datetime) -> ClaimResult:
    """Retry records later after an unforeseen error. Only its name is kept: its message may quote the record."""
    name = type(error).__name__
    logger.error("compression of record %s failed: %s", task.record_ids[0], name)
    postpone_records(task, error=name, now=now)
    return ClaimResult(outcome=ClaimOutcome.FAILED)


def postpone_records(task: CompressionTask, *, error: str, now: datetime) -> None:
    """Retry records later, all at the same time, so that they are still processed together."""
    attempts = task.rows.aggregate(most=Max("compress_attempts"))["most"] or 0
    task.rows.update(
        compress_after=now + backoff("COMPRESSION", attempts + 1),
        compress_attempts=Least(F("compress_attempts"), MAX_ATTEMPTS - 1) + 1,
        compress_error=error[:MAX_ERROR_CHARACTERS],
    )


def due_records(level: int, *, older_than: timedelta, now: datetime) -> QuerySet[TurnRecord]:
    """Return the due records of a level, of all accounts: old enough, or of a closed goal.

    The newest records of a conversation are left out, and those that wait after a failure.
    """
    return TurnRecord.objects.filter(
        Q(event_time__lte=now - older_than) | Q(has_closed_goal("goal_id")),
        Q(compress_after=None) | Q(compress_after__lte=now),
        is_past_newest_records(),
        level=level,
    )


def has_closed_goal(column: str, **conditions: Any) -> Exists:
    """Match rows whose column refers to a closed goal."""
    goals = Goal.objects.filter(account_id=OuterRef("account_id"), pk=OuterRef(column), completed_at__isnull=False)
    return Exists(goals.filter(**conditions))


def is_past_newest_records() -> Q:
    """Match records after which their conversation has at least COMPRESS_KEEP_RECORDS others."""
    kept = conf.COMPRESS_KEEP_RECORDS
    if not kept:
        return Q()
    of_log = TurnRecord.objects.filter(account_id=OuterRef("account_id"), log_id=OuterRef("log_id"))
    later = of_log.filter(number__gt=OuterRef("number")).order_by("number")
    return Q(Exists(later[kept - 1 : kept]))


def lock_conversation_row(row: TurnRecord | WorkEpisode) -> bool:
    """Lock the conversation of a row as its writers do. Return False if it is gone."""
    rows = Conversation.objects.filter(account_id=row.account_id, id=row.log_id).select_for_update(no_key=True)
    return bool(rows.values_list("id"))


def lock_unchanged_records(records: Sequence[TurnRecord], level: int) -> bool:
    """Lock records and return whether they are still as they were read."""
    ids = [record.id for record in records]
    rows = TurnRecord.objects.filter(
        is_past_newest_records(), account_id=records[0].account_id, id__in=ids, level=level
    )
    locked = rows.order_by("id").select_for_update(no_key=True, of=("self",)).values_list("id", "version")
    return dict(locked) == {record.id: record.version for record in records}


def lock_unchanged_memories(
    account_id: UUID, rows: Sequence[MemoryRow], others: Sequence[UUID] = ()
) -> set[UUID] | None:
    """Lock memories and return which of the `others` exist, or None if a row has changed since it was read.

    Uses one statement, in the order in which memories are always locked.
    """
    wanted = Memory.objects.filter(account_id=account_id, id__in={*others, *(row.id for row in rows)})
    locked = wanted.order_by("id").select_for_update(no_key=True)
    marks = ("version", "archived", "quarantined", "pinned")
    found = {memory_id: seen for memory_id, *seen in locked.values_list("id", *marks)}
    if any(found.get(row.id) != [getattr(row, mark) for mark in marks] for row in rows):
        return None
    return found.keys() & set(others)


def link_compressed(account_id: UUID, made_of: Mapping[UUID, UUID]) -> None:
    """Link what was made of memories (new id by old id) to its sources, and to their goals, artifacts and evidence."""
    derived = [NewLink(source_id=new, type=DERIVED_FROM, target_id=old) for old, new in made_of.items()]
    copied = [
        NewLink(
            source_id=made_of[link.source_id],
            type=link.type,
            target_id=link.target_id,
            weight=link.weight,
            properties=link.properties,
        )
        for link in Link.objects.filter(account_id=account_id, source_id__in=made_of, type__in=COPIED_LINK_TYPES)
    ]
    insert_links(account_id, [*derived, *copied])


def archive_sources(owner: Owner, rows: Sequence[MemoryRow], *, conversation_id: str, now: datetime) -> None:
    """Archive memories and record it in the audit log."""
    ids = [row.id for row in rows]
    if not ids:
        return
    mark_rows(owner, Memory.objects.filter(account_id=owner.account_id, id__in=ids), mark="archive", now=now)
    record_audit(
        owner,
        operation="archive",
        memory_type="episodic",
        affected_ids=ids,
        conversation_id=conversation_id,
        session_id=conversation_id,
        result_count=len(ids),
    )


def completed_columns(now: datetime) -> dict[str, Any]:
    """Return the columns of a processed record: the next version, without failed attempts."""
    return {
        "version": F("version") + 1,
        "updated_at": now,
        "compress_after": None,
        "compress_attempts": 0,
        "compress_error": "",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotText:
    """A slot's text: prose, followed by what stays whole. A corrected text is all prose."""

    slot: TurnSlot
    prose: str
    whole: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsInput(CompressionInput):
    """One record whose slots are to be shortened."""

    texts: Sequence[SlotText]


def compress_slots(batch: Batch, *, now: datetime) -> BatchReport:
    """Bring a batch of raw records to level 1."""
    after = timedelta(hours=conf.COMPRESS_AFTER_HOURS)
    due = due_records(RAW, older_than=after, now=now)
    if batch.dry_run:
        count = sum(take_batch(batch, due, lambda rows, _share: [rows.count()]))
        return BatchReport(examined=count, changed=count)
    tasks = take_batch(batch, due, first_tasks)
    store = partial(store_shortened_slots, now=now)
    worker = CompressionWorker(compressor=work_compressor(), read=read_slot_inputs, store=store, now=now)
    return result_of(batch, list(worker.process_tasks(tasks, renew=batch.renew)), due)


def first_tasks(rows: QuerySet[TurnRecord], share: int) -> list[CompressionTask]:
    """Return a task for each of the first records, at most as many as the account's share."""
    ids = rows.order_by("id").values_list("account_id", "id")[:share]
    return [CompressionTask(account_id=account_id, record_ids=[record_id]) for account_id, record_id in ids]


def read_slot_inputs(task: CompressionTask) -> Sequence[SlotsInput]:
    """Read the slots of a raw record, without quarantined ones. Three statements."""
    record = task.rows.filter(level=RAW).first()
    if record is None:
        return []
    slots = TurnSlot.objects.filter(account_id=record.account_id, record=record, level=RAW)
    rows = slots.filter(archived=False, quarantined=False)
    allowed = read_policy(record.account_id).tier
    texts = [split_slot_text(slot, allowed) for slot in rows.order_by("id")]
    passages = [Passage(part=text.slot.slot, text=text.prose) for text in texts]
    return [SlotsInput(records=[record], passages=passages, texts=texts)]


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
    pairs = zip(inputs.texts, proses, strict=True)
    texts = {text.slot.id: "\n".join(filter(None, [prose, text.whole])) for text, prose in pairs}
    (record,), slots = inputs.records, [text.slot for text in inputs.texts]
    shorter = [slot for slot in slots if texts[slot.id].strip() and estimate_tokens(texts[slot.id]) < slot.token_count]
    # outside the transaction: it may take seconds
    embedded = embed_texts([texts[slot.id] for slot in shorter])
    with transaction.atomic():
        if not lock_conversation_row(record) or not lock_unchanged_records([record], RAW):
            return None
        if lock_unchanged_memories(record.account_id, slots) is None:
            return None
        made = {slot: build_shortened_slot(slot, texts[slot.id]) for slot in shorter}
        owner = Owner(account_id=record.account_id, channel=record.channel, actor=ACTOR, joins=False)
        for holder, rows in groupby(made.values(), key=lambda row: (row.agent_id, row.user_id, row.channel)):
            writer = replace(owner, agent_id=holder[0], user_id=holder[1], channel=holder[2])
            store_memories(writer, list(rows), embedded=embedded, own={}, now=now)
        link_compressed(record.account_id, {slot.id: row.id for slot, row in made.items()})
        archive_sources(owner, shorter, conversation_id=record.conversation_id, now=now)
        # the others are of the next level unchanged
        unchanged = [slot.pk for slot in slots if slot not in made]
        TurnSlot.objects.filter(account_id=record.account_id, pk__in=unchanged).update(level=SUMMARIZED)
        tokens = sum(made.get(slot, slot).token_count for slot in slots)
        same = TurnRecord.objects.filter(account_id=record.account_id, id=record.id)
        same.update(level=SUMMARIZED, tokens=tokens, **completed_columns(now))
    before = sum(slot.token_count for slot in slots)
    return {"tokens_before": before, "tokens_after": tokens, "slots": len(shorter)}


def build_shortened_slot(slot: TurnSlot, text: str) -> TurnSlot:
    copied = {name: getattr(slot, name) for name in COPIED_SLOT_COLUMNS}
    row = TurnSlot(text=text, level=SUMMARIZED, data=slot.data, **copied)
    row.identity = f"{slot.record_id}:{slot.slot}:{SUMMARIZED.value}"
    return row
