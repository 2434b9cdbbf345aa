"""Requests of mem0's clients: whom they name, what they ask for, and memories under mem0's names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from agent_memory_client import AsyncClient
from agent_memory_client.models import MemoryAnswer, SearchedMemory
from starlette.requests import Request

from agent_memory_integrations.updates import UPDATED

DEFAULT_AGENT = "mem0"
"""Agent of requests that name none, by keys that are bound to none."""
MAX_LISTED = 1_000
"""Memories that a list looks at."""
MAX_TOP_K = 100
MAX_BODY_BYTES = 4 * 1024 * 1024
DEFAULT_TOP_K = 10
ENTITY_IDS = ("user_id", "agent_id", "run_id")
Answer = dict[str, Any]


class Mem0RequestError(Exception):
    """A request that is refused, with the reason as a sentence."""

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Scope:
    """The entities that a request names, as the service's fields, and the members that metadata must have."""

    user_id: str
    agent_id: str
    conversation_id: str
    metadata: Mapping[str, Any]

    @property
    def owner(self) -> Answer:
        return {"agent_id": self.agent_id, "user_id": self.user_id or None}

    @property
    def conversation(self) -> Answer:
        return {"conversation_id": self.conversation_id} if self.conversation_id else {}

    def admits(self, memory: MemoryAnswer | SearchedMemory) -> bool:
        """Return True for a memory of the user, if one is named, with the members of metadata."""
        is_of_user = not self.user_id or memory.user_id == self.user_id
        return is_of_user and all(memory.metadata.get(name) == value for name, value in self.metadata.items())


def read_scope(client: AsyncClient, body: Mapping[str, Any]) -> Scope:
    """Return the scope of a body: ids at the top or in `filters`. Raises Mem0RequestError for other conditions."""
    if body.get("app_id"):
        raise Mem0RequestError("app_id has no meaning here. Name a user_id, an agent_id or a run_id.")
    top = {name: body[name] for name in ENTITY_IDS if body.get(name)}
    ids: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    for name, value in [*top.items(), *read_conditions(body.get("filters") or {})]:
        if name == "metadata":
            metadata |= value
        elif not isinstance(value, str) or ids.setdefault(name, value) != value:
            raise Mem0RequestError(f"{name} must be one text.")
    return Scope(
        user_id=ids.get("user_id", ""),
        agent_id=ids.get("agent_id", "") or client.settings.agent_id or DEFAULT_AGENT,
        conversation_id=ids.get("run_id", ""),
        metadata=metadata,
    )


def read_conditions(filters: Any) -> list[tuple[str, Any]]:
    """Return the conditions of filters, all of which must hold. Raises Mem0RequestError for what is not understood."""
    if not isinstance(filters, dict):
        raise Mem0RequestError("Filters must be a JSON object.")
    found = []
    for name, value in filters.items():
        if name == "AND" and isinstance(value, list):
            found += [pair for each in value for pair in read_conditions(each)]
        elif name in ENTITY_IDS:
            found += [(name, value)] if value != "*" else []
        elif (
            name == "metadata"
            and isinstance(value, dict)
            and not any(isinstance(each, dict) for each in value.values())
        ):
            found.append((name, value))
        else:
            raise Mem0RequestError(
                f"The filter {name[:100]} is not understood. Allowed: {', '.join(ENTITY_IDS)} with a text or *, "
                "metadata with values to be equal to, and AND with a list of these."
            )
    return found


def read_threshold(body: Answer) -> float:
    """Return the least score of a result, 0 for none. Raises Mem0RequestError."""
    threshold = body.get("threshold") or 0.0
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise Mem0RequestError("threshold must be a number from 0 to 1.")
    return float(threshold)


def read_top_k(body: Mapping[str, Any]) -> int:
    """Return the number of results that are wanted. Raises Mem0RequestError."""
    top_k = body.get("top_k")
    if top_k is None:
        return DEFAULT_TOP_K
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MAX_LISTED:
        raise Mem0RequestError(f"top_k must be a number from 1 to {MAX_LISTED}.")
    return top_k


def read_note(message: Mapping[str, Any]) -> str:
    """Return the text of a message that becomes a note. Raises Mem0RequestError."""
    content = message["content"]
    if isinstance(content, list):
        content = "\n".join(each["text"] for each in content if isinstance(each, dict) and each.get("text"))
    if not isinstance(content, str) or not content.strip():
        raise Mem0RequestError("With infer=False, the content of each message must be a text, not only blanks.")
    return content


def describe(memory: Mapping[str, Any]) -> Answer:
    """Return a memory under mem0's names."""
    shown = {name: memory.get(name) for name in ("id", "user_id", "agent_id", "created_at", "updated_at")}
    shown |= {"expiration_date": last_day(str(memory["expires_at"]))} if memory.get("expires_at") else {}
    metadata = {name: value for name, value in (memory.get("metadata") or {}).items() if name != UPDATED}
    named = {"memory": memory["text"], "run_id": memory["conversation_id"] or None, "categories": []}
    return {**shown, "metadata": metadata, **named}


def end_of_day(value: Any) -> str:
    """Return the end of a day, which is the last one of a memory with this `expiration_date`."""
    try:
        following = date.fromisoformat(str(value)) + timedelta(days=1)
    except (ValueError, OverflowError) as err:
        raise Mem0RequestError("expiration_date must be a date, YYYY-MM-DD.") from err
    return f"{following}T00:00:00Z"


def last_day(expires_at: str) -> str:
    """Return the last day on which a memory that ends then is there for some time."""
    return (datetime.fromisoformat(expires_at) - timedelta(microseconds=1)).date().isoformat()


def read_objects(body: Mapping[str, Any], name: str) -> list[Answer]:
    """Return a member of the body that must be a list of objects."""
    found = body.get(name)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Mem0RequestError(f"{name} must be a list of JSON objects.")
    return found


def read_number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= MAX_LISTED):
        raise Mem0RequestError(f"{name} must be a number from 1 to {MAX_LISTED}.")
    return int(text)


async def read_body(request: Request) -> Answer:
    """Return the JSON object of a request, empty if there is none."""
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > MAX_BODY_BYTES:
            raise Mem0RequestError(f"A body has at most {MAX_BODY_BYTES} bytes.", status=413)
    body = json.loads(bytes(read) or b"{}")
    if not isinstance(body, dict):
        raise Mem0RequestError("Send a JSON object.")
    return body
