"""What coding agents send to their hooks, and what they read from them.

Claude Code writes what was said to a transcript, which its hooks name. The others send each prompt and each answer to
their hooks, and call the format of their transcripts unstable, so those are not read.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_CHARACTERS = 20_000
MAX_ID_CHARACTERS = 100
DEFAULT_CONVERSATION = "coding"
UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")
CLAUDE_EVENTS = {"session-start": "SessionStart", "prompt": "UserPromptSubmit", "stop": "Stop"}
GEMINI_EVENTS = {"session-start": "SessionStart", "prompt": "BeforeAgent", "stop": "AfterAgent"}
CURSOR_EVENTS = {"session-start": "sessionStart", "prompt": "beforeSubmitPrompt", "stop": "afterAgentResponse"}
Json = Mapping[str, Any]
Turn = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """A call of a hook, the same for every agent.

    `said` are the messages that the agent sent to the hook, with ids by which they are stored once. `transcript_path`
    is the file of the whole conversation, of agents whose transcripts are read.
    """

    conversation_id: str
    prompt: str = ""
    said: list[Turn] = field(default_factory=list)
    transcript_path: str = ""


class ClaudeCode:
    """Claude Code, and agents whose hooks send the same fields."""

    events = CLAUDE_EVENTS
    reads_context_at = frozenset({"session-start", "prompt"})

    def read(self, event: str, given: Json) -> HookCall:
        """Return what the agent sent."""
        return HookCall(
            conversation_id=read_id(given, "session_id"),
            prompt=read_text(given, "prompt"),
            transcript_path=str(given.get("transcript_path") or ""),
        )

    def answer(self, event: str, text: str) -> Json | None:
        """Return the JSON that the agent reads from the hook, None for no output at all."""
        if not text:
            return None
        return {"hookSpecificOutput": {"hookEventName": self.events[event], "additionalContext": text}}


class CodexCli(ClaudeCode):
    """Codex CLI: `turn_id` names the turn, `last_assistant_message` is its answer."""

    def read(self, event: str, given: Json) -> HookCall:
        """Return what the agent sent."""
        turn = str(given.get("turn_id") or "")
        prompt, answer = read_text(given, "prompt"), read_text(given, "last_assistant_message")
        said = make_turns(turn, user=prompt if event == "prompt" else "", assistant=answer if event == "stop" else "")
        return HookCall(conversation_id=read_id(given, "session_id"), prompt=prompt, said=said)


class GeminiCli(ClaudeCode):
    """Gemini CLI: `AfterAgent` brings the prompt and the answer; a retried answer brings its prompt once more."""

    events = GEMINI_EVENTS

    def read(self, event: str, given: Json) -> HookCall:
        """Return what the agent sent."""
        prompt, said = read_text(given, "prompt"), []
        if event == "stop":
            user = "" if given.get("stop_hook_active") else prompt
            said = make_turns(str(given.get("timestamp")), user=user, assistant=read_text(given, "prompt_response"))
        return HookCall(conversation_id=read_id(given, "session_id"), prompt=prompt, said=said)

    def answer(self, event: str, text: str) -> Json | None:
        """Return the JSON that the agent reads from the hook. Gemini CLI wants an object in any case."""
        return super().answer(event, text) or {}


class Cursor(ClaudeCode):
    """Cursor: `generation_id` names the turn. Text for the model is read at the start of a session only."""

    events = CURSOR_EVENTS
    reads_context_at = frozenset({"session-start"})

    def read(self, event: str, given: Json) -> HookCall:
        """Return what the agent sent."""
        turn = str(given.get("generation_id") or "")
        prompt, answer = read_text(given, "prompt"), read_text(given, "text")
        said = make_turns(turn, user=prompt if event == "prompt" else "", assistant=answer if event == "stop" else "")
        return HookCall(conversation_id=read_id(given, "conversation_id", "session_id"), prompt=prompt, said=said)

    def answer(self, event: str, text: str) -> Json | None:
        """Return the JSON that the agent reads from the hook."""
        if event == "prompt":
            return {"continue": True}
        return {"additional_context": text} if text else {}


def identify_agent(given: Json) -> ClaudeCode:
    """Return the agent that sends these fields to its hook."""
    name = str(given.get("hook_event_name") or "")
    if name[:1].islower() or "cursor_version" in given:
        return Cursor()
    if name in ("BeforeAgent", "AfterAgent") or (name == "SessionStart" and "timestamp" in given):
        return GeminiCli()
    return CodexCli() if "turn_id" in given else ClaudeCode()


def read_id(given: Json, *names: str) -> str:
    """Return the id of the conversation, which is the first of these fields that is there."""
    found = next((str(given[name]) for name in names if given.get(name)), DEFAULT_CONVERSATION)
    return found[:MAX_ID_CHARACTERS]


def read_text(given: Json, name: str) -> str:
    """Return a text of the hook's input, without blanks around it, cut to the length that is stored."""
    return keep_storable(str(given.get(name) or "")).strip()[:MAX_CHARACTERS]


def keep_storable(text: str) -> str:
    """Return a text without what the service refuses: NUL characters and halves of surrogate pairs."""
    return UNSTORABLE.sub("", text)


def make_turns(turn_id: str, *, user: str, assistant: str) -> list[Turn]:
    """Return the turns of these texts. `turn_id` tells the same words of one turn from those of another."""
    said = [(role, text) for role, text in (("user", user), ("assistant", assistant)) if text]
    return [{"role": role, "content": text, "client_id": digest([turn_id, role, text])} for role, text in said]


def digest(value: Any) -> str:
    """Return a digest of a JSON value."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
