"""Export of conversations as JSON Lines, which `import_conversations` reads back byte for byte.

**The canonical form.** A line is a conversation, oldest first: in the order in which they were stored. It is what
`json.dumps(…, ensure_ascii=False)` makes of

    {"id", "agent", "user", "channel", "title", "continues", "metadata", "outcome", "ended_at",
     "messages": [{"role", "name", "content", "tool_calls", "tool_call_id", "function_call", "refusal",
                   "annotations", "audio", "timestamp", "model", "client_id", "metadata",
                   "agent", "user", "channel"}, …]}

in UTF-8, with the names in this order, `": "` and `", "` between them, and a line feed at the end. Defaults are left
out: no user, the channel `_global`, empty texts and metadata, null, and a message's agent, user and channel if they
equal its conversation's. `content` is always present, null next to tool calls.

- Message fields are as they were sent: order of names in parts and calls, content as a text or as parts.
- A message's `timestamp` is the text that came with an import, and left out if none did; else (and `ended_at`
  always) it is `canonical_time`: `2026-03-02T08:30:00Z`, with six digits of a second's fraction if there is one.
- `metadata` is as PostgreSQL's jsonb orders it: shorter names first, then by bytes; numbers are written out.

An import of canonical lines into an empty account and an export of that account give the same bytes again.

Not exported: agents that took part without writing, episodes, working memory, and conversations without turns.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, cast
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from memory.errors import NotFound
from memory.extraction.imported import MAX_CONVERSATION_BYTES, canonical_time
from memory.extraction.messages import message_of
from memory.models import Conversation, Kind, Turn
from memory.models.statements import execute_statement
from memory.owner import GLOBAL_CHANNEL, Owner

CONVERSATION_BATCH = 200
TURN_BATCH = 200

Write = Callable[[bytes], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSelection:
    """The conversations of an account to export. `since`: those with a turn at that time or later."""

    conversation_ids: Sequence[str] = ()
    user_id: str | None = None
    channel: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportCounts:
    """Counts of what was written. `oversized` conversations are longer than an import accepts (64 MiB)."""

    conversations: int = 0
    turns: int = 0
    size_bytes: int = 0
    oversized: int = 0

    def __add__(self, other: "ExportCounts") -> "ExportCounts":
        fields = zip(self.__slots__, astuple(self), astuple(other), strict=True)
        return ExportCounts(**{name: one + another for name, one, another in fields})


def select_conversations(account_id: UUID, selection: ExportSelection) -> QuerySet[Conversation]:
    """Return the selected conversations that have turns. Raises NotFound if a named one is missing."""
    rows = Conversation.objects.visible_to(Owner(account_id=account_id)).filter(turn_count__gt=0)
    if selection.conversation_ids:
        rows = rows.filter(conversation_id__in=selection.conversation_ids)
        if rows.count() < len(set(selection.conversation_ids)):
            raise NotFound("some of the conversations do not exist or have no turns")
    if selection.user_id is not None:
        rows = rows.filter(user_id=selection.user_id)
    if selection.channel is not None:
        rows = rows.filter(channel=selection.channel)
    if selection.since is not None:
        rows = rows.filter(last_turn_at__gte=selection.since)
    return rows


def export_conversations(account_id: UUID, selection: ExportSelection, *, write: Write) -> Iterator[ExportCounts]:
    """Write conversations as JSON Lines, oldest first, and yield counts after each. Raises NotFound.

    All are read from one snapshot, message by message: memory holds a few hundred messages however long a line is.
    """
    with repeatable_read():
        for page in iterate_pages(select_conversations(account_id, selection)):
            with closing(iterate_turns(account_id, page)) as rows:
                for log_id, turns in groupby(rows, key=lambda turn: turn.log_id):
                    yield write_conversation(page[log_id], turns, write=write)


@contextmanager
def repeatable_read() -> Iterator[None]:
    """Read everything inside from one snapshot; within a caller's transaction, with that transaction's isolation."""
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            execute_statement("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def iterate_pages(conversations: QuerySet[Conversation]) -> Iterator[dict[UUID, Conversation]]:
    """Yield pages of conversations by primary key, oldest first."""
    page = list(conversations.order_by("id")[:CONVERSATION_BATCH])
    while page:
        yield {row.id: row for row in page}
        page = list(conversations.filter(id__gt=page[-1].id).order_by("id")[:CONVERSATION_BATCH])


def iterate_turns(account_id: UUID, conversations: Iterable[UUID]) -> Generator[Turn, None, None]:
    """Yield the turns of conversations, in the order of both, through a server-side cursor."""
    rows = Turn.objects.visible_to(Owner(account_id=account_id), Kind.TURN)
    turns = rows.filter(log__in=list(conversations)).order_by("log_id", "index")
    with closing(cast("Generator[Turn, None, None]", turns.iterator(TURN_BATCH))) as stored:
        yield from stored


def write_conversation(conversation: Conversation, turns: Iterable[Turn], *, write: Write) -> ExportCounts:
    """Write one line, piece by piece."""
    count = size_bytes = 0

    def write_text(text: str) -> None:
        nonlocal size_bytes
        encoded = text.encode()
        size_bytes += len(encoded)
        write(encoded)

    write_text(encode_json(serialize_head(conversation)).removesuffix("}") + ', "messages": [')
    for count, turn in enumerate(turns, start=1):
        write_text((", " if count > 1 else "") + encode_json(serialize_message(turn, conversation)))
    write_text("]}\n")
    return ExportCounts(
        conversations=1, turns=count, size_bytes=size_bytes, oversized=int(size_bytes > MAX_CONVERSATION_BYTES)
    )


def encode_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def serialize_head(conversation: Conversation) -> dict[str, Any]:
    """Return everything but the messages."""
    ended_at = conversation.ended_at
    optional = {
        "user": conversation.user_id,
        "channel": conversation.channel if conversation.channel != GLOBAL_CHANNEL else "",
        "title": conversation.title,
        "continues": conversation.continues,
        "metadata": conversation.metadata,
        "outcome": conversation.outcome,
        "ended_at": canonical_time(ended_at) if ended_at else "",
    }
    return {"id": conversation.conversation_id, "agent": conversation.agent_id} | without_empty(optional)


def serialize_message(turn: Turn, conversation: Conversation) -> dict[str, Any]:
    payload = turn.payload or {}
    optional = {
        "timestamp": payload["timestamp"] if "timestamp" in payload else canonical_time(turn.event_time),
        "model": turn.model,
        "client_id": turn.client_id,
        "metadata": turn.metadata,
    }
    message = message_of(role=turn.role, name=turn.name, text=turn.text, payload=turn.payload)
    # an empty agent is exported as well: it stands for no agent in particular
    own = {"agent": "agent_id", "user": "user_id", "channel": "channel"}
    others = {
        name: getattr(turn, column)
        for name, column in own.items()
        if getattr(turn, column) != getattr(conversation, column)
    }
    return message | without_empty(optional) | others


def without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
