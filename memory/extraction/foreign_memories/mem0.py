"""mem0: what `get_all` of its packages and of its platform returns, or points of its vector store."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from memory.extraction.foreign_memories.records import (
    ForeignMemory,
    Json,
    Records,
    SkippedRecord,
    keep_members,
    leave_out,
    list_of,
    parse_any_time,
)

KEPT = ("categories", "run_id", "actor_id", "role", "app_id", "attributed_to")
MEMBERS = frozenset(
    {"id", "data", "memory", "text", "text_lemmatized", "hash", "user_id", "agent_id", "created_at", "updated_at"}
    | {"expiration_date", "metadata", *KEPT}
)
CAMEL_CASE = {
    "agentId": "agent_id",
    "attributedTo": "attributed_to",
    "createdAt": "created_at",
    "expirationDate": "expiration_date",
    "runId": "run_id",
    "textLemmatized": "text_lemmatized",
    "updatedAt": "updated_at",
    "userId": "user_id",
}
"""Members as the TypeScript package writes them."""


def read_mem0(document: Any) -> Records:
    # a page of Qdrant's points lies in a `result`
    inner = document.get("result") if isinstance(document, Mapping) else None
    document = inner if isinstance(inner, Mapping) else document
    for each in list_of(document, "results", "memories", "points"):
        if isinstance(each, Mapping) and "memory_id" in each and "event" in each:
            yield SkippedRecord("It is a line of a history, not a memory.")
        elif isinstance(each, Mapping) and "linked_memory_ids" in (each.get("payload") or ()):
            yield SkippedRecord("It is an entity, not a memory.")
        else:
            yield partial(make_mem0_note, each)
    if isinstance(document, Mapping):
        yield from leave_out(document, ("relations",), "Relations of a graph have no text.")


def make_mem0_note(each: Json) -> ForeignMemory:
    body = {CAMEL_CASE.get(name, name): value for name, value in (each.get("payload") or each).items()}
    # a point of the vector store has the metadata between its own members
    own = {name: value for name, value in body.items() if name not in MEMBERS} if "payload" in each else {}
    metadata = own | dict(body.get("metadata") or {})
    # the TypeScript package leaves it among the metadata
    expires = body.get("expiration_date") or metadata.pop("expiration_date", None)
    kept = keep_members(body, KEPT)
    return ForeignMemory(
        source_id=str(each["id"]),
        text=str(body.get("memory") or body.get("data") or body.get("text") or ""),
        agent_id=str(body.get("agent_id") or ""),
        user_id=str(body.get("user_id") or ""),
        metadata=metadata | ({"mem0": kept} if kept else {}),
        event_time=parse_any_time(body.get("created_at")),
        expires_at=parse_expiration_date(expires),
    )


def parse_expiration_date(value: Any) -> datetime | None:
    """Return the moment after which a memory is gone. A date is the last day on which it is there."""
    expires = parse_any_time(value)
    return expires + timedelta(days=1) if expires and len(str(value)) == len("2026-01-31") else expires
