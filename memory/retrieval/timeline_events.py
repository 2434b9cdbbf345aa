"""Calls of tools and changes of pools, which are on the timeline besides memories (X16).

Calls of tools are rows of their own. Changes of pools are read from the audit log, so there are none from times when
the account's audit level was `off`, or that are longer ago than the log is kept. Neither quotes an input, an output or
the data of a pool.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from memory.models import AuditEntry, MemoryPool, ToolInvocation
from memory.owner import Owner
from memory.retrieval.timeline import TimelineCursor, TimelineFilter, TimelineItem, read_timeline

DOCUMENTED_IMPORTANCE = 0.5
"""The documented default, for what nobody rates."""
READS = ("retrieve",)


class Event(StrEnum):
    """Types of what is on the timeline besides memories."""

    TOOL_INVOCATION = "tool_invocation"
    POOL_EVENT = "pool_event"


def read_timeline_with_events(
    owner: Owner,
    filters: TimelineFilter,
    *,
    events: Collection[Event],
    has_memories: bool = True,
    beyond: TimelineCursor | None = None,
    newest_first: bool = True,
    limit: int,
    now: datetime,
) -> Sequence[TimelineItem]:
    """Return at most `limit` memories and events of these types after `beyond`, ordered by time, then by id.

    At most four statements: one for memories, one for tools, two for pools.
    """
    page: dict[str, Any] = {"beyond": beyond, "newest_first": newest_first, "limit": limit}
    found = list(read_timeline(owner, filters, **page, now=now)) if has_memories else []
    # events are never archived
    for event in sorted(set(events)) if filters.archived is not True else ():
        found += READERS[event](owner, filters, **page)
    found.sort(key=lambda item: (item.event_time, item.id), reverse=newest_first)
    return found[:limit]


def read_tool_invocations(owner: Owner, filters: TimelineFilter, **page: Any) -> list[TimelineItem]:
    """Return calls of tools in conversations that the owner sees. Input, output and error stay sealed."""
    rows = ToolInvocation.objects.visible_to(owner)
    if filters.conversation_id:
        rows = rows.filter(conversation_id=filters.conversation_id)
    if filters.channel:
        rows = rows.filter(channel=filters.channel)
    rows = rows.defer("tool_input", "tool_output", "error_message")
    return [
        timeline_item(
            row,
            Event.TOOL_INVOCATION,
            summary=describe_invocation(row),
            channel=row.channel,
            metadata={
                "tool_name": row.tool_name,
                "success": row.success,
                "latency_ms": row.latency_ms,
                "task_type": row.task_type,
                "turn_index": row.turn_index,
            },
        )
        for row in page_of(of_user(rows, owner), filters, **page)
    ]


def describe_invocation(row: ToolInvocation) -> str:
    outcome = {True: "succeeded", False: "failed", None: "was called"}[row.success]
    return f"{row.tool_name} {outcome}" + (f" in {row.latency_ms} ms" if row.latency_ms is not None else "")


def read_pool_events(owner: Owner, filters: TimelineFilter, **page: Any) -> list[TimelineItem]:
    """Return changes of pools that the owner may read; for the account itself, also of pools that were deleted.

    With a user, an agent gets only those that it made itself or that the account made: they belong to no user.
    """
    if owner.limited_to_user or filters.conversation_id:
        # pools belong to no user and no conversation
        return []
    pools = MemoryPool.objects.visible_to(owner)
    rows = AuditEntry.objects.in_account(owner.account_id).filter(memory_type="pool").exclude(operation__in=READS)
    if owner.agent_id:
        readable = pools.annotate(row_id=Cast("id", TextField())).values("row_id")
        rows = rows.filter(affected_ids__0__in=readable)
    if owner.agent_id and owner.user_id:
        # as of memories of no user
        rows = rows.filter(agent_id__in=("", owner.agent_id))
    if filters.channel:
        rows = rows.filter(source_channel=filters.channel)
    entries = list(page_of(of_user(rows, owner), filters, **page))
    ids = {entry.affected_ids[0] for entry in entries if entry.affected_ids}
    names = {str(row_id): name for row_id, name in pools.filter(id__in=ids).values_list("id", "pool_id")}
    return [
        timeline_item(
            entry,
            Event.POOL_EVENT,
            summary=f"{entry.operation} {names.get(entry.affected_ids[0], 'of a deleted pool')}",
            channel=entry.source_channel,
            metadata={"operation": entry.operation, "pool_id": names.get(entry.affected_ids[0], "")},
        )
        for entry in entries
        if entry.affected_ids
    ]


def of_user(rows: QuerySet[Any], owner: Owner) -> QuerySet[Any]:
    """Filter to rows of the owner's user and of no user, if the owner has one."""
    return rows.filter(user_id__in=("", owner.user_id)) if owner.user_id else rows


def page_of(
    rows: QuerySet[Any], filters: TimelineFilter, *, beyond: TimelineCursor | None, newest_first: bool, limit: int
) -> QuerySet[Any]:
    """Return the next `limit` rows of the time range, in order."""
    if filters.since is not None:
        rows = rows.filter(timestamp__gte=filters.since)
    if filters.until is not None:
        rows = rows.filter(timestamp__lt=filters.until)
    way, compare = ("-", "lt") if newest_first else ("", "gt")
    if beyond is not None:
        at, last = beyond
        # the first condition is the one that an index, and the partitions by day, can use
        rows = rows.filter(**{f"timestamp__{compare}e": at}).filter(
            Q(**{f"timestamp__{compare}": at}) | Q(timestamp=at, **{f"id__{compare}": last})
        )
    return rows.order_by(f"{way}timestamp", f"{way}id")[:limit]


def timeline_item(
    row: ToolInvocation | AuditEntry, event: Event, *, summary: str, channel: str, metadata: dict[str, Any]
) -> TimelineItem:
    return TimelineItem(
        id=row.id,
        kind=event.value,
        event_time=row.timestamp,
        summary=summary,
        truncated=False,
        status=None,
        importance=DOCUMENTED_IMPORTANCE,
        access_count=0,
        last_accessed=None,
        channel=channel,
        archived=False,
        conversation_id=row.conversation_id,
        agent_id=row.agent_id,
        user_id=row.user_id,
        metadata=metadata,
    )


READERS: Mapping[Event, Callable[..., list[TimelineItem]]] = {
    Event.TOOL_INVOCATION: read_tool_invocations,
    Event.POOL_EVENT: read_pool_events,
}
