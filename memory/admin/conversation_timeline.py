"""The timeline of a conversation: turns, memories, injections, uses of tools, recalls and work of jobs in one order.

Each source is asked for one page of events after a cursor, by an index, so that a page costs the same few queries
wherever it begins. Recalls and jobs come from the audit log, as far as its level keeps them. The log has no index by
conversation: a page examines a limited number of the account's entries, and ends where that ended.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode

from ledger.models import Injection
from memory.admin.base import BoundedAdmin
from memory.admin.columns import change_url, turn_url, why_url
from memory.admin.text import excerpt_of, mark_invisible, text_excerpt
from memory.kinds import Kind, spec_of
from memory.models import AuditEntry, Conversation, Memory, ToolInvocation, Turn
from memory_project.admin_lists import read_uuid

PAGE_EVENTS = 100
MAX_ENTRIES_EXAMINED = 5_000
"""Entries of the account's audit log, of recalls or of all operations, that a page examines for the conversation."""
TEXT_CHARACTERS = 400

TURN, MEMORY, INJECTION, TOOL, RECALL, WORK = "turn", "memory", "injection", "tool", "recall", "work"
TYPES = {
    TURN: ("Turns", "memory.view_turn"),
    MEMORY: ("Memories", "memory.view_memory"),
    INJECTION: ("Injections", "ledger.view_injection"),
    TOOL: ("Tools", "memory.view_toolinvocation"),
    RECALL: ("Recalls", "memory.view_auditentry"),
    WORK: ("Work", "memory.view_auditentry"),
}
"""The types of events, each with its plural and with the permission that shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """Something that happened in a conversation. `day` is set on the first event of a day."""

    at: datetime
    id: UUID
    type: str
    title: str
    text: str = ""
    who: str = ""
    url: str = ""
    item_key: str = ""
    day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCursor:
    """A place between events in order of time: the last one of the page before, or the last entry that it examined."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.id}"

    def behind(self, column: str) -> Q:
        """Return the condition on rows after the cursor, which are ordered by `column` and id."""
        later = Q(**{f"{column}__gt": self.at}) | Q(**{column: self.at, "id__gt": self.id})
        # an alternative by itself is no bound to an index
        return Q(**{f"{column}__gte": self.at}) & later

    def until(self, column: str) -> Q:
        """Return the condition on rows up to the cursor."""
        earlier = Q(**{f"{column}__lt": self.at}) | Q(**{column: self.at, "id__lte": self.id})
        return Q(**{f"{column}__lte": self.at}) & earlier


def parse_cursor(text: str) -> EventCursor | None:
    """Return the cursor that a link sent; None for anything else."""
    at, _, row_id = text.partition("~")
    try:
        moment, found = parse_datetime(at), read_uuid(row_id)
    except ValueError:
        return None
    return EventCursor(at=moment, id=found) if moment and moment.tzinfo and found else None


def page_of(rows: QuerySet[Any], column: str, after: EventCursor | None) -> QuerySet[Any]:
    """Return the first page of rows after the cursor in order of `column`, and one row more."""
    behind = rows.filter(after.behind(column)) if after else rows
    return behind.order_by(column, "id")[: PAGE_EVENTS + 1]


def turn_events(conversation: Conversation, after: EventCursor | None) -> Iterator[TimelineEvent]:
    rows = Turn.objects.filter(account_id=conversation.account_id, log=conversation)
    columns = ("id", "event_time", "index", "role", "name", Left("text", TEXT_CHARACTERS + 1))
    for row_id, at, index, role, name, text in page_of(rows, "event_time", after).values_list(*columns):
        yield TimelineEvent(
            at=at,
            id=row_id,
            type=TURN,
            title=f"Turn {index}",
            text=excerpt_of(text, characters=TEXT_CHARACTERS),
            who=mark_invisible(name or role),
            url=turn_url(conversation.pk, index),
        )


