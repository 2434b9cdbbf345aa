"""Figures of all accounts or of some of them, each counted up to a limit, for the first page of the admin."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import Sum

from memory.kinds import all_kinds
from memory.models import Conversation, FactReview, JobRun, ModelUsage, Vector
from memory.models.statements import fetch_rows
from memory.services.conversations.queue import EXTRACTION, SUMMARIES
from memory.services.operations.backlogs import (
    MAX_COUNTED,
    QueueBacklog,
    count_embedding_backlog,
    count_queue_backlog,
    limit_accounts,
)
from memory_project.ids import first_uuid7

RUNS_SINCE = timedelta(days=1)
USAGE_DAYS = 7

# the index `memory_latest` begins with the account and the kind
BY_KIND = """
SELECT asked.kind, (SELECT count(*) FROM (
    SELECT FROM memories WHERE account_id = ANY(%(accounts)s::uuid[]) AND kind = asked.kind LIMIT %(most)s
) AS found)
FROM unnest(%(kinds)s::text[]) AS asked (kind)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSums:
    """Sums over the use of language models from the day `since` on."""

    since: date
    calls: int
    failed_calls: int
    cost: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFigures:
    """The work that waits, runs or failed. Counts end at MAX_COUNTED.

    `runs` has the runs of jobs by status that were requested from `runs_since` on. `reviews` are open contradictions.
    """

    embeddings: QueueBacklog
    extractions: QueueBacklog
    summaries: QueueBacklog
    parked_extractions: int
    parked_summaries: int
    reviews: int
    runs: Mapping[str, int]
    runs_since: datetime
    usage: ModelSums


def read_account_figures(now: datetime, *, accounts: Collection[UUID] | None) -> AccountFigures:
    """Return the figures of these accounts; None for all. Seven statements."""
    conversations = limit_accounts(Conversation.objects.all(), accounts)
    reviews = limit_accounts(FactReview.objects.filter(status=FactReview.Status.OPEN), accounts)
    return AccountFigures(
        embeddings=count_embedding_backlog(now, accounts=accounts),
        extractions=count_queue_backlog(EXTRACTION, now, accounts=accounts),
        summaries=count_queue_backlog(SUMMARIES, now, accounts=accounts),
        parked_extractions=conversations.filter(extract_parked_at__isnull=False).values("pk")[:MAX_COUNTED].count(),
        parked_summaries=conversations.filter(summary_parked_at__isnull=False).values("pk")[:MAX_COUNTED].count(),
        reviews=reviews.values("pk")[:MAX_COUNTED].count(),
        runs=count_runs(now - RUNS_SINCE, accounts),
        runs_since=now - RUNS_SINCE,
        usage=sum_usage(now, accounts),
    )


def count_runs(since: datetime, accounts: Collection[UUID] | None) -> Mapping[str, int]:
    """Count the latest runs by status. Ids are in chronological order."""
    rows = limit_accounts(JobRun.objects.filter(id__gte=first_uuid7(since), created_at__gte=since), accounts)
    return Counter(rows.order_by("-id").values_list("status", flat=True)[:MAX_COUNTED])


def sum_usage(now: datetime, accounts: Collection[UUID] | None) -> ModelSums:
    since = now.astimezone(UTC).date() - timedelta(days=USAGE_DAYS - 1)
    rows = limit_accounts(ModelUsage.objects.filter(day__gte=since), accounts)
    sums = rows.aggregate(**{name: Sum(name, default=0) for name in ("calls", "failed_calls", "cost")})
    return ModelSums(since=since, **sums)


def count_memories_by_kind(accounts: Collection[UUID]) -> dict[str, int]:
    """Return the number of memories of these accounts, archived ones included, by kind. One statement."""
    kinds = [kind.value for kind in all_kinds()]
    return dict(fetch_rows(BY_KIND, {"accounts": list(accounts), "kinds": kinds, "most": MAX_COUNTED}))


def count_vectors(accounts: Collection[UUID]) -> int:
    return Vector.objects.filter(account_id__in=accounts).values("pk")[:MAX_COUNTED].count()
