"""The buffer of a session's latest messages, in three makes behind one interface (SESSION_STORE_TYPE).

- `memory`: in this process, gone with it: for experiments in a single process;
- `redis`: in Redis, gone with it or after SESSION_TTL_HOURS;
- `hybrid`: in Redis, and read again from the log where Redis has lost it or lags behind: the default.

Whatever the store, every turn is a row of the log first; a buffer is only the quick way to the latest ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from memory.models import Conversation, Turn
from memory_project.redis import SessionPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """A turn as the buffer holds it. `content` as it was sent: a text, parts, or None beside tool calls."""

    id: UUID
    index: int
    role: str
    name: str
    agent_id: str
    content: Any
    text: str
    payload: dict[str, Any] | None
    timestamp: datetime


class SessionStore(Protocol):
    """Where buffers live. Turns are numbered without gaps; a buffer is always a stretch of them up to the latest.

    At most BUFFER_MESSAGES turns and BUFFER_BYTES (the latest stays whatever its size), from the conversation's
    `buffer_from` on. Appending what the buffer has already changes nothing.
    """

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        """Add turns, in order of index. Where turns before them are missing, the buffer begins anew."""

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        """The latest `limit` turns of the buffer, oldest first."""

    def trim(self, conversation: Conversation) -> None:
        """Forget the turns before `buffer_from`."""

    def clear(self, conversation: Conversation) -> None:
        """Forget the buffer."""


def place_of(conversation: Conversation) -> SessionPlace:
    return SessionPlace(
        account_id=conversation.account_id,
        user_id=conversation.user_id,
        channel=conversation.channel,
        conversation_id=conversation.conversation_id,
    )


def session_turn(turn: Turn) -> SessionTurn:
    return SessionTurn(
        id=turn.id,
        index=turn.index,
        role=turn.role,
        name=turn.name,
        agent_id=turn.agent_id,
        content=turn.content,
        text=turn.text,
        payload=turn.payload,
        timestamp=turn.event_time,
    )


def session_store() -> SessionStore:
    """The one that SESSION_STORE_TYPE names."""
    raise NotImplementedError
