"""Turns as a session holds them, and how much of them a buffer may hold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from memory import conf
from memory.models import Conversation, Turn
from memory.tiers.base import from_json, to_json
from memory_project.redis import SessionPlace

WITHHELD = "(withheld)"
"""All that a quarantined turn says in a session; its number stays, so that no turn is missed."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A turn in a buffer: its number, its id, and all of it as JSON, whose UTF-8 bytes count."""

    index: int
    turn_id: str
    json: str

    @property
    def size_bytes(self) -> int:
        return len(self.json.encode("utf-8"))


def place_of(conversation: Conversation) -> SessionPlace:
    return SessionPlace(
        account_id=conversation.account_id,
        user_id=conversation.user_id,
        channel=conversation.channel,
        conversation_id=conversation.conversation_id,
    )


def session_turn(turn: Turn) -> SessionTurn:
    """The row as a session has it: of a quarantined one its place, role and agent, and nothing that was sent."""
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


def entry_of(turn: SessionTurn) -> Entry:
    """The turn as JSON; its content only where text and payload do not hold it already."""
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
    return Entry(index=turn.index, turn_id=str(turn.id), json=to_json(kept))


def turn_of(entry: Entry) -> SessionTurn:
    """The inverse of `entry_of`."""
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


def fitting_entries(turns: Sequence[SessionTurn]) -> list[Entry]:
    """The latest of `turns` that a buffer may hold at once; `turns` in order of index. Few others are serialized."""
    return bounded(entry_of(turn) for turn in reversed(turns))


def bounded(latest_first: Iterable[Entry]) -> list[Entry]:
    """The first of them within BUFFER_MESSAGES and BUFFER_BYTES, oldest first; the latest one whatever its size."""
    kept: list[Entry] = []
    size_bytes = 0
    for entry in islice(latest_first, conf.BUFFER_MESSAGES):
        size_bytes += entry.size_bytes
        if kept and size_bytes > conf.BUFFER_BYTES:
            break
        kept.append(entry)
    return kept[::-1]


def latest_stretch(entries: Iterable[Entry], *, first: int) -> list[Entry]:
    """The entries from number `first` on that follow each other up to the last one, which turns on their way leave."""
    stretch: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: entry.index, reverse=True):
        if entry.index < first or (stretch and entry.index != stretch[-1].index - 1):
            break
        stretch.append(entry)
    return stretch[::-1]
