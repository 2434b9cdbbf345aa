"""Tools and their uses (X4): what was called in a conversation, whether it worked and how long it took.

`record_invocation` and `record_invocations` store uses, `find_invocation` and `visible_invocations` read them,
`get_tool_stats` sums them up. Inputs, outputs and error messages are sealed before they reach the database, and appear
nowhere else: not in the audit log, not in any message. Only the normalized form of an error that a tool failed with
repeatedly becomes the text of a strategy (`strategies.failures`).
"""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Aggregate, Avg, BinaryField, Count, FloatField, Max, Q, QuerySet
from django.db.models.functions import Cast

from memory.audit import record_audit
from memory.dates import CLOCK_SKEW, has_come
from memory.errors import TooLarge, Unprocessable, require_found
from memory.masking import masks_secrets
from memory.models import Tool, ToolInvocation
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.conversations.lifecycle import is_valid_id, join_conversation
from memory_project.encryption import SealBroken, unseal
from memory_project.ids import uuid7

MAX_VALUE_BYTES = 262_144
"""Bytes of an input, an output or an error message, each as JSON."""
MAX_INTEGER = 2_147_483_647
SEALED_COLUMNS = ("tool_input", "tool_output", "error_message")
GROUP_COLUMNS = ("task_type", "channel")
"""Columns that statistics of a tool may be grouped by."""

# FOR KEY SHARE, which Django does not offer: waits for an erasure, but not for other writers
LOCK_CONVERSATIONS = """
SELECT id FROM conversations WHERE account_id = %s AND id = ANY(%s) ORDER BY id FOR KEY SHARE
"""

