"""What is stored and how much of it: figures for operators, in a bounded number of queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connection
from django.db.models import Count, Min, Q, QuerySet
from redis.exceptions import RedisError

from ledger import journal
from ledger.models import Injection
from memory.models import (
    Conversation,
    Entity,
    Fact,
    FactReview,
    FactTombstone,
    Goal,
    JobRun,
    Link,
    Memory,
    Participant,
    ToolInvocation,
    Vector,
)
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, Queue
from memory_project import redis

AUDIT_TABLE = "memory_audit_log"

# the statistics collector's counts: no scan, and off by what happened in the last moments
SIZES = """
SELECT coalesce(parent.relname, own.relname), sum(n_live_tup), sum(pg_table_size(relid)), sum(pg_indexes_size(relid))
FROM pg_stat_user_tables AS own
LEFT JOIN pg_inherits ON inhrelid = relid LEFT JOIN pg_class AS parent ON parent.oid = inhparent
WHERE schemaname = current_schema() AND coalesce(parent.relname, own.relname) = ANY(%s)
GROUP BY 1 ORDER BY sum(pg_total_relation_size(relid)) DESC, 1
"""

PARTITIONS = """
SELECT relname, n_live_tup FROM pg_inherits JOIN pg_stat_user_tables ON relid = inhrelid
WHERE inhparent = to_regclass(%s) ORDER BY relname
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorCount:
    """How many vectors a model has of a width."""

    model: str
    width: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEmbeddings:
    """Memories without their vector: those the embedder may see now, those that wait after a failure, and since when.

    `by_error` counts both by the code of the last failure; those that none has failed yet have the code "".
    """

    due: int
    waiting: int
    oldest: datetime | None
    by_error: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingConversations:
    """How many conversations a queue holds, due or not; `failing`: the last attempt failed, or its worker died.

    `parked` are those that it holds no more: they failed as often as they may, and wait for staff.
    """

    waiting: int
    failing: int
    parked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What is known, by `facts`' status; `entities` without those that were merged into another.

    Of tombstones, `tombstones_met` are those whose claim extraction met since.
    """

    entities: int
    facts: Mapping[str, int]
    open_reviews: int
    tombstones: int
    tombstones_met: int
    open_goals: int
    invocations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """A table with its partitions. `rows` is an estimate."""

    table: str
    rows: int
    table_bytes: int
    index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisFigures:
    """Of the whole server; `journal` counts changes of ledgers that are not yet rows. No epoch: ledgers were lost."""

    memory_bytes: int
    keys: int
    journal: int
    epoch: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts by account where one was asked for; tables, audit log and Redis always of the whole installation.

    `audit_by_day` is an estimate by partition. `redis` is None when it is down.
    """

    memories: Mapping[str, int]
    vectors: Sequence[VectorCount]
    pending: PendingEmbeddings
    summaries: WaitingConversations
    extractions: WaitingConversations
    knowledge: Knowledge
    links: int
    participants: int
    injections: int
    job_runs: Mapping[str, int]
    audit_by_day: Mapping[str, int]
    tables: Sequence[TableSize]
    redis: RedisFigures | None


def gather_statistics(account_id: UUID | None, *, now: datetime) -> Statistics:
    """Of one account, or of all of them. A fixed number of queries and a trip to Redis, however much is stored."""
    of = {} if account_id is None else {"account_id": account_id}
    memories, conversations = Memory.objects.filter(**of), Conversation.objects.filter(**of)
    return Statistics(
        memories=count_by(memories, "kind"),
        vectors=count_vectors(Vector.objects.filter(**of)),
        pending=count_pending(memories.awaiting_embedding(), now=now),
        summaries=count_waiting(SUMMARIES, conversations, now=now),
        extractions=count_waiting(EXTRACTION, conversations, now=now),
        knowledge=count_knowledge(of),
        links=Link.objects.filter(**of).count(),
        participants=Participant.objects.filter(**of).count(),
        injections=Injection.objects.filter(**of).count(),
        job_runs=count_by(JobRun.objects.filter(**of), "status"),
        audit_by_day=estimate_audit_by_day(),
        tables=measure_tables(),
        redis=ask_redis(),
    )


