"""Messages of frameworks as turns of a conversation: searched, summarized, learnt from, and given back as they were.

The whole message is kept next to its text, as JSON text, so that not even the order of its members changes.
"""

import json
from typing import Any

from agent_memory_client import AsyncClient, NotFoundError
from agent_memory_client.models import MemoryAnswer, TurnAnswer

MAX_METADATA_BYTES = 16_000
"""A longer message is a part of the content, which may have 1 MB."""
MAX_TEXT_CHARACTERS = 100_000
MAX_TURNS = 1_000
MAX_QUERY_CHARACTERS = 10_000
"""Characters of a question that the service takes."""
NO_TEXT = "(no text)"
ERASED = "[erased]"
"""Content of a turn that was erased and keeps its number."""
ROLES = frozenset({"user", "assistant", "system", "developer"})


def make_turn(role: str, text: str, *, member: str, whole: Any) -> dict[str, Any]:
    """Return the turn of a message. `member` names whose message it is, `whole` is the message.

    Roles that turns do not have, such as those of tools, become `assistant`.
    """
    message = json.dumps(whole, separators=(",", ":"))
    shown = text[:MAX_TEXT_CHARACTERS].strip() or NO_TEXT
    turn: dict[str, Any] = {"role": role if role in ROLES else "assistant", "content": shown}
    if len(message) <= MAX_METADATA_BYTES:
        return turn | {"metadata": {member: message}}
    return turn | {"content": [{"type": "text", "text": shown}, {"type": member, "text": "", "whole": message}]}


def read_whole(turn: TurnAnswer, member: str) -> Any:
    """Return the message that `make_turn` took, or None for a turn of another program."""
    message = (turn.metadata or {}).get(member)
    for part in turn.content if isinstance(turn.content, list) else ():
        if part.get("type") == member:
            message = part.get("whole")
    if not isinstance(message, str):
        return None
    try:
        return json.loads(message)
    except ValueError:
        return None


def read_text(turn: TurnAnswer) -> str:
    """Return the text of a turn."""
    if isinstance(turn.content, list):
        return "\n".join(part["text"] for part in turn.content if part.get("text"))
    return str(turn.content or "")


def cut_query(text: str) -> str:
    """Return a text as a question that the service takes: of a longer one, the beginning and the end."""
    text, half = text.strip(), MAX_QUERY_CHARACTERS // 2
    return text if len(text) <= MAX_QUERY_CHARACTERS else f"{text[: half - 1]}\n{text[-half:]}"


def is_erased(turn: TurnAnswer) -> bool:
    """Return True for a turn whose content was erased. Only its number is left."""
    return turn.content == ERASED and not turn.metadata


def is_erased_memory(memory: MemoryAnswer) -> bool:
    """Return True for a turn whose content was erased, in a list of memories."""
    return memory.kind == "turn" and memory.text == ERASED and not memory.metadata


async def add_turns(client: AsyncClient, conversation_id: str, turns: list[dict[str, Any]], **options: Any) -> None:
    """Append turns, in as many requests as they need."""
    for start in range(0, len(turns), MAX_TURNS):
        await client.add_turns(conversation_id, turns[start : start + MAX_TURNS], **options)


async def forget_any(client: AsyncClient, memory: MemoryAnswer) -> None:
    """Forget a memory; what a turn says, with what was learned from it alone. Raises NotFoundError if it is gone."""
    if memory.kind == "turn":
        await client.delete_conversation_turn(memory.conversation_id, memory.id)
    else:
        await client.forget(memory.id, user_id=memory.user_id or None)


async def read_last_turns(client: AsyncClient, conversation_id: str, limit: int | None = None) -> list[TurnAnswer]:
    """Return the last turns of a conversation in order, without erased ones. None: all of them."""
    try:
        count = (await client.get_conversation(conversation_id)).turn_count
    except NotFoundError:
        return []
    wanted = count if limit is None else limit
    while True:
        first = max(0, count - wanted)
        after: dict[str, Any] = {"after_index": first - 1} if first else {}
        listed = client.list_turns(conversation_id, page_size=200, **after)
        found = [turn async for turn in listed if not is_erased(turn)]
        if not first or (limit is not None and len(found) >= limit):
            return found if limit is None else found[max(0, len(found) - limit) :]
        # erased turns keep their numbers
        wanted *= 2
