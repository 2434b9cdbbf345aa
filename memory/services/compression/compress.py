"""Compression of structured turns (E5), by a job: what is due, how it is worked off, and what becomes of failures.

Three stages, each of rows that are their own queue: slots are told in fewer words (`compression_slots`), adjacent
records of one goal are merged to work episodes (`compression_merges`), and episodes are reduced in time
(`compression_archive`). What something was made of is archived and linked, not deleted. A killed worker leaves a piece
of work as it was, or done; none is done twice, since each is checked again under the locks under which it is stored.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, Self, TypeVar
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Least

from memory import conf
from memory.audit import record as record_audit
from memory.errors import ProviderError
from memory.extraction.compression import Compressor, Passage
from memory.models import Conversation, Goal, Link, Memory, TurnRecord
from memory.owner import Owner
from memory.providers.language_models import Usage
from memory.services.conversations.queue import LONGEST_ERROR, MOST_ATTEMPTS, Outcome, Settled
from memory.services.memories.correct import mark_all
from memory.services.memories.links import PRODUCED, USED, WORKS_ON, NewLink, insert_links
from memory.services.operations.usage import record_usage
from memory_project.tracing import carried

logger = logging.getLogger(__name__)

USE = "compression"
ACTOR = "job:compress"
ASKED_AT_ONCE = 4
"""Questions to a language model."""
CARRIED = (WORKS_ON, PRODUCED, USED)
"""Types of the links that what is made of something has from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What a stage is to do in one go: at most `limit` rows behind the one of id `after`, of one account or of all.

    `renew` keeps the job's lease, and raises where another worker has taken over.
    """

    now: datetime
    limit: int
    after: UUID | None = None
    account_id: UUID | None = None
    dry_run: bool = False
    renew: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """What became of a stretch. `last` is the row that it ended with, None where nothing is behind it; `stopped` says
    that the model is down, and asking for more is of no use. On a dry run, `changed` is what would have changed."""

    examined: int
    changed: int
    failed: int = 0
    figures: Mapping[str, int]
    last: UUID | None
    stopped: bool = False

    @classmethod
    def of(cls, settled: Sequence[Settled], *, last: UUID | None) -> Self:
        outcomes = [each.outcome for each in settled]
        stored, unanswered = outcomes.count(Outcome.STORED), outcomes.count(Outcome.UNANSWERED)
        return cls(
            examined=len(settled),
            changed=stored,
            failed=unanswered + outcomes.count(Outcome.FAILED),
            figures=sum((Counter(each.figures) for each in settled), Counter()),
            last=last,
            stopped=bool(unanswered) and not stored,
        )


NO_FIGURES: Mapping[str, int] = {}


class Piece(Protocol):
    """Something to be told in fewer words: of these records, in these passages. `usages` grow meanwhile."""

    @property
    def records(self) -> Sequence[TurnRecord]: ...

    @property
    def passages(self) -> Sequence[Passage]: ...

    @property
    def usages(self) -> list[Usage]: ...


P = TypeVar("P", bound=Piece)
Task = Sequence[UUID]
"""The ids of records that are worked on together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Works tasks off. `read` comes first, then a compressor is asked (no database in its threads); `store` gives what
    a piece came to, or None where something has changed since it was read: it is due again then."""

    compressor: Compressor
    read: Callable[[Task], Sequence[Any]]
    store: Callable[[Any, Sequence[str]], Mapping[str, int] | None]
    now: datetime

    def work_off(self, tasks: Sequence[Task], *, renew: Callable[[], None]) -> Iterator[Settled]:
        threads = ASKED_AT_ONCE if self.compressor.is_remote else 1
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(tasks), threads):
                outstanding: list[tuple[Any, Future[list[str]]]] = []
                for task in tasks[start : start + threads]:
                    try:
                        pieces = self.read(task)
                    except Exception as err:  # noqa: BLE001 - the outermost loop of the works
                        yield give_up(task, err, now=self.now)
                    else:
                        outstanding += [(piece, pool.submit(carried(self.shorten), piece)) for piece in pieces]
                for piece, shortening in outstanding:
                    yield self.settle(piece, shortening)
                    renew()

    def shorten(self, piece: Piece) -> list[str]:
        deadline = conf.COMPRESSION_TIMEOUT_SECONDS
        return self.compressor.shorten(piece.passages, meter=piece.usages.append, deadline_seconds=deadline)

    def settle(self, piece: Piece, shortening: "Future[list[str]]") -> Settled:
        """Keep what it cost, and store what came of it."""
        ids = [record.id for record in piece.records]
        try:
            # waits for it: usages are told until then
            failure = shortening.exception()
            keep_usage(piece, now=self.now)
            if failure is not None:
                raise failure
            figures = self.store(piece, shortening.result())
        except ProviderError as err:
            logger.warning("compression of record %s failed: %s", ids[0], err)
            push_back(ids, error=err.code, now=self.now)
            return Settled(outcome=Outcome.UNANSWERED, figures=NO_FIGURES)
        except Exception as err:  # noqa: BLE001 - the outermost loop of the works
            return give_up(ids, err, now=self.now)
        if figures is None:
            return Settled(outcome=Outcome.OUTDATED, figures=NO_FIGURES)
        return Settled(outcome=Outcome.STORED, figures=figures)


def give_up(record_ids: Task, error: Exception, *, now: datetime) -> Settled:
    """Try again later what nobody foresaw. Only its name is told: its words may be the record's."""
    name = type(error).__name__
    logger.error("compression of record %s failed: %s", record_ids[0], name)
    push_back(record_ids, error=name, now=now)
    return Settled(outcome=Outcome.FAILED, figures=NO_FIGURES)


