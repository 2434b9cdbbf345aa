"""Tools and their uses (X4): what was called in a conversation, whether it worked, how long it took.

What went in, what came out and what went wrong are sealed before they reach the database, and are told nowhere else:
not in the audit log, not in any message.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Aggregate, BinaryField, Count, FloatField, Max, Q, QuerySet
from django.db.models.functions import Cast

from memory.audit import record
from memory.errors import NotFound, TooLarge, Unprocessable
from memory.models import Tool, ToolInvocation
from memory.owner import Owner
from memory.services.conversations.lifecycle import is_id, join_conversation
from memory_project.encryption import SealBroken, unseal
from memory_project.ids import uuid7

CLOCK_SKEW = timedelta(minutes=5)
LARGEST_VALUE_BYTES = 262_144
"""Of an input, of an output, of an error; each as JSON."""
LARGEST_NUMBER = 2_147_483_647
SEALED = ("tool_input", "tool_output", "error_message")
GIVEN = (
    *("id", "conversation_id", "tool_name", "tool_input", "tool_output", "success", "latency_ms", "task_type"),
    "turn_index",
)
"""Columns that a draft has as they are."""
GROUPS = ("task_type", "channel")
"""What statistics of a tool may be told apart by."""

# Django has no words for it: those who write beside are not waited for, an erasure is
HOLD_CONVERSATIONS = """
SELECT id FROM conversations WHERE account_id = %s AND id = ANY(%s) ORDER BY id FOR KEY SHARE
"""

# what many uses came to is added at once; in one order everywhere, since writers wait for each other's rows
COUNT_USES = """
INSERT INTO tools (id, account_id, name, description, usage_count, success_count, failure_count, timed_count,
    total_latency_ms, last_used)
SELECT used.id, %s, used.name, '', used.usage_count, used.success_count, used.failure_count, used.timed_count,
    used.total_latency_ms, used.last_used
