"""The frame of the job `compress` (E5): which records are due, how they are processed, and what becomes of failures.

Three stages work on rows that are their own queue: slots are shortened (`shorten.compress_slots`), adjacent records of
one goal are merged into work episodes (`merge.merge_records`), and old episodes are reduced
(`shorten.archive_episodes`). Sources are archived and linked, not deleted. A killed worker leaves each row either
untouched or done, and none is done twice, since each is checked again under the locks under which its result is stored.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Least

from memory import conf
from memory.audit import record_audit
from memory.errors import ProviderError
from memory.extraction.compression import Compressor, Passage
from memory.models import Conversation, Goal, Link, Memory, TurnRecord
from memory.owner import Owner
from memory.providers.language_models import Usage
from memory.services.conversations.queue import (
    MAX_ATTEMPTS,
    MAX_ERROR_CHARACTERS,
    ClaimOutcome,
    ClaimResult,
    keep_usage,
)
from memory.services.memories.correct import mark_rows
from memory.services.memories.links import DERIVED_FROM, PRODUCED, USED, WORKS_ON, NewLink, insert_links
from memory_project.tracing import carried

logger = logging.getLogger(__name__)

USE = "compression"
ACTOR = "job:compress"
MAX_CONCURRENT_REQUESTS = 4
"""Maximum of concurrent requests to a language model."""
COPIED_LINK_TYPES = (WORKS_ON, PRODUCED, USED)
"""Types of links that a compressed memory copies from its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionBatch:
    """The rows that one call of a stage processes: at most `limit` after the id `after`, of one account or of all.

    `renew` renews the job's lease and raises if another worker has taken the job over.
    """

    now: datetime
    limit: int
    after: UUID | None = None
    account_id: UUID | None = None
    dry_run: bool = False
    renew: Callable[[], None] = lambda: None


class Compressible(Protocol):
    """Passages of records that a compressor is to shorten. `usages` grow meanwhile."""

    @property
    def records(self) -> Sequence[TurnRecord]: ...

    @property
    def passages(self) -> Sequence[Passage]: ...

    @property
    def usages(self) -> list[Usage]: ...


