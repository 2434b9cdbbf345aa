"""Hooks for coding agents: `agent-memory hook session-start|prompt|stop` reads the agent's JSON on stdin.

- `session-start` answers what a successor must know to go on, as text for the model.
- `prompt` answers what bears on the prompt and is not in the conversation yet.
- `stop` stores what was said since the last time, from the transcript that the agent keeps.

A hook never stops the agent: failures go to stderr, and the command succeeds.
"""

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_memory_client import AgentMemoryError, Client

DEFAULT_AGENT = "coding-agent"
MAX_TOKENS = 1_500
MAX_TURNS = 500
MAX_CHARACTERS = 20_000
MAX_STORED_CHARACTERS = 400_000
"""Characters of the messages that one hook stores, the last ones."""
ROLES = ("user", "assistant")
EVENTS = {"session-start": "SessionStart", "prompt": "UserPromptSubmit", "stop": "Stop"}


def run_hook(client: Client, event: str, given: Mapping[str, Any]) -> str:
    """Run a hook and return what it tells the model; nothing if it has nothing to tell."""
    conversation_id = str(given.get("session_id") or "coding")[:100]
    if event == "stop":
        store_transcript(client, conversation_id, str(given.get("transcript_path") or ""))
        return ""
    if event == "session-start":
        return str(client.resume(max_tokens=MAX_TOKENS).text)
    prompt = str(given.get("prompt") or "").strip()
    if not prompt:
        return ""
    options = {"max_tokens": MAX_TOKENS, "mark_injected": True, "suppress_injected": True}
    made = client.context(conversation_id, prompt[:MAX_CHARACTERS], **options)
    return "" if made.abstained or not made.items else str(made.context)


def store_transcript(client: Client, conversation_id: str, path: str) -> None:
    """Store the last messages of a transcript. Those that are stored already are known by their `client_id`."""
    if not path or not Path(path).is_file():
        return
    turns: list[dict[str, Any]] = []
    room = MAX_STORED_CHARACTERS
    for turn in reversed(list(read_turns(Path(path)))[-MAX_TURNS:]):
        room -= len(turn["content"])
        if room < 0:
            break
        turns.insert(0, turn)
    if turns:
        client.infer(turns, conversation_id=conversation_id)


def read_turns(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the messages of a transcript: a JSON object per line, with the message at the top or in `message`."""
    seen: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        message = entry.get("message", entry) if isinstance(entry, dict) else {}
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            continue
        text = read_text(message.get("content")).strip()
        if text:
            turn = {"role": message["role"], "content": text[:MAX_CHARACTERS]}
            # without an id, by its text: the lines of a transcript that is written anew are others
            digest = hashlib.sha256(json.dumps(turn).encode()).hexdigest()
            seen[digest] += 1
            yield {**turn, "client_id": str(entry.get("uuid") or f"{digest}-{seen[digest]}")[:100]}


def read_text(content: Any) -> str:
    """Return the text of a message: a text, or a list of parts of which some are texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="agent-memory", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    hook = commands.add_parser("hook", help="Run a hook of a coding agent.")
    hook.add_argument("event", choices=sorted(EVENTS))
    arguments = parser.parse_args()
    try:
        given = json.loads(sys.stdin.read() or "{}")
        if not isinstance(given, dict):
            raise ValueError("The hook reads a JSON object on stdin.")
        with Client(max_retries=0, timeout=10) as client:
            agent_id = client.settings.agent_id or client.get_key().agent_id or DEFAULT_AGENT
            with Client(agent_id=agent_id, max_retries=0, timeout=10) as named:
                text = run_hook(named, arguments.event, given)
    except (AgentMemoryError, OSError, ValueError) as err:
        sys.stderr.write(f"agent-memory: {err}\n")
        return
    if text:
        told = {"hookEventName": EVENTS[arguments.event], "additionalContext": text}
        sys.stdout.write(json.dumps({"hookSpecificOutput": told}, ensure_ascii=False))


if __name__ == "__main__":
    main()
