"""Chat messages in the format of OpenAI's chat API, and their conversion to turns and back.

A message has a role, a text or a list of parts, and possibly tool calls, or the result of a tool. Everything that is
not plain text is kept unchanged in `payload`, so that `message_of` returns the message that `read_message` took.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.models.turns import ROLES

BEYOND_TEXT = ("tool_calls", "tool_call_id", "function_call", "refusal", "annotations", "audio")
"""Fields of a chat message besides role, name and content. They are kept unchanged, and left out if they are null."""

MAX_MESSAGE_PARTS = 1_000
EMPTY = "(empty)"
"""The text of an empty result of a tool, or of an empty answer of a model, since a turn must have a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A chat message. People read and searches find its `text`; `payload` has the rest, or is None if there is none."""

    role: str
    text: str
    name: str = ""
    payload: dict[str, Any] | None = None


class MalformedMessage(ValueError):  # noqa: N818 - says what happened
    """A message that cannot be read. `field` names the field at fault; the reason quotes nothing of the message."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


def read_message(message: Mapping[str, Any]) -> ChatMessage:
    """Read a chat message: `role`, `name`, `content` and the fields BEYOND_TEXT. Other keys are ignored.

    The caller checks the types of role and name. Raises MalformedMessage.
    """
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise MalformedMessage("role", f"must be one of {', '.join(ROLES)}")
    beyond = {field: message[field] for field in BEYOND_TEXT if message.get(field) is not None}
    parts = (*texts_of(content), *format_calls(beyond), format_refusal(beyond), format_audio(beyond))
    text = "\n".join(part for part in parts if part.strip())
    if not text and may_be_empty(role, content, beyond):
        text = EMPTY
    if not text:
        raise MalformedMessage("content", "must say something: a text, parts, or tool calls next to it")
    payload = beyond if text == content else {"content": content} | beyond
    return ChatMessage(role=role, text=text, name=message.get("name") or "", payload=payload or None)


def message_of(*, role: str, name: str, text: str, payload: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the chat message that `read_message` took: role, name, content, then the other fields unchanged."""
    kept = dict(payload or {})
    message = {"role": role} | ({"name": name} if name else {}) | {"content": kept.pop("content", text)}
    return message | {field: kept[field] for field in BEYOND_TEXT if field in kept}


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content: the text itself, or the text of each part, or a part's type if it has no text."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list) or len(content) > MAX_MESSAGE_PARTS:
        raise MalformedMessage("content", f"must be a text, null or a list of at most {MAX_MESSAGE_PARTS} parts")
    return [text_of_part(part) for part in content]


def text_of_part(part: Any) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise MalformedMessage("content", "every part must be an object with a type")
    for field in ("text", "refusal"):
        if isinstance(part.get(field), str):
            return str(part[field])
    return f"[{part['type'][:50]}]"


def format_calls(beyond: Mapping[str, Any]) -> list[str]:
    """Format each tool call as `name(arguments)`."""
    calls = beyond.get("tool_calls", [])
    if not isinstance(calls, list) or len(calls) > MAX_MESSAGE_PARTS:
        raise MalformedMessage("tool_calls", f"must be a list of at most {MAX_MESSAGE_PARTS} calls")
    formatted = [format_call(function_of(call)) for call in calls]
    if "function_call" in beyond:
        formatted.append(format_call(beyond["function_call"], field="function_call"))
    return formatted


def function_of(call: Any) -> Any:
    """Return the function that a tool call names, which is under the key of the call's type."""
    kind = call.get("type", "function") if isinstance(call, dict) else None
    return call.get(kind) if isinstance(kind, str) else None


def format_call(function: Any, *, field: str = "tool_calls") -> str:
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise MalformedMessage(field, "every call must name its function")
    arguments = function.get("arguments", function.get("input", ""))
    arguments_text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{function['name']}({arguments_text})"


def format_refusal(beyond: Mapping[str, Any]) -> str:
    refusal = beyond.get("refusal", "")
    if not isinstance(refusal, str):
        raise MalformedMessage("refusal", "must be a text")
    return refusal


def format_audio(beyond: Mapping[str, Any]) -> str:
    """Return the transcript of audio, if the model wrote one."""
    audio = beyond.get("audio")
    transcript = audio.get("transcript") if isinstance(audio, dict) else None
    return transcript if isinstance(transcript, str) else ""


def may_be_empty(role: str, content: Any, beyond: Mapping[str, Any]) -> bool:
    """Return True if the message may have no text: a result of a tool, or an answer cut off or in audio alone."""
    if role == "function":
        return True
    return role in ("tool", "assistant") and (content is not None or "audio" in beyond)


def tools_named(payloads: Sequence[Mapping[str, Any] | None]) -> list[str]:
    """Return the names of the tools that these messages call, each once, in the order of their first calls."""
    names: dict[str, None] = {}
    for payload in payloads:
        beyond = payload or {}
        functions = [function_of(call) for call in beyond.get("tool_calls", [])]
        functions += [beyond["function_call"]] if "function_call" in beyond else []
        names |= dict.fromkeys(function["name"] for function in functions)
    return list(names)