Task = Sequence[UUID]
"""The ids of records that are processed together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionWorker:
    """The steps of processing tasks.

    `read` runs first, then the compressor in threads without database access. `store` returns figures, or None if
    something has changed since it was read, in which case it is due again.
    """

    compressor: Compressor
    read: Callable[[Task], Sequence[Any]]
    store: Callable[[Any, Sequence[str]], Mapping[str, int] | None]
    now: datetime

    def process_tasks(self, tasks: Sequence[Task], *, renew: Callable[[], None]) -> Iterator[ClaimResult]:
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

    def shorten(self, source: Compressible) -> list[str]:
        deadline = conf.COMPRESSION_TIMEOUT_SECONDS
        return self.compressor.shorten(source.passages, meter=source.usages.append, deadline_seconds=deadline)

    def store_result(self, source: Compressible, shortening: "Future[list[str]]") -> ClaimResult:
        """Record what shortening cost and store the result."""
        ids = [record.id for record in source.records]
        try:
            # waits for the thread, which adds usages until then
            failure = shortening.exception()
            keep_usage(source.records[0].account_id, use=USE, usages=source.usages, now=self.now)
            if failure is not None:
                raise failure
            figures = self.store(source, shortening.result())
        except ProviderError as err:
            logger.warning("compression of record %s failed: %s", ids[0], err)
            postpone_records(ids, error=err.code, now=self.now)
            return ClaimResult(outcome=ClaimOutcome.UNANSWERED)
        except Exception as err:  # noqa: BLE001 - the job's outermost loop
            return postpone_after_error(ids, err, now=self.now)
        if figures is None:
            return ClaimResult(outcome=ClaimOutcome.OUTDATED)
        return ClaimResult(outcome=ClaimOutcome.STORED, figures=figures)


def postpone_after_error(record_ids: Task, error: Exception, *, now: datetime) -> ClaimResult:
    """Retry records later after an unforeseen error. Only its name is kept: its message may quote the record."""
    name = type(error).__name__
    logger.error("compression of record %s failed: %s", record_ids[0], name)
    postpone_records(record_ids, error=name, now=now)
    return ClaimResult(outcome=ClaimOutcome.FAILED)


def postpone_records(record_ids: Task, *, error: str, now: datetime) -> None:
    """Retry records later, all at the same time, so that they are still processed together."""
    rows = TurnRecord.objects.filter(id__in=record_ids)
    attempts = rows.aggregate(most=Max("compress_attempts"))["most"] or 0
    wait_seconds = conf.COMPRESSION_BACKOFF_SECONDS * 2 ** min(attempts, 20)
    rows.update(
        compress_after=now + timedelta(seconds=min(wait_seconds, conf.COMPRESSION_BACKOFF_LIMIT_SECONDS)),
        compress_attempts=Least(F("compress_attempts"), MAX_ATTEMPTS - 1) + 1,
        compress_error=error[:MAX_ERROR_CHARACTERS],
    )


def due_records(level: int, *, older_than: timedelta, now: datetime, account_id: UUID | None) -> QuerySet[TurnRecord]:
    """Return the due records of a level: old enough, or of a closed goal.

    The newest records of a conversation are left out, and those that wait after a failure.
    """
    rows = TurnRecord.objects.filter(
        Q(event_time__lte=now - older_than) | Q(has_closed_goal("goal_id")),
        Q(compress_after=None) | Q(compress_after__lte=now),
        is_past_newest_records(),
        level=level,
    )
    return rows if account_id is None else rows.filter(account_id=account_id)


def has_closed_goal(column: str, **conditions: Any) -> Exists:
    return Exists(Goal.objects.filter(pk=OuterRef(column), completed_at__isnull=False, **conditions))


def is_past_newest_records() -> Q:
    """Match records after which their conversation has at least COMPRESS_KEEP_RECORDS others."""
    kept = conf.COMPRESS_KEEP_RECORDS
    if not kept:
        return Q()
    later = TurnRecord.objects.filter(log=OuterRef("log"), number__gt=OuterRef("number")).order_by("number")
    return Q(Exists(later[kept - 1 : kept]))


def lock_conversation_row(log_id: UUID) -> bool:
    """Lock a conversation as its writers do. Return False if it is gone."""
    rows = Conversation.objects.filter(id=log_id).select_for_update(no_key=True)
    return bool(rows.values_list("id"))


def lock_unchanged_records(records: Sequence[TurnRecord], level: int) -> bool:
    """Lock records and return whether they are still as they were read."""
    rows = TurnRecord.objects.filter(is_past_newest_records(), id__in=[record.id for record in records], level=level)
    locked = rows.order_by("id").select_for_update(no_key=True, of=("self",)).values_list("id", "version")
    return dict(locked) == {record.id: record.version for record in records}


def lock_unchanged_memories(rows: Sequence[Memory], others: Sequence[UUID] = ()) -> set[UUID] | None:
    """Lock memories and return which of the `others` exist, or None if a row has changed since it was read.

    Uses one statement, in the order in which memories are always locked.
    """
    wanted = {*others, *(row.id for row in rows)}
    locked = Memory.objects.filter(id__in=wanted).order_by("id").select_for_update(no_key=True, of=("self",))
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
        for link in Link.objects.filter(account_id=account_id, source__in=made_of, type__in=COPIED_LINK_TYPES)
    ]
    insert_links(account_id, [*derived, *copied])


def archive_sources(owner: Owner, rows: Sequence[Memory], *, conversation_id: str, now: datetime) -> None:
    """Archive memories and record it in the audit log."""
    ids = [row.id for row in rows]
    if not ids:
        return
    mark_rows(Memory.objects.filter(id__in=ids), mark="archive", now=now)
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
