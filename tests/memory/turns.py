"""Turns for tests, stored through the service, with vectors at known distances."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memory.extraction.messages import read_message
from memory.models import Turn
from memory.owner import Owner
from memory.services.memories.store import ClientVector
from memory.services.turns import StoredTurns, TurnDraft, store_turns
from tests.memory.episodes import MODEL, NOTHING, NOW, direction


def turn(content: Any, *, role: str = "user", angle: float | None = None, **fields: Any) -> TurnDraft:
    """Return a draft; `fields` are its own."""
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    return TurnDraft(message=read_message({"role": role, "content": content}), own=own, **fields)


def say(owner: Owner, *drafts: TurnDraft, conversation_id: str = "c1", now: datetime = NOW) -> StoredTurns:
    return store_turns(owner, conversation_id, drafts=drafts, embedded=NOTHING, now=now)


def talk(owner: Owner, count: int, *, conversation_id: str = "c1", start: int = 0, now: datetime = NOW) -> StoredTurns:
    """Store so many messages, of user and assistant in turn, each with its number in it."""
    roles = ("user", "assistant")
    drafts = [turn(f"message {number}", role=roles[number % 2]) for number in range(start, start + count)]
    return say(owner, *drafts, conversation_id=conversation_id, now=now)


def numbered_texts(turns: Sequence[Turn]) -> list[tuple[int, str]]:
    return [(each.index, each.text) for each in turns]
