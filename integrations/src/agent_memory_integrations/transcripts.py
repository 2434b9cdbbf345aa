"""Transcripts of Claude Code: what the user and the agent said, without what the program wrote in their names."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from agent_memory_integrations.coding_agents import MAX_CHARACTERS, MAX_ID_CHARACTERS, digest, keep_storable

MAX_TURNS = 500
MAX_STORED_CHARACTERS = 400_000
"""Characters of the messages that one hook stores, the last ones."""
ROLES = ("user", "assistant")
NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
"""Marks of lines that nobody said: notes of the program, talk with subagents, summaries, errors."""
COMMAND_MARKS = ("<command-", "<local-command-", "<bash-", "<task-notification>", "[Request interrupted by user")


def read_last_turns(path: str) -> list[dict[str, Any]]:
    """Return the last messages of a transcript."""
    turns: list[dict[str, Any]] = []
    if not path or not Path(path).is_file():
        return turns
    room = MAX_STORED_CHARACTERS
    for turn in reversed(list(read_turns(Path(path)))[-MAX_TURNS:]):
        room -= len(turn["content"])
        if room < 0:
            break
        turns.insert(0, turn)
    return turns


def read_turns(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the messages of a transcript: a JSON object per line, with the message at the top or in `message`."""
    seen: Counter[str] = Counter()
    # other line separators may be a part of what was said
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if not isinstance(entry, dict) or any(entry.get(mark) is True for mark in NOT_SAID):
            continue
        message = entry.get("message", entry)
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            continue
        text = keep_storable(read_text(message.get("content"))).strip()
        if text and not text.startswith(COMMAND_MARKS):
            turn = {"role": message["role"], "content": text[:MAX_CHARACTERS]}
            # without an id, by its text: the lines of a transcript that is written anew are others
            name = digest(turn)
            seen[name] += 1
            client_id = str(entry.get("uuid") or f"{name}-{seen[name]}")[:MAX_ID_CHARACTERS]
            yield {**turn, **read_time(entry), "client_id": client_id}


def read_text(content: Any) -> str:
    """Return the text of a message: a text, or a list of parts of which some are texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def read_time(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the time of a message as a member of its turn, if the line has one with a zone."""
    try:
        said_at = datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        return {}
    return {"timestamp": said_at.isoformat()} if said_at.tzinfo else {}