# adds the counts of many uses; in one order everywhere, since writers wait for each other's rows
COUNT_USES = """
INSERT INTO tools (id, account_id, name, description, usage_count, success_count, failure_count, timed_count,
    total_latency_ms, last_used)
SELECT (array_agg(id))[1], %s, name, '', count(*), count(*) FILTER (WHERE success),
    count(*) FILTER (WHERE NOT success), count(latency_ms), coalesce(sum(latency_ms), 0), max(used_at)
FROM unnest(%s::uuid[], %s::text[], %s::bool[], %s::bigint[], %s::timestamptz[])
    AS used (id, name, success, latency_ms, used_at)
GROUP BY name ORDER BY name COLLATE "C"
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
    """A use of a tool before it is recorded. `success` is None if unknown, `timestamp` the time of recording."""

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
    """An invocation without its sealed columns, and their decrypted values.

    `sealed`: no key decrypts some of them, which are None here.
    """

    invocation: ToolInvocation
    tool_input: Any
    tool_output: Any
    error_message: str | None
    sealed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStats:
    """Statistics of one tool. `success_rate` covers the uses with a known result, and is None without any.

    `task_type` and `channel` are None where uses of several are counted together, latencies where none is known.
    """

    tool_name: str
    task_type: str | None
    channel: str | None
    usage_count: int
    success_count: int
    failure_count: int
    avg_latency_ms: float | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    last_used: datetime

    @property
    def success_rate(self) -> float | None:
        known = self.success_count + self.failure_count
        return self.success_count / known if known else None


class Percentile(Aggregate):
    """The value that a share of the values lies at or below, interpolated; None of no values."""

    function = "percentile_cont"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()

    def __init__(self, expression: str, *, share: float) -> None:
        super().__init__(expression, share=share)


def record_invocation(owner: Owner, draft: InvocationDraft, *, now: datetime) -> ToolInvocation:
    return record_invocations(owner, [draft], now=now)[0]


@masks_secrets
def record_invocations(owner: Owner, drafts: Sequence[InvocationDraft], *, now: datetime) -> list[ToolInvocation]:
    """Record uses of tools, all or none. New tools and conversations are created; the agent joins those.

    Raises TooLarge above MAX_VALUE_BYTES, Unprocessable for values that cannot be stored.
    """
    for draft in drafts:
        check_invocation_draft(draft, now=now)
    rows = [
        ToolInvocation(
            account_id=owner.account_id,
            agent_id=owner.agent_id,
            user_id=owner.user_id,
            channel=owner.channel,
            created_at=now,
            **{column.name: getattr(draft, column.name) for column in fields(InvocationDraft)}
            | {"error_message": draft.error_message or None, "timestamp": draft.timestamp or now},
        )
        for draft in drafts
    ]
    with transaction.atomic():
        join_conversations(owner, {draft.conversation_id for draft in drafts}, now=now)
        tools = count_tool_uses(owner, rows)
        for row in rows:
            row.tool_id = tools[row.tool_name]
        ToolInvocation.objects.bulk_create(rows)
        conversations = {row.conversation_id for row in rows}
        conversation_id = conversations.pop() if len(conversations) == 1 else ""
        record_audit(
            owner,
            operation="store",
            memory_type="procedural",
            affected_ids=[row.id for row in rows],
            conversation_id=conversation_id,
            session_id=conversation_id,
            result_count=len(rows),
        )
    return rows


def join_conversations(owner: Owner, conversation_ids: Collection[str], *, now: datetime) -> None:
    """Join conversations, and lock them against erasure until the transaction ends; an erased one is created again."""
    missing = sorted(conversation_ids)
    while missing:
        joined = {join_conversation(owner, name, now=now).id: name for name in missing}
        held = {row_id for (row_id,) in fetch_rows(LOCK_CONVERSATIONS, [owner.account_id, list(joined)])}
        missing = [name for row_id, name in joined.items() if row_id not in held]


def check_invocation_draft(draft: InvocationDraft, *, now: datetime) -> None:
    numbers = [number for number in (draft.latency_ms, draft.turn_index) if number is not None]
    problem = ""
    if not is_valid_id(draft.tool_name) or (draft.task_type and not is_valid_id(draft.task_type)):
        problem = "tool_name and task_type must have at most 100 characters, no NUL and no lone surrogate"
    elif not all(0 <= number <= MAX_INTEGER for number in numbers):
        problem = f"latency_ms and turn_index must be between 0 and {MAX_INTEGER}"
    elif draft.timestamp is not None and not has_come(draft.timestamp, now=now):
        problem = "timestamp must have a time zone and must not be in the future"
    if problem:
        raise Unprocessable(problem)
    for name in SEALED_COLUMNS:
        check_json_value(name, getattr(draft, name))


def check_json_value(name: str, value: Any) -> None:
    """Raise TooLarge or Unprocessable for a value that cannot be stored as JSON."""
    try:
        size_bytes = len(json.dumps(value, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        # not chained, as the error would quote the value
        raise Unprocessable(f"{name} is not a JSON value") from None
    if size_bytes > MAX_VALUE_BYTES:
        message = f"{name} has {size_bytes} bytes as JSON; at most {MAX_VALUE_BYTES} are allowed. Nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=MAX_VALUE_BYTES)


def count_tool_uses(owner: Owner, rows: Sequence[ToolInvocation]) -> dict[str, UUID]:
    """Add uses to the counts of their tools, creating new ones. Returns the tools' ids by name. One statement."""
    names = ("tool_name", "success", "latency_ms", "timestamp")
    columns: list[list[Any]] = [[uuid7() for _ in rows], *([getattr(row, name) for row in rows] for name in names)]
    return dict(fetch_rows(COUNT_USES, [owner.account_id, *columns]))