def memory_events(conversation: Conversation, after: EventCursor | None) -> Iterator[TimelineEvent]:
    """Yield the memories of the conversation as they were stored: summaries, and what was extracted or noted."""
    rows = Memory.objects.filter(account_id=conversation.account_id, conversation_id=conversation.conversation_id)
    rows = rows.exclude(kind=Kind.TURN)
    columns = ("id", "created_at", "kind", "agent_id", "source", Left("text", TEXT_CHARACTERS + 1))
    for row_id, at, kind, agent_id, source, text in page_of(rows, "created_at", after).values_list(*columns):
        label = "Summary" if kind == Kind.EPISODE and source == "summary" else f"Stored {spec_of(kind).label}"
        yield TimelineEvent(
            at=at,
            id=row_id,
            type=MEMORY,
            title=label,
            text=excerpt_of(text, characters=TEXT_CHARACTERS),
            who=mark_invisible(", ".join(filter(None, [agent_id, source]))),
            url=why_url(row_id),
        )


def injection_events(conversation: Conversation, after: EventCursor | None) -> Iterator[TimelineEvent]:
    rows = Injection.objects.in_account(conversation.account_id).in_conversation(conversation.conversation_id)
    for row in page_of(rows, "at", after):
        title = {"marked": "Injected", "evicted": "Evicted", "ended": "Ledger cleared"}[row.event]
        yield TimelineEvent(
            at=row.at, id=row.id, type=INJECTION, title=title, who=mark_invisible(row.agent_id), item_key=row.item_key
        )


def tool_events(conversation: Conversation, after: EventCursor | None) -> Iterator[TimelineEvent]:
    rows = ToolInvocation.objects.filter(
        account_id=conversation.account_id, conversation_id=conversation.conversation_id
    )
    columns = ("id", "timestamp", "tool_name", "agent_id", "success", "latency_ms")
    results = {True: "succeeded", False: "failed", None: "its result is not known"}
    for row_id, at, name, agent_id, success, latency in page_of(rows, "timestamp", after).values_list(*columns):
        duration = "" if latency is None else f" after {latency:,} ms"
        yield TimelineEvent(
            at=at,
            id=row_id,
            type=TOOL,
            title=f"Tool {excerpt_of(name)}",
            text=f"{results[success]}{duration}",
            who=mark_invisible(agent_id),
            url=change_url("toolinvocation", row_id),
        )


def entries_of(type_: str, conversation: Conversation, after: EventCursor | None) -> QuerySet[AuditEntry]:
    """Return the entries of the account that are examined, by an index in order of time, for whatever conversation."""
    entries = AuditEntry.objects.filter(account_id=conversation.account_id, timestamp__gte=conversation.created_at)
    kept = entries.filter(operation="retrieve") if type_ == RECALL else entries
    return kept.filter(after.behind("timestamp")) if after else kept


def find_last_examined(type_: str, conversation: Conversation, after: EventCursor | None) -> EventCursor | None:
    """Return the last entry that a page examines; None if it examines all that there are."""
    entries = entries_of(type_, conversation, after).order_by("timestamp", "id").values_list("timestamp", "id")
    for at, row_id in entries[MAX_ENTRIES_EXAMINED - 1 : MAX_ENTRIES_EXAMINED]:
        return EventCursor(at=at, id=row_id)
    return None


def audit_events(
    type_: str, conversation: Conversation, after: EventCursor | None, last: EventCursor | None
) -> Iterator[TimelineEvent]:
    """Yield recalls, or what jobs did, from the entries of the audit log up to the last one that is examined."""
    entries = entries_of(type_, conversation, after)
    examined = entries.filter(last.until("timestamp")) if last else entries
    rows = examined.filter(conversation_id=conversation.conversation_id)
    rows = rows if type_ == RECALL else rows.filter(actor__startswith="job:")
    columns = ("id", "timestamp", "operation", "memory_type", "actor", "agent_id", "query_text", "result_count")
    for row_id, at, operation, kind, actor, agent_id, query, count in page_of(rows, "timestamp", None).values_list(
        *columns
    ):
        counted = "" if count is None else f"{count} result{'' if count == 1 else 's'}"
        yield TimelineEvent(
            at=at,
            id=row_id,
            type=type_,
            title="Recall" if type_ == RECALL else f"{operation.replace('_', ' ').capitalize()} {kind}".rstrip(),
            text=excerpt_of(". ".join(filter(None, [query, counted])), characters=TEXT_CHARACTERS),
            who=mark_invisible(agent_id or actor),
            url=change_url("auditentry", row_id),
        )