def push_back(record_ids: Task, *, error: str, now: datetime) -> None:
    """Try them again later, all at the same time, so that they are still worked on together."""
    rows = TurnRecord.objects.filter(id__in=record_ids)
    attempts = rows.aggregate(most=Max("compress_attempts"))["most"] or 0
    wait_seconds = conf.COMPRESSION_BACKOFF_SECONDS * 2 ** min(attempts, 20)
    rows.update(
        compress_after=now + timedelta(seconds=min(wait_seconds, conf.COMPRESSION_BACKOFF_LIMIT_SECONDS)),
        compress_attempts=Least(F("compress_attempts"), MOST_ATTEMPTS - 1) + 1,
        compress_error=error[:LONGEST_ERROR],
    )


def keep_usage(piece: Piece, *, now: datetime) -> None:
    """What the model cost, whatever becomes of the piece."""
    account_id = piece.records[0].account_id
    try:
        with transaction.atomic():
            record_usage(account_id, use=USE, usages=piece.usages, now=now)
    except IntegrityError:
        logger.warning("usage for record %s not kept: its account is gone", piece.records[0].id)


def due_records(level: int, *, older_than: timedelta, now: datetime, account_id: UUID | None) -> QuerySet[TurnRecord]:
    """Those of a level that are old enough, or whose goal is closed; none of the freshest of their conversation, and
    none that waits after a failure."""
    rows = TurnRecord.objects.filter(
        Q(event_time__lte=now - older_than) | Q(has_closed_goal("goal_id")),
        Q(compress_after=None) | Q(compress_after__lte=now),
        is_not_fresh(),
        level=level,
    )
    return rows if account_id is None else rows.filter(account_id=account_id)


def has_closed_goal(column: str, **conditions: Any) -> Exists:
    return Exists(Goal.objects.filter(pk=OuterRef(column), completed_at__isnull=False, **conditions))


def is_not_fresh() -> Q:
    """Whether COMPRESS_KEEP_RECORDS of its conversation came after a record."""
    kept = conf.COMPRESS_KEEP_RECORDS
    if not kept:
        return Q()
    later = TurnRecord.objects.filter(log=OuterRef("log"), number__gt=OuterRef("number")).order_by("number")
    return Q(Exists(later[kept - 1 : kept]))


def lock_log(log_id: UUID) -> bool:
    """Lock a conversation as its writers do; False where it is gone."""
    rows = Conversation.objects.filter(id=log_id).select_for_update(no_key=True)
    return bool(rows.values_list("id"))


def lock_records(records: Sequence[TurnRecord], level: int) -> bool:
    """Lock records as they were read; False where one is not so any more."""
    rows = TurnRecord.objects.filter(is_not_fresh(), id__in=[record.id for record in records], level=level)
    locked = rows.order_by("id").select_for_update(no_key=True, of=("self",)).values_list("id", "version")
    return dict(locked) == {record.id: record.version for record in records}


def lock_memories(rows: Sequence[Memory], others: Sequence[UUID] = ()) -> set[UUID] | None:
    """Lock memories as they were read; None where one is not so any more, else which of the `others` there are.

    In one statement, in the order of everybody who locks memories.
    """
    wanted = {*others, *(row.id for row in rows)}
    locked = Memory.objects.filter(id__in=wanted).order_by("id").select_for_update(no_key=True, of=("self",))
    marks = ("version", "archived", "quarantined", "pinned")
    found = {memory_id: seen for memory_id, *seen in locked.values_list("id", *marks)}
    if any(found.get(row.id) != [getattr(row, mark) for mark in marks] for row in rows):
        return None
    return found.keys() & set(others)


def carry_links(account_id: UUID, made_of: Mapping[UUID, UUID]) -> None:
    """Give what was made of memories (new id by old one) their links to goals, artifacts, and what they went by."""
    links = Link.objects.filter(account_id=account_id, source__in=made_of, type__in=CARRIED)
    insert_links(
        account_id,
        [
            NewLink(
                source_id=made_of[link.source_id],
                type=link.type,
                target_id=link.target_id,
                weight=link.weight,
                properties=link.properties,
            )
            for link in links
        ],
    )


def archive_sources(owner: Owner, rows: Sequence[Memory], *, conversation_id: str, now: datetime) -> None:
    """Take them out of searches, and record it."""
    ids = [row.id for row in rows]
    if not ids:
        return
    mark_all(Memory.objects.filter(id__in=ids), mark="archive", now=now)
    record_audit(
        owner,
        operation="archive",
        memory_type="episodic",
        affected_ids=ids,
        conversation_id=conversation_id,
        session_id=conversation_id,
        result_count=len(ids),
    )


def settled_columns(now: datetime) -> dict[str, Any]:
    """Of a record that was worked on: its next version, and no failed attempts."""
    return {
        "version": F("version") + 1,
        "updated_at": now,
        "compress_after": None,
        "compress_attempts": 0,
        "compress_error": "",
    }
