"""Backlogs: how many rows wait in the queues of embedding, extraction and summaries, and since when."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor, log2
from typing import Any, cast
from uuid import UUID

from django.db.models import (
    Case,
    Count,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    Min,
    Q,
    QuerySet,
    When,
)
from django.db.models.functions import Greatest, Least, Power

from memory import conf
from memory.models import Conversation, Memory
from memory.services.conversations.queue import ConversationQueue

LATE_AFTER = timedelta(hours=1)
MAX_COUNTED = 10_000
"""Rows of a queue that are counted; a larger queue is reported as "or more"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBacklog:
    """The number of rows that wait in a queue, at most MAX_COUNTED, and the time since which the first one waits."""

    count: int
    since: datetime | None

    @property
    def count_text(self) -> str:
        return f"{self.count:,} or more" if self.count >= MAX_COUNTED else f"{self.count:,}"

    def is_late(self, now: datetime) -> bool:
        return self.since is not None and now - self.since > LATE_AFTER


def count_embedding_backlog(now: datetime, *, accounts: Collection[UUID] | None = None) -> QueueBacklog:
    backoff = {"base": conf.EMBED_BACKOFF_SECONDS, "limit": conf.EMBED_BACKOFF_LIMIT_SECONDS}
    due = Greatest(first_due_at("embed_after", F("embed_attempts"), **backoff), F("created_at"))
    rows = limit_accounts(Memory.objects.awaiting_embedding(), accounts)
    return count_backlog(rows.order_by("embed_after"), due, now)


def limit_accounts(rows: "QuerySet[Any]", accounts: Collection[UUID] | None) -> "QuerySet[Any]":
    return rows if accounts is None else rows.filter(account_id__in=accounts)


def count_queue_backlog(
    queue: ConversationQueue, now: datetime, *, accounts: Collection[UUID] | None = None
) -> QueueBacklog:
    backoff = {"base": queue.setting("BACKOFF_SECONDS"), "limit": queue.setting("BACKOFF_LIMIT_SECONDS")}
    due_or_failed = Q(**{f"{queue.due}__lte": now}) | Q(**{f"{queue.due}__isnull": False, f"{queue.attempts}__gt": 0})
    rows = limit_accounts(Conversation.objects.filter(due_or_failed), accounts).order_by(queue.due)
    # an attempt is counted when it begins, but postpones the row only when it fails
    under_way = Case(When(**{f"{queue.lease}__gt": now}, then=1.0), default=0.0)
    return count_backlog(rows, first_due_at(queue.due, F(queue.attempts) - under_way, **backoff), now)


def count_backlog(rows: "QuerySet[Any]", since: Any, now: datetime) -> QueueBacklog:
    """Count the rows that wait now, not those that become due later, such as conversations that may continue."""
    found = (
        rows.annotate(waits_since=since)
        .filter(waits_since__lte=now)[:MAX_COUNTED]
        .aggregate(count=Count("pk"), since=Min("waits_since"))
    )
    return QueueBacklog(**cast("dict[str, Any]", found))


def first_due_at(due: str, attempts: Any, *, base: int, limit: int) -> Any:
    """Return the SQL expression for the time when a row first became due.

    Each failed attempt postponed it by `base` seconds, doubled up to `limit`. The pauses of n attempts, of which the
    first m are below the limit, add up to base (2^min(n, m) - 1) + limit max(n - m, 0).
    """
    doubled = max(0, floor(log2(limit / base)) + 1)
    tried = attempts * 1.0
    pauses = base * (Power(2.0, Least(tried, float(doubled))) - 1.0) + limit * Greatest(tried - float(doubled), 0.0)
    seconds = ExpressionWrapper(pauses, output_field=FloatField())
    interval = Func(seconds, template="make_interval(secs => %(expressions)s)", output_field=DurationField())
    return ExpressionWrapper(F(due) - interval, output_field=DateTimeField())
