"""Counts and sizes of everything that is stored, for operators, in a bounded number of queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps
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
from memory.models.statements import fetch_rows
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, ConversationQueue
from memory_project import redis

AUDIT_TABLE = "memory_audit_log"

# counts of the statistics collector: no table scan, but the last moments may be missing
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
    """The number of vectors of a model and width."""

    model: str
    width: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEmbeddings:
    """Memories without a vector: those due now, those postponed after a failure, and the creation time of the oldest.

    `by_error` counts both by the code of the last failure; "" for those that have not failed.
    """

    due: int
    waiting: int
    oldest: datetime | None
    by_error: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingConversations:
    """Conversations in a queue, due or not; `failing` ones had their last attempt fail, or its worker die.

    `parked` ones have left the queue: they failed too often and wait for staff.
    """

    waiting: int
    failing: int
    parked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeCounts:
    """Counts of knowledge: `facts` by status, `entities` without merged ones.

    `tombstones_met` are tombstones whose claim extraction has met since.
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
    """The size of a table with its partitions. `rows` is an estimate."""

    table: str
    rows: int
    table_bytes: int
    index_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisFigures:
    """Figures of the whole server. `journal` counts ledger changes that are not yet rows.

    Without an epoch, ledgers were lost.
    """

    memory_bytes: int
    keys: int
    journal: int
    epoch: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts for one account or all; tables, audit log and Redis always cover the whole installation.

    `audit_by_day` is an estimate by partition. `redis` is None if it is down.
    """

    memories: Mapping[str, int]
    vectors: Sequence[VectorCount]
    pending: PendingEmbeddings
    summaries: WaitingConversations
    extractions: WaitingConversations
    knowledge: KnowledgeCounts
    links: int
    participants: int
    injections: int
    job_runs: Mapping[str, int]
    audit_by_day: Mapping[str, int]
    tables: Sequence[TableSize]
    redis: RedisFigures | None


def gather_statistics(account_id: UUID | None, *, now: datetime) -> Statistics:
    """Return the statistics of one account, or of all. A fixed number of queries and one round trip to Redis."""
    of = {} if account_id is None else {"account_id": account_id}
    memories, conversations = Memory.objects.filter(**of), Conversation.objects.filter(**of)
    return Statistics(
        memories=count_by(memories, "kind"),
        vectors=count_vectors_by_model(Vector.objects.filter(**of)),
        pending=count_pending_embeddings(memories.awaiting_embedding(), now=now),
        summaries=count_waiting_conversations(SUMMARIES, conversations, now=now),
        extractions=count_waiting_conversations(EXTRACTION, conversations, now=now),
        knowledge=count_knowledge(of),
        links=Link.objects.filter(**of).count(),
        participants=Participant.objects.filter(**of).count(),
        injections=Injection.objects.filter(**of).count(),
        job_runs=count_by(JobRun.objects.filter(**of), "status"),
        audit_by_day=estimate_audit_by_day(),
        tables=measure_tables(),
        redis=read_redis_figures(),
    )


def count_by(rows: "QuerySet[Any]", column: str) -> dict[str, int]:
    return dict(rows.values_list(column).annotate(count=Count("pk")).order_by(column))


def count_vectors_by_model(vectors: "QuerySet[Vector]") -> list[VectorCount]:
    rows = vectors.values_list("model", "width").annotate(count=Count("pk")).order_by("model", "width")
    return [VectorCount(model=model, width=width, count=count) for model, width, count in rows]


def count_pending_embeddings(pending: "QuerySet[Memory]", *, now: datetime) -> PendingEmbeddings:
    """Count in one query, with a group for each error."""
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


def count_waiting_conversations(
    queue: ConversationQueue, conversations: "QuerySet[Conversation]", *, now: datetime
) -> WaitingConversations:
    """Count those of the conversations that are in the queue, or parked."""
    # an attempt is counted when it begins: a first attempt that is still running has not failed
    is_at_work = Q(**{queue.error: "", f"{queue.lease}__gt": now})
    failed = Q(**{f"{queue.attempts}__gt": 0}) & ~is_at_work
    waits, parked = Q(**{f"{queue.due}__isnull": False}), Q(**{f"{queue.parked}__isnull": False})
    found = conversations.filter(waits | parked).aggregate(
        waiting=Count("id", filter=waits),
        failing=Count("id", filter=waits & failed),
        parked=Count("id", filter=parked),
    )
    return WaitingConversations(**found)


def count_knowledge(of: Mapping[str, Any]) -> KnowledgeCounts:
    tombstones = FactTombstone.objects.filter(**of)
    return KnowledgeCounts(
        entities=Entity.objects.filter(**of, merged_into=None).count(),
        facts=count_by(Fact.objects.filter(**of), "status"),
        open_reviews=FactReview.objects.filter(**of, status=FactReview.Status.OPEN).count(),
        **tombstones.aggregate(tombstones=Count("id"), tombstones_met=Count("id", filter=Q(met_count__gt=0))),
        open_goals=Goal.objects.filter(**of, status__in=Goal.OPEN).count(),
        invocations=ToolInvocation.objects.filter(**of).count(),
    )


def estimate_audit_by_day() -> dict[str, int]:
    """Return the estimated number of entries by day (YYYY-MM-DD), from the partitions."""
    days = {name.removeprefix(f"{AUDIT_TABLE}_"): rows for name, rows in fetch_rows(PARTITIONS, [AUDIT_TABLE])}
    return {f"{day[:4]}-{day[4:6]}-{day[6:]}": rows for day, rows in days.items()}


def measure_tables() -> list[TableSize]:
    """Return the sizes of our apps' tables, the largest first."""
    ours = [model._meta.db_table for app in ("memory", "ledger") for model in apps.get_app_config(app).get_models()]
    return [
        TableSize(table=table, rows=int(rows), table_bytes=int(table_bytes), index_bytes=int(index_bytes))
        for table, rows, table_bytes, index_bytes in fetch_rows(SIZES, [ours])
    ]


def read_redis_figures() -> RedisFigures | None:
    """Return figures of Redis, or None if it is down."""
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