def ensure_tools(owner: Owner, names: Collection[str]) -> dict[str, UUID]:
    """Return the ids of tools by name, creating unknown ones. Joins the caller's transaction."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    # in the same order as uses are counted
    Tool.objects.bulk_create([Tool(account_id=owner.account_id, name=name) for name in wanted], ignore_conflicts=True)
    return dict(Tool.objects.filter(account_id=owner.account_id, name__in=wanted).values_list("name", "id"))


def visible_invocations(owner: Owner) -> QuerySet[ToolInvocation]:
    """Return the uses in conversations that the agent takes part in, without sealed columns: up to a megabyte a row."""
    return ToolInvocation.objects.visible_to(owner).defer(*SEALED_COLUMNS)


def sealed_invocations(owner: Owner) -> QuerySet[ToolInvocation]:
    """Return `visible_invocations` with their sealed columns, for `open_invocation`."""
    sealed = {f"sealed_{name}": Cast(name, BinaryField()) for name in SEALED_COLUMNS}
    return visible_invocations(owner).annotate(**sealed)


def find_invocation(owner: Owner, invocation_id: UUID) -> OpenedInvocation:
    """Return an invocation with its decrypted values. Raises NotFound."""
    return open_invocation(require_found(sealed_invocations(owner).filter(id=invocation_id).first(), "invocation"))


def open_invocation(row: ToolInvocation) -> OpenedInvocation:
    """Decrypt the sealed columns of a row of `sealed_invocations`. What no key decrypts is reported as sealed."""
    opened: dict[str, Any] = {}
    sealed = False
    for name in SEALED_COLUMNS:
        value: bytes | memoryview | None = getattr(row, f"sealed_{name}")
        try:
            opened[name] = None if value is None else json.loads(unseal(bytes(value)))
        except SealBroken:
            opened[name], sealed = None, True
    return OpenedInvocation(invocation=row, sealed=sealed, **opened)


def read_error_messages(rows: QuerySet[ToolInvocation]) -> Iterator[tuple[ToolInvocation, str]]:
    """Yield the rows that have an error message, with the decrypted message, without those that no key decrypts."""
    for row in rows.defer(*SEALED_COLUMNS).annotate(sealed_error=Cast("error_message", BinaryField())):
        try:
            message = json.loads(unseal(bytes(row.sealed_error)))
        except SealBroken:
            continue
        if isinstance(message, str):
            yield row, message


def get_tool_stats(
    owner: Owner,
    *,
    task_type: str = "",
    channel: str = "",
    since: datetime | None = None,
    by: Collection[str] = (),
    now: datetime,
) -> list[ToolStats]:
    """Return statistics of the uses that the owner may see, ordered by tool name. One statement.

    They are limited to one type of task, one channel and the time from `since` to `now`, where given. `by` names the
    columns (GROUP_COLUMNS) whose values are counted separately.
    """
    rows = tool_usage(owner, task_type=task_type, channel=channel, since=since, by=by, now=now)
    named = [name for name in GROUP_COLUMNS if name in by]
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
    """Return the unordered rows of `get_tool_stats`, as mappings that `make_stats` reads."""
    rows = ToolInvocation.objects.visible_to(owner).filter(timestamp__lte=now + CLOCK_SKEW)
    conditions = {"task_type": task_type, "channel": channel, "timestamp__gte": since}
    rows = rows.filter(**{name: value for name, value in conditions.items() if value})
    # in a fixed order, which page cursors rely on
    groups = [name for name in GROUP_COLUMNS if name in by]
    summed: QuerySet[ToolInvocation, dict[str, Any]] = rows.values("tool_name", *groups).annotate(
        usage_count=Count("id"),
        success_count=Count("id", filter=Q(success=True)),
        failure_count=Count("id", filter=Q(success=False)),
        avg_latency_ms=Avg("latency_ms"),
        latency_p50_ms=Percentile("latency_ms", share=0.5),
        latency_p95_ms=Percentile("latency_ms", share=0.95),
        last_used=Max("timestamp"),
    )
    return summed


def make_stats(row: dict[str, Any]) -> ToolStats:
    groups: dict[str, Any] = {name: row.get(name) for name in GROUP_COLUMNS}
    return ToolStats(**groups | row)