FROM unnest(%s::uuid[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
    %s::timestamptz[]) AS used (id, name, usage_count, success_count, failure_count, timed_count, total_latency_ms,
    last_used)
ON CONFLICT (account_id, name) DO UPDATE SET
    usage_count = tools.usage_count + EXCLUDED.usage_count,
    success_count = tools.success_count + EXCLUDED.success_count,
    failure_count = tools.failure_count + EXCLUDED.failure_count,
    timed_count = tools.timed_count + EXCLUDED.timed_count,
    total_latency_ms = tools.total_latency_ms + EXCLUDED.total_latency_ms,
    last_used = greatest(tools.last_used, EXCLUDED.last_used)
RETURNING name, id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationDraft:
    """A use of a tool before it is recorded. `success` None: nobody said; the time is that of recording by default."""

    conversation_id: str
    tool_name: str
    tool_input: Any = None
    tool_output: Any = None
    success: bool | None = None
    latency_ms: int | None = None
    error_message: str = ""
    task_type: str = ""
    turn_index: int | None = None
    timestamp: datetime | None = None
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedInvocation:
    """An invocation (without its sealed columns) and what was sealed of it.

    `sealed`: none of the keys opens some of it, which is None here.
    """

    invocation: ToolInvocation
    tool_input: Any
    tool_output: Any
    error_message: str | None
    sealed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStats:
    """What uses of a tool came to. `success_rate` is of those of which it is known, None for none of them.

    `task_type` and `channel` are None where uses of several are counted together; latencies where none is known.
    """

    tool_name: str
    task_type: str | None
    channel: str | None
    usage_count: int
    success_count: int
    failure_count: int
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    last_used: datetime

    @property
    def success_rate(self) -> float | None:
        told = self.success_count + self.failure_count
        return self.success_count / told if told else None


@dataclass(slots=True, kw_only=True)
class Uses:
    """What some uses of one tool add to its counts."""

    id: UUID = field(default_factory=uuid7)
    name: str
    usage_count: int = 0
    success_count: int = 0
    failure_count: int = 0
    timed_count: int = 0
    total_latency_ms: int = 0
    last_used: datetime

    def add(self, row: ToolInvocation) -> None:
        self.usage_count += 1
        self.success_count += row.success is True
        self.failure_count += row.success is False
        self.timed_count += row.latency_ms is not None
        self.total_latency_ms += row.latency_ms or 0
        self.last_used = max(self.last_used, row.timestamp)


class Percentile(Aggregate):
    """What a share of the values lies below or at, interpolated; None of none."""

    function = "percentile_cont"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()

    def __init__(self, expression: str, *, share: float) -> None:
        super().__init__(expression, share=share)


def record_invocation(owner: Owner, draft: InvocationDraft, *, now: datetime) -> ToolInvocation:
    """Record a use of a tool. Raises as `record_invocations` does."""
    return record_invocations(owner, [draft], now=now)[0]


def record_invocations(owner: Owner, drafts: Sequence[InvocationDraft], *, now: datetime) -> list[ToolInvocation]:
    """Record uses of tools, all or none; tools and conversations come to be with their first.

    The agent takes part in the conversations from then on. Raises TooLarge above LARGEST_VALUE_BYTES, Unprocessable
    for what cannot be kept.
    """
    for draft in drafts:
        check_draft(draft, now=now)
    rows = [make_invocation(owner, draft, now=now) for draft in drafts]
    with transaction.atomic():
        join_conversations(owner, {draft.conversation_id for draft in drafts}, now=now)
        tools = count_uses(owner, rows)
        for row in rows:
            row.tool_id = tools[row.tool_name]
        ToolInvocation.objects.bulk_create(rows)
        record_recording(owner, rows)
    return rows


def join_conversations(owner: Owner, conversation_ids: Collection[str], *, now: datetime) -> None:
    """Take part in conversations that last until the transaction ends: who erases one waits, and erases what was
    written by then; one that is erased already begins anew."""
    missing = sorted(conversation_ids)
    while missing:
        joined = {join_conversation(owner, name, now=now).id: name for name in missing}
        with connection.cursor() as cursor:
            cursor.execute(HOLD_CONVERSATIONS, [owner.account_id, list(joined)])
            held = {row_id for (row_id,) in cursor.fetchall()}
        missing = [name for row_id, name in joined.items() if row_id not in held]


def check_draft(draft: InvocationDraft, *, now: datetime) -> None:
    """Raises TooLarge, Unprocessable."""
    numbers = [number for number in (draft.latency_ms, draft.turn_index) if number is not None]
    wrong = ""
    if not is_id(draft.tool_name) or (draft.task_type and not is_id(draft.task_type)):
        wrong = "tool_name and task_type have at most 100 characters, no NUL and no lone surrogate"
    elif not all(0 <= number <= LARGEST_NUMBER for number in numbers):
        wrong = f"latency_ms and turn_index are from 0 to {LARGEST_NUMBER}"
    elif draft.timestamp is not None and (draft.timestamp.tzinfo is None or draft.timestamp > now + CLOCK_SKEW):
        wrong = "its timestamp has no zone, or lies in the future"
    if wrong:
        raise Unprocessable(wrong)
    for name in SEALED:
        check_value(name, getattr(draft, name))


def check_value(name: str, value: Any) -> None:
    """Raises TooLarge, Unprocessable."""
    try:
        size_bytes = len(json.dumps(value, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        # not chained: it would quote what must not be told
        raise Unprocessable(f"{name} is no JSON value") from None
    if size_bytes > LARGEST_VALUE_BYTES:
        message = f"{name} has {size_bytes} bytes as JSON, {LARGEST_VALUE_BYTES} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=LARGEST_VALUE_BYTES)


def make_invocation(owner: Owner, draft: InvocationDraft, *, now: datetime) -> ToolInvocation:
    given = {name: getattr(draft, name) for name in GIVEN}
    return ToolInvocation(
        account_id=owner.account_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        channel=owner.channel,
        error_message=draft.error_message or None,
        timestamp=draft.timestamp or now,
        created_at=now,
        **given,
    )


def count_uses(owner: Owner, rows: Iterable[ToolInvocation]) -> dict[str, UUID]:
    """Add uses to the counts of their tools, made where they are new: their ids by name. One statement."""
    uses: dict[str, Uses] = {}
    for row in rows:
        uses.setdefault(row.tool_name, Uses(name=row.tool_name, last_used=row.timestamp)).add(row)
    in_order = [asdict(uses[name]) for name in sorted(uses)]
    columns = (
        *("id", "name", "usage_count", "success_count", "failure_count", "timed_count", "total_latency_ms"),
        "last_used",
    )
    with connection.cursor() as cursor:
        cursor.execute(COUNT_USES, [owner.account_id, *([use[name] for use in in_order] for name in columns)])
        return dict(cursor.fetchall())


def ensure_tools(owner: Owner, names: Collection[str]) -> dict[str, UUID]:
    """The tools of these names, made where they are unknown: their ids by name. Joins the caller's transaction."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    # in one order everywhere, as uses are counted
    Tool.objects.bulk_create([Tool(account_id=owner.account_id, name=name) for name in wanted], ignore_conflicts=True)
    return dict(Tool.objects.filter(account_id=owner.account_id, name__in=wanted).values_list("name", "id"))


def record_recording(owner: Owner, rows: Sequence[ToolInvocation]) -> None:
    conversations = {row.conversation_id for row in rows}
    conversation_id = conversations.pop() if len(conversations) == 1 else ""
    record(
        owner,
        operation="store",
        memory_type="procedural",
        affected_ids=[row.id for row in rows],
        conversation_id=conversation_id,
        session_id=conversation_id,
        result_count=len(rows),
    )


def visible_invocations(owner: Owner) -> QuerySet[ToolInvocation]:
    """Those of the conversations in which the agent takes part, without what is sealed: it may be a megabyte a row."""
    return ToolInvocation.objects.visible_to(owner).defer(*SEALED)


def sealed_invocations(owner: Owner) -> QuerySet[ToolInvocation]:
    """`visible_invocations` with what is sealed of them, until `open_invocation` opens one."""
    sealed = {f"sealed_{name}": Cast(name, BinaryField()) for name in SEALED}
    return visible_invocations(owner).annotate(**sealed)


def find_invocation(owner: Owner, invocation_id: UUID) -> OpenedInvocation:
    """Raises NotFound."""
    found = sealed_invocations(owner).filter(id=invocation_id).first()
    if found is None:
        raise NotFound("no such invocation")
    return open_invocation(found)


def open_invocation(row: ToolInvocation) -> OpenedInvocation:
    """Decrypt what is sealed of a row of `sealed_invocations`. What no key opens is told as such, not left out."""
    opened: dict[str, Any] = {}
    sealed = False
    for name in SEALED:
        try:
            opened[name] = open_value(getattr(row, f"sealed_{name}"))
        except SealBroken:
            opened[name], sealed = None, True
    return OpenedInvocation(invocation=row, sealed=sealed, **opened)


def open_value(sealed: bytes | memoryview | None) -> Any:
    """Raises SealBroken."""
    return None if sealed is None else json.loads(unseal(bytes(sealed)))


def get_tool_stats(
    owner: Owner,
    *,
    task_type: str = "",
    channel: str = "",
    since: datetime | None = None,
    by: Collection[str] = (),
    now: datetime,
) -> list[ToolStats]:
    """What the uses came to that the owner may see, tool by tool, in the order of their names. One statement.

    Of one type of task, of one channel, from `since` up to `now` where they are given; else of all there are, of all
    time. `by` tells uses of different task types or channels (GROUPS) apart.
    """
    rows = tool_usage(owner, task_type=task_type, channel=channel, since=since, by=by, now=now)
    named = [name for name in GROUPS if name in by]
    return [make_stats(row) for row in rows.order_by("tool_name", *named)]


def tool_usage(
    owner: Owner,
    *,
    task_type: str = "",
    channel: str = "",
    since: datetime | None = None,
    by: Collection[str] = (),
    now: datetime,
) -> "QuerySet[ToolInvocation, dict[str, Any]]":
    """The rows of `get_tool_stats`, in no order, as mappings that `make_stats` reads."""
    rows = ToolInvocation.objects.visible_to(owner).filter(timestamp__lte=now + CLOCK_SKEW)
    conditions = {"task_type": task_type, "channel": channel, "timestamp__gte": since}
    rows = rows.filter(**{name: value for name, value in conditions.items() if value})
    # in this order: pages go by it
    groups = [name for name in GROUPS if name in by]
    summed: QuerySet[ToolInvocation, dict[str, Any]] = rows.values("tool_name", *groups).annotate(
        usage_count=Count("id"),
        success_count=Count("id", filter=Q(success=True)),
        failure_count=Count("id", filter=Q(success=False)),
        latency_p50_ms=Percentile("latency_ms", share=0.5),
        latency_p95_ms=Percentile("latency_ms", share=0.95),
        last_used=Max("timestamp"),
    )
    return summed


def make_stats(row: dict[str, Any]) -> ToolStats:
    groups: dict[str, Any] = {name: row.get(name) for name in GROUPS}
    return ToolStats(**groups | row)
