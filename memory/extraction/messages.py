"""Chat messages as clients and exports have them, and the turn that each becomes.

A message is what OpenAI's chat API takes and answers: a role, a text or a list of parts, tool calls, a tool's result.
What plain text cannot say stays in `payload` as it came, so that `message_of` gives back what `read_message` took.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.models.turns import ROLES

BEYOND_TEXT = ("tool_calls", "tool_call_id", "function_call", "refusal", "annotations", "audio")
"""Fields of a chat message besides role, name and content; kept as they come, left out where they are null."""

MOST_PARTS = 1_000
EMPTY = "(empty)"
"""The text of a tool's result, or of a model's answer, that says nothing: the log needs something to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """`text` is what people read and searches find; `payload` what it does not say, None where it says everything."""

    role: str
    text: str
    name: str = ""
    payload: dict[str, Any] | None = None


class MalformedMessage(ValueError):  # noqa: N818 - says what happened
    """`field` is the one to mend; the message is a sentence without any of the text."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


def read_message(message: Mapping[str, Any]) -> ChatMessage:
    """Read a chat message (`role`, `name`, `content` and BEYOND_TEXT; other keys are not looked at).

    Raises MalformedMessage. Types of role and name are the caller's to check.
    """
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        raise MalformedMessage("role", f"must be one of {', '.join(ROLES)}")
    beyond = {field: message[field] for field in BEYOND_TEXT if message.get(field) is not None}
    told = (*texts_of(content), *format_calls(beyond), format_refusal(beyond), format_audio(beyond))
    text = "\n".join(part for part in told if part.strip())
    if not text and may_be_empty(role, content, beyond):
        text = EMPTY
    if not text:
        raise MalformedMessage("content", "must say something: a text, parts, or tool calls beside it")
    payload = beyond if text == content else {"content": content} | beyond
    return ChatMessage(role=role, text=text, name=message.get("name") or "", payload=payload or None)


def message_of(*, role: str, name: str, text: str, payload: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the chat message that `read_message` took: role, name, content, then the rest as it came."""
    kept = dict(payload or {})
    message = {"role": role} | ({"name": name} if name else {}) | {"content": kept.pop("content", text)}
    return message | {field: kept[field] for field in BEYOND_TEXT if field in kept}


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content: itself, or its parts' texts; a part that is no text is named by its type."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list) or len(content) > MOST_PARTS:
        raise MalformedMessage("content", f"must be a text, null or a list of at most {MOST_PARTS} parts")
    return [text_of_part(part) for part in content]


def text_of_part(part: Any) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise MalformedMessage("content", "every part must be an object with a type")
    for field in ("text", "refusal"):
        if isinstance(part.get(field), str):
            return str(part[field])
    return f"[{part['type'][:50]}]"


def format_calls(beyond: Mapping[str, Any]) -> list[str]:
    """Each tool call as `name(arguments)`."""
    calls = beyond.get("tool_calls", [])
    if not isinstance(calls, list) or len(calls) > MOST_PARTS:
        raise MalformedMessage("tool_calls", f"must be a list of at most {MOST_PARTS} calls")
    told = [format_call(function_of(call)) for call in calls]
    if "function_call" in beyond:
        told.append(format_call(beyond["function_call"], field="function_call"))
    return told


def function_of(call: Any) -> Any:
    """Return what a tool call calls, which lies under the name of its type."""
    kind = call.get("type", "function") if isinstance(call, dict) else None
    return call.get(kind) if isinstance(kind, str) else None


def format_call(function: Any, *, field: str = "tool_calls") -> str:
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise MalformedMessage(field, "every call must name its function")
    arguments = function.get("arguments", function.get("input", ""))
    told = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{function['name']}({told})"


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
    """OpenAI has tools that answer nothing, and models whose answer was cut off, or is sound alone."""
    if role == "function":
        return True
    return role in ("tool", "assistant") and (content is not None or "audio" in beyond)


def tools_named(payloads: Sequence[Mapping[str, Any] | None]) -> list[str]:
    """Return the tools that these messages call, each once, in order."""
    names: dict[str, None] = {}
    for payload in payloads:
        beyond = payload or {}
        functions = [function_of(call) for call in beyond.get("tool_calls", [])]
        functions += [beyond["function_call"]] if "function_call" in beyond else []
        names |= dict.fromkeys(function["name"] for function in functions)
    return list(names)
