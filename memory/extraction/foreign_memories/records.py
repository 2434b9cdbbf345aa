"""The record that every reader yields, and what the shapes of all services have in common."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memory.extraction.imported import MAX_ID_CHARACTERS, refuse_unstorable
from memory.kinds import Kind

MAX_METADATA_BYTES = 65_536
MESSAGES = "Messages are imported by import_conversations."

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMemory:
    """A memory of another service, with times in UTC. `source_id` is its id there.

    `kind` is note or fact, or context_entry for an item of a store, which has a `namespace`, a `key` and a `value`.
    Without an agent or a user, those that the import names are meant. Reads extend an item with `ttl_minutes`.
    """

    source_id: str
    text: str
    kind: str = Kind.NOTE
    agent_id: str = ""
    user_id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    event_time: datetime | None = None
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    namespace: tuple[str, ...] = ()
    key: str = ""
    value: dict[str, Any] = field(default_factory=dict)
    ttl_minutes: float | None = None


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record that is not imported, and why. Equal reasons are counted together."""

    reason: str


Record = ForeignMemory | SkippedRecord
Records = Iterable[SkippedRecord | Callable[[], ForeignMemory]]


def check_record(made: ForeignMemory) -> Record:
    """Return the record, or why no row can hold it."""
    if not made.text.strip() and made.kind != Kind.CONTEXT_ENTRY:
        return SkippedRecord("It has no text.")
    if max(len(made.agent_id), len(made.user_id)) > MAX_ID_CHARACTERS:
        return SkippedRecord(f"The name of its agent or user has more than {MAX_ID_CHARACTERS} characters.")
    if len(json.dumps(made.metadata).encode()) > MAX_METADATA_BYTES:
        return SkippedRecord(f"Its metadata has more than {MAX_METADATA_BYTES} bytes.")
    try:
        refuse_unstorable([made.text, made.metadata, made.value, made.agent_id, made.user_id, *made.namespace])
    except ValueError as err:
        return SkippedRecord(f"It {err}.")
    return made


def list_of(document: Any, *names: str) -> list[Any]:
    """Return a list, or the first of these members that a document has. Raises ValueError if there is none."""
    if isinstance(document, list):
        return document
    for name in names:
        if isinstance(document, Mapping) and isinstance(document.get(name), list):
            found: list[Any] = document[name]
            return found
    raise ValueError(f"The file must be a list, or an object with one of: {', '.join(names)}.")


def leave_out(document: Json, names: Iterable[str], reason: str) -> Iterator[SkippedRecord]:
    for name in names:
        yield from (SkippedRecord(reason) for _ in document.get(name) or ())


def keep_members(record: Json, names: Iterable[str]) -> dict[str, Any]:
    """Return those of these members that say something."""
    return {name: record[name] for name in names if record.get(name)}


def parse_any_time(value: Any) -> datetime | None:
    """Parse an ISO 8601 time or date. One without a zone is in UTC. Raises ValueError."""
    if not value:
        return None
    # databases of Java write `2026-01-31T10:00Z[UTC]`
    parsed = datetime.fromisoformat(str(value).partition("[")[0])
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
