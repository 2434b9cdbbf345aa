"""Conversations into JSON Lines, as `import_conversations` reads them: what goes out comes in again byte for byte.

**The canonical form.** A line is a conversation, oldest first: in the order in which they were stored. It is what
`json.dumps(…, ensure_ascii=False)` makes of

    {"id", "agent", "user", "channel", "title", "continues", "metadata", "outcome", "ended_at",
     "messages": [{"role", "name", "content", "tool_calls", "tool_call_id", "function_call", "refusal",
                   "annotations", "audio", "timestamp", "model", "client_id", "metadata",
                   "agent", "user", "channel"}, …]}

in UTF-8, names in this order and `": "` and `", "` between them, and a line feed at the end. What has its default is
left out: no user, the channel `_global`, empty texts and metadata, null, and a message's agent, user and channel
where they are its conversation's. `content` is always there, null beside tool calls.

- Message fields are as they were sent: order of names in parts and calls, content as a text or as parts.
- A message's `timestamp` is the text that came with an import, and left out where none did; else (and `ended_at`
  always) it is `canonical_time`: `2026-03-02T08:30:00Z`, with six digits of a second's fraction where there is one.
- `metadata` is as PostgreSQL's jsonb orders it: shorter names first, then by bytes; numbers are written out.

An import of canonical lines into an empty account and an export of that account give the same bytes again.

Not told: what agents took part without a word, episodes and working memory, and
conversations in which nothing was said yet.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
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
from memory.owner import GLOBAL_CHANNEL, Owner

CONVERSATIONS_AT_ONCE = 200
TURNS_AT_ONCE = 200

Write = Callable[[bytes], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which conversations of an account; `since`: those in which something was said then or later."""

    conversation_ids: Sequence[str] = ()
    user_id: str | None = None
    channel: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written; `oversized` conversations are longer than an import takes (64 MiB)."""

    conversations: int = 0
    turns: int = 0
    size_bytes: int = 0
    oversized: int = 0

    def __add__(self, other: "Exported") -> "Exported":
        return Exported(
            conversations=self.conversations + other.conversations,
            turns=self.turns + other.turns,
            size_bytes=self.size_bytes + other.size_bytes,
            oversized=self.oversized + other.oversized,
        )


def selected_conversations(account_id: UUID, selection: Selection) -> QuerySet[Conversation]:
    """Those in which something was said. Raises NotFound when one that is named is not there."""
    rows = Conversation.objects.visible_to(Owner(account_id=account_id)).filter(turn_count__gt=0)
    if selection.conversation_ids:
        rows = rows.filter(conversation_id__in=selection.conversation_ids)
        if rows.count() < len(set(selection.conversation_ids)):
            raise NotFound("not every conversation that was named is there, and has turns")
    if selection.user_id is not None:
        rows = rows.filter(user_id=selection.user_id)
    if selection.channel is not None:
        rows = rows.filter(channel=selection.channel)
    if selection.since is not None:
        rows = rows.filter(last_turn_at__gte=selection.since)
    return rows


def export_conversations(account_id: UUID, selection: Selection, *, write: Write) -> Iterator[Exported]:
    """Write conversations as JSON Lines, oldest first; yields figures after each. Raises NotFound.

    All as they are at one moment, message by message: memory holds a few hundred of them, however long one's line is.
    """
    with snapshot():
        for page in pages_of(selected_conversations(account_id, selection)):
            with closing(turns_of(account_id, page)) as rows:
                for log_id, turns in groupby(rows, key=lambda turn: turn.log_id):
                    yield write_conversation(page[log_id], turns, write=write)


@contextmanager
def snapshot() -> Iterator[None]:
    """One moment for everything that is read inside; in a caller's transaction, as much as that gives."""
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def pages_of(conversations: QuerySet[Conversation]) -> Iterator[dict[UUID, Conversation]]:
    """By id, some at a time, oldest first."""
    page = list(conversations.order_by("id")[:CONVERSATIONS_AT_ONCE])
    while page:
        yield {row.id: row for row in page}
        page = list(conversations.filter(id__gt=page[-1].id).order_by("id")[:CONVERSATIONS_AT_ONCE])


def turns_of(account_id: UUID, conversations: Iterable[UUID]) -> Generator[Turn, None, None]:
    """The turns of some conversations, in their order and each one's, by a cursor of the server's."""
    rows: Any = Turn.objects.visible_to(Owner(account_id=account_id), Kind.TURN)
    turns = cast("QuerySet[Turn]", rows).filter(log__in=list(conversations)).order_by("log_id", "index")
    with closing(cast("Generator[Turn, None, None]", turns.iterator(TURNS_AT_ONCE))) as told:
        yield from told


def write_conversation(conversation: Conversation, turns: Iterable[Turn], *, write: Write) -> Exported:
    """One line, in pieces."""
    count = size_bytes = 0

    def tell(text: str) -> None:
        nonlocal size_bytes
        piece = text.encode()
        size_bytes += len(piece)
        write(piece)

    tell(json_of(head_of(conversation)).removesuffix("}") + ', "messages": [')
    for count, turn in enumerate(turns, start=1):
        tell((", " if count > 1 else "") + json_of(told_turn(turn, conversation)))
    tell("]}\n")
    return Exported(
        conversations=1, turns=count, size_bytes=size_bytes, oversized=int(size_bytes > MAX_CONVERSATION_BYTES)
    )


def json_of(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def head_of(conversation: Conversation) -> dict[str, Any]:
    """Everything but the messages."""
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


def told_turn(turn: Turn, conversation: Conversation) -> dict[str, Any]:
    optional = {
        "timestamp": told_time(turn),
        "model": turn.model,
        "client_id": turn.client_id,
        "metadata": turn.metadata,
    }
    message = message_of(role=turn.role, name=turn.name, text=turn.text, payload=turn.payload)
    # an empty agent is one too: nobody in particular
    own = {"agent": "agent_id", "user": "user_id", "channel": "channel"}
    others = {
        name: getattr(turn, column)
        for name, column in own.items()
        if getattr(turn, column) != getattr(conversation, column)
    }
    return message | without_empty(optional) | others


def told_time(turn: Turn) -> str | None:
    payload = turn.payload or {}
    return payload["timestamp"] if "timestamp" in payload else canonical_time(turn.event_time)


def without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
