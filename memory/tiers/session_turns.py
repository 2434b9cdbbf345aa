"""Turns as a session stores them, and the limits of a buffer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from memory import conf
from memory.models import Conversation, Turn
from memory.tiers.base import from_json, to_json
from memory_project.redis import SessionRef

WITHHELD = "(withheld)"
"""The content of a quarantined turn in a session. Its number stays, so that no turn seems to be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """A turn in a buffer. `content` as it was sent: a text, parts, or None with tool calls."""

    id: UUID
    index: int
    role: str
    name: str
    agent_id: str
    content: Any
    text: str
    payload: dict[str, Any] | None
    timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferEntry:
    """A turn in a buffer: its number, its id, and its JSON, whose UTF-8 bytes are limited."""

    index: int
    turn_id: str
    json: str

    @property
    def size_bytes(self) -> int:
        return len(self.json.encode("utf-8"))


def session_ref(conversation: Conversation) -> SessionRef:
    return SessionRef(
        account_id=conversation.account_id,
        user_id=conversation.user_id,
        channel=conversation.channel,
        conversation_id=conversation.conversation_id,
    )


def session_turn(turn: Turn) -> SessionTurn:
    """Return the row as a session shows it: of a quarantined turn only its number, role and agent."""
    is_withheld = turn.quarantined
    return SessionTurn(
        id=turn.id,
        index=turn.index,
        role=turn.role,
        name="" if is_withheld else turn.name,
        agent_id=turn.agent_id,
        content=WITHHELD if is_withheld else turn.content,
        text=WITHHELD if is_withheld else turn.text,
        payload=None if is_withheld else turn.payload,
        timestamp=turn.event_time,
    )


def buffer_entry(turn: SessionTurn) -> BufferEntry:
    """Return the turn as JSON, with its content only if text and payload do not contain it."""
    kept: dict[str, Any] = {
        "role": turn.role,
        "name": turn.name,
        "agent_id": turn.agent_id,
        "text": turn.text,
        "payload": turn.payload,
        "timestamp": turn.timestamp.isoformat(),
    }
    if turn.content is not (turn.payload or {}).get("content", turn.text):
        kept["content"] = turn.content
    return BufferEntry(index=turn.index, turn_id=str(turn.id), json=to_json(kept))


def turn_from_entry(entry: BufferEntry) -> SessionTurn:
    """Return the turn of an entry; the inverse of `buffer_entry`."""
    kept = from_json(entry.json)
    payload = kept["payload"]
    return SessionTurn(
        id=UUID(entry.turn_id),
        index=entry.index,
        role=kept["role"],
        name=kept["name"],
        agent_id=kept["agent_id"],
        content=kept["content"] if "content" in kept else (payload or {}).get("content", kept["text"]),
        text=kept["text"],
        payload=payload,
        timestamp=datetime.fromisoformat(kept["timestamp"]),
    )


def fitting_entries(turns: Sequence[SessionTurn]) -> list[BufferEntry]:
    """Return the latest of `turns` (ordered by index) that fit into a buffer. Few others are serialized."""
    return limit_entries(buffer_entry(turn) for turn in reversed(turns))


def limit_entries(latest_first: Iterable[BufferEntry]) -> list[BufferEntry]:
    """Return the first entries within BUFFER_MESSAGES and BUFFER_BYTES, oldest first; always at least one."""
    kept: list[BufferEntry] = []
    size_bytes = 0
    for entry in islice(latest_first, conf.BUFFER_MESSAGES):
        size_bytes += entry.size_bytes
        if kept and size_bytes > conf.BUFFER_BYTES:
            break
        kept.append(entry)
    return kept[::-1]


def latest_contiguous(entries: Iterable[BufferEntry], *, first: int) -> list[BufferEntry]:
    """Return the latest consecutive entries, from number `first` on; turns still on their way leave gaps."""
    latest: list[BufferEntry] = []
    for entry in sorted(entries, key=lambda entry: entry.index, reverse=True):
        if entry.index < first or (latest and entry.index != latest[-1].index - 1):
            break
        latest.append(entry)
    return latest[::-1]