SOURCES: Mapping[str, Callable[[Conversation, EventCursor | None], Iterable[TimelineEvent]]] = {
    TURN: turn_events,
    MEMORY: memory_events,
    INJECTION: injection_events,
    TOOL: tool_events,
}
"""The sources besides the audit log."""


def read_events(
    conversation: Conversation, types: Sequence[str], after: EventCursor | None
) -> tuple[list[TimelineEvent], EventCursor | None]:
    """Return a page of events of these types, oldest first, and the cursor of the next page; None on the last one.

    A page ends at the last entry of the audit log that was examined, and may be empty though others follow.
    """
    audited = {type_: find_last_examined(type_, conversation, after) for type_ in types if type_ not in SOURCES}
    last = min(filter(None, audited.values()), key=lambda each: (each.at, each.id), default=None)
    found = chain(
        *(SOURCES[type_](conversation, after) for type_ in types if type_ in SOURCES),
        *(audit_events(type_, conversation, after, last) for type_ in audited),
    )
    ordered = sorted(found, key=lambda event: (event.at, event.id))
    if last is not None:
        ordered = [event for event in ordered if (event.at, event.id) <= (last.at, last.id)]
    page = ordered[:PAGE_EVENTS]
    cursor = EventCursor(at=page[-1].at, id=page[-1].id) if len(ordered) > PAGE_EVENTS else last
    return page, cursor


def name_items(
    conversation: Conversation, events: Sequence[TimelineEvent], *, may_read: bool
) -> Iterator[TimelineEvent]:
    """Give injections the kind of the memory that their item key names, and its text and a link to those who may read.

    One query.
    """
    known = read_items(conversation.account_id, [event.item_key for event in events])
    for event in events:
        if row := known.get(event.item_key):
            title = f"{event.title} {spec_of(row.kind).label}"
            text, url = (excerpt_of(row.words), why_url(row.pk)) if may_read else ("", "")
            yield replace(event, title=title, text=text, url=url)
        else:
            yield replace(event, text=mark_invisible(event.item_key)) if event.item_key else event


def read_items(account_id: UUID, item_keys: Iterable[str]) -> dict[str, Any]:
    """Return the memories that keys of the ledger name, by key, with the beginning of their text as `words`."""
    ids = {found for key in item_keys if (found := read_uuid(key.rpartition(":")[2]))}
    rows = Memory.objects.filter(account_id=account_id, id__in=ids).annotate(words=text_excerpt("text"))
    return {row.item_key: row for row in rows.only("id", "kind")} if ids else {}


def mark_days(events: Iterable[TimelineEvent]) -> Iterator[TimelineEvent]:
    day: date | None = None
    for event in events:
        today = event.at.date()
        yield replace(event, day=today) if today != day else event
        day = today


def show_timeline(pages: BoundedAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show a page of events: of all types that the user may see, or of the chosen one."""
    conversation = pages.find_row(request, object_id)
    user: Any = request.user
    allowed = [type_ for type_, (_, permission) in TYPES.items() if user.has_perm(permission)]
    chosen = request.GET.get("type", "")
    after = parse_cursor(request.GET.get("after", ""))
    page, cursor = read_events(conversation, [chosen] if chosen in allowed else allowed, after)
    events = list(mark_days(name_items(conversation, page, may_read=MEMORY in allowed)))
    choices = [("", "All", not chosen), *((type_, TYPES[type_][0], type_ == chosen) for type_ in allowed)]
    following = {"after": str(cursor)} | ({"type": chosen} if chosen in allowed else {})
    return pages.render_page(
        request,
        "conversation/timeline.html",
        "Timeline",
        conversation=conversation,
        heading=mark_invisible(conversation.title or conversation.conversation_id),
        events=events,
        choices=choices,
        is_first=after is None,
        next_query=urlencode(following) if cursor else "",
    )
