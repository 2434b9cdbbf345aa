"""The request of the playground as an agent would send it: with curl, and with the Python client. No key is in it."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from memory.admin.fields import escape_invisible
from memory.admin.playground_form import PlanSettings
from memory.owner import GLOBAL_CHANNEL

NEW_CONVERSATION = "new-conversation"
"""The name of a conversation in an example, where the form names none."""


def request_body(asked: Mapping[str, Any], plan: PlanSettings) -> dict[str, Any]:
    """Return the body of `POST /context` for the cleaned form and one of its plans."""
    body: dict[str, Any] = {
        "agent_id": asked["agent"],
        "user_id": asked["user"],
        "channel": "" if asked["channel"] == GLOBAL_CHANNEL else asked["channel"],
        "conversation_id": asked["conversation"] or NEW_CONVERSATION,
        "query": asked["query"],
        "max_tokens": asked["max_tokens"],
        "top_k": asked["top_k"],
        "as_of": asked["as_of"].isoformat() if asked["as_of"] else "",
        "posture": plan.posture.value,
        "mode": plan.mode.value if plan.mode else "",
        "techniques": list(plan.techniques),
        "suppress_injected": asked["ledger"] != "show",
        "explain": True,
    }
    return {name: value for name, value in body.items() if value not in ("", [])}


def format_curl(url: str, body: Mapping[str, Any]) -> str:
    """Return the request as a command for a shell."""
    sent = escape_invisible(json.dumps(body, ensure_ascii=False, indent=2))
    lines = [
        f"curl -sS {shlex.quote(url)}",
        '-H "Authorization: Bearer $AGENT_MEMORY_API_KEY"',
        '-H "Content-Type: application/json"',
        f"-d {shlex.quote(sent)}",
    ]
    return " \\\n  ".join(lines)


def format_python(base_url: str, body: Mapping[str, Any]) -> str:
    """Return the request as code for the Python client, which reads the key from the environment."""
    binding = {"base_url": base_url, **{name: body[name] for name in ("agent_id", "user_id") if name in body}}
    own = ("conversation_id", "query", *binding)
    options = {name: value for name, value in body.items() if name not in own}
    return "\n".join(
        [
            "from agent_memory_client import Client",
            "",
            "# the key is read from AGENT_MEMORY_API_KEY",
            f"memory = Client({format_arguments(binding)})",
            "answer = memory.context(",
            f"    {body['conversation_id']!r},",
            f"    {body['query']!r},",
            *(f"    {name}={value!r}," for name, value in options.items()),
            ")",
            "print(answer.context)",
        ]
    )


def format_arguments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