def count_by(rows: "QuerySet[Any]", column: str) -> dict[str, int]:
    return dict(rows.values_list(column).annotate(count=Count("pk")).order_by(column))


def count_vectors(vectors: "QuerySet[Vector]") -> list[VectorCount]:
    rows = vectors.values_list("model", "width").annotate(count=Count("pk")).order_by("model", "width")
    return [VectorCount(model=model, width=width, count=count) for model, width, count in rows]


def count_pending(pending: "QuerySet[Memory]", *, now: datetime) -> PendingEmbeddings:
    """In one query: a group for each error."""
    groups = list(
        pending.values_list("embed_error")
        .annotate(all=Count("pk"), due=Count("pk", filter=Q(embed_after__lte=now)), oldest=Min("created_at"))
        .order_by("embed_error")
    )
    return PendingEmbeddings(
        due=sum(due for _error, _all, due, _oldest in groups),
        waiting=sum(count - due for _error, count, due, _oldest in groups),
        oldest=min((oldest for *_rest, oldest in groups), default=None),
        by_error={error: count for error, count, _due, _oldest in groups},
    )


def count_waiting(queue: Queue, conversations: "QuerySet[Conversation]", *, now: datetime) -> WaitingConversations:
    """Those of the conversations that are in the queue, or parked."""
    # an attempt is counted when it begins: a first one that a worker is at has not failed
    is_at_work = Q(**{queue.error: "", f"{queue.lease}__gt": now})
    failed = Q(**{f"{queue.attempts}__gt": 0}) & ~is_at_work
    waits, parked = Q(**{f"{queue.due}__isnull": False}), Q(**{f"{queue.parked}__isnull": False})
    found = conversations.filter(waits | parked).aggregate(
        waiting=Count("id", filter=waits),
        failing=Count("id", filter=waits & failed),
        parked=Count("id", filter=parked),
    )
    return WaitingConversations(**found)


def count_knowledge(of: Mapping[str, Any]) -> Knowledge:
    entities: Any = Entity.objects.filter(**of)
    goals: Any = Goal.objects.filter(**of)
    tombstones = FactTombstone.objects.filter(**of)
    return Knowledge(
        entities=entities.filter(merged_into=None).count(),
        facts=count_by(Fact.objects.filter(**of), "status"),
        open_reviews=FactReview.objects.filter(**of, status=FactReview.Status.OPEN).count(),
        **tombstones.aggregate(tombstones=Count("id"), tombstones_met=Count("id", filter=Q(met_count__gt=0))),
        open_goals=goals.filter(status__in=Goal.OPEN).count(),
        invocations=ToolInvocation.objects.filter(**of).count(),
    )


def estimate_audit_by_day() -> dict[str, int]:
    """Rows by partition: its day as YYYY-MM-DD."""
    with connection.cursor() as cursor:
        cursor.execute(PARTITIONS, [AUDIT_TABLE])
        days = {name.removeprefix(f"{AUDIT_TABLE}_"): rows for name, rows in cursor.fetchall()}
    return {f"{day[:4]}-{day[4:6]}-{day[6:]}": rows for day, rows in days.items()}


def measure_tables() -> list[TableSize]:
    """The tables of our apps, the largest first."""
    ours = [model._meta.db_table for app in ("memory", "ledger") for model in apps.get_app_config(app).get_models()]
    with connection.cursor() as cursor:
        cursor.execute(SIZES, [ours])
        return [
            TableSize(table=table, rows=int(rows), table_bytes=int(table_bytes), index_bytes=int(index_bytes))
            for table, rows, table_bytes, index_bytes in cursor.fetchall()
        ]


def ask_redis() -> RedisFigures | None:
    """None when it is down."""
    pipeline = redis.client().pipeline(transaction=False)
    pipeline.info("memory")
    pipeline.dbsize()
    pipeline.xlen(journal.JOURNAL)
    pipeline.get(journal.EPOCH)
    try:
        memory, keys, unsaved, epoch = pipeline.execute()
    except RedisError:
        return None
    return RedisFigures(memory_bytes=memory["used_memory"], keys=keys, journal=unsaved, epoch=epoch)
