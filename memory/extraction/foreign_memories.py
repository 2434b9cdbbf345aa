"""Memories out of the exports of other memory services: `read_export` yields them one by one.

To add a service, write a function that takes a parsed document and yields records, and name it in `READERS`. What a
file says is checked by the services that store it; here only its shape is. Nothing in a file stops the reading.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from memory.extraction.imported import MAX_ID_CHARACTERS, refuse_unstorable
from memory.kinds import Kind

MAX_METADATA_BYTES = 65_536

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMemory:
    """A memory of another service, with times in UTC. `source_id` is its id there.

    `kind` is note or fact, or context_entry for an item of a store, which has a `namespace`, a `key` and a `value`.
    Without an agent or a user, those that the import names are meant.
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


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record that is not imported, and why. Equal reasons are counted together."""

    reason: str


Record = ForeignMemory | SkippedRecord


def read_export(source: str, document: Any) -> Iterator[Record]:
    """Yield the records of an export. `source` is a key of READERS, `document` the parsed JSON.

    Raises ValueError for a document in which records cannot be found.
    """
    for record in READERS[source](document):
        try:
            yield record if isinstance(record, SkippedRecord) else check_record(record())
        except (AttributeError, KeyError, TypeError, ValueError):
            yield SkippedRecord("It does not have the documented shape.")


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


Records = Iterable[SkippedRecord | Callable[[], ForeignMemory]]


def read_mem0(document: Any) -> Records:
    """Read what mem0's `get_all` returns, or the points of its vector store."""
    for each in list_of(document, "results", "memories"):
        yield partial(make_mem0_note, each)


MEM0_KEPT = ("categories", "run_id", "actor_id", "role", "app_id", "attributed_to")
MEM0_MEMBERS = frozenset(
    {"id", "data", "memory", "text", "text_lemmatized", "hash", "user_id", "agent_id", "created_at", "updated_at"}
    | {"expiration_date", "metadata", *MEM0_KEPT}
)


def make_mem0_note(each: Json) -> ForeignMemory:
    body = each.get("payload") or each
    # a point of the vector store has the metadata between its own members
    own = {name: value for name, value in body.items() if name not in MEM0_MEMBERS} if "payload" in each else {}
    metadata = own | dict(body.get("metadata") or {})
    kept = {name: body[name] for name in MEM0_KEPT if body.get(name)}
    expires = body.get("expiration_date")
    return ForeignMemory(
        source_id=str(each["id"]),
        text=str(body.get("memory") or body.get("data") or body.get("text") or ""),
        agent_id=str(body.get("agent_id") or ""),
        user_id=str(body.get("user_id") or ""),
        metadata=metadata | ({"mem0": kept} if kept else {}),
        event_time=parse_any_time(body.get("created_at")),
        expires_at=parse_any_time(expires),
    )


def read_langgraph(document: Any) -> Records:
    """Read the items of a LangGraph store (`Item.dict()`), or the rows of the table `store` of its PostgresStore."""
    for each in list_of(document, "items"):
        yield partial(make_langgraph_item, each)


def make_langgraph_item(each: Json) -> ForeignMemory:
    # the table has the namespace as one text
    labels = each["namespace"] if "namespace" in each else str(each["prefix"]).split(".")
    if not isinstance(each["value"], dict) or not isinstance(labels, list):
        raise TypeError("an item has labels and an object")
    return ForeignMemory(
        source_id=".".join([*labels, str(each["key"])]),
        text="",
        kind=Kind.CONTEXT_ENTRY,
        namespace=tuple(str(label) for label in labels),
        key=str(each["key"]),
        value=each["value"],
        expires_at=parse_any_time(each.get("expires_at")),
    )


def read_zep(document: Any) -> Records:
    """Read the edges and nodes of a user's graph: facts with their validity, and the summaries of entities."""
    user_id = str(document.get("user_id") or "") if isinstance(document, Mapping) else ""
    for edge in list_of(document, "edges", "facts"):
        yield partial(make_zep_fact, edge, user_id)
    if isinstance(document, Mapping):
        for node in document.get("nodes") or ():
            yield partial(make_zep_note, node, user_id)
        yield from leave_out(document, ("episodes", "messages"), "Messages are imported by import_conversations.")


def make_zep_fact(edge: Json, user_id: str) -> ForeignMemory:
    return ForeignMemory(
        source_id=zep_id(edge),
        text=str(edge.get("fact") or ""),
        kind=Kind.FACT,
        user_id=user_id,
        metadata={"zep": {"name": edge["name"]}} if edge.get("name") else {},
        event_time=parse_any_time(edge.get("created_at")),
        valid_from=parse_any_time(edge.get("valid_at")),
        valid_to=parse_any_time(edge.get("invalid_at") or edge.get("expired_at")),
    )


def make_zep_note(node: Json, user_id: str) -> ForeignMemory:
    summary = str(node.get("summary") or "")
    return ForeignMemory(
        source_id=zep_id(node),
        text=f"{node.get('name') or 'Entity'}: {summary}" if summary.strip() else "",
        user_id=user_id,
        metadata={"zep": {"labels": node["labels"]}} if node.get("labels") else {},
        event_time=parse_any_time(node.get("created_at")),
    )


def zep_id(row: Json) -> str:
    """Return the id of an edge or node. Zep's Python client writes it as `uuid_`."""
    return str(row["uuid"] if "uuid" in row else row["uuid_"])


def read_letta(document: Any) -> Records:
    """Read an agent file (.af) of either format, or a list of archival passages."""
    is_file = isinstance(document, Mapping) and ("agents" in document or "core_memory" in document)
    if not is_file:
        for passage in list_of(document, "passages", "archival_memory", "results"):
            yield partial(make_letta_passage, passage)
        return
    agents = document.get("agents") or [document]
    for block in [*(document.get("blocks") or ()), *(document.get("core_memory") or ())]:
        yield partial(make_letta_block, block, agents)
    for agent in agents:
        yield from leave_out(agent, ("messages",), "Messages are imported by import_conversations.")
    yield from leave_out(document, ("tools", "files"), "Tools and files are no memories.")


def make_letta_passage(passage: Json) -> ForeignMemory:
    kept = {name: passage[name] for name in ("tags", "file_name") if passage.get(name)}
    return ForeignMemory(
        source_id=str(passage["id"]),
        text=str(passage.get("text") or passage.get("content") or ""),
        agent_id=str(passage.get("agent_id") or ""),
        metadata=dict(passage.get("metadata") or {}) | ({"letta": kept} if kept else {}),
        event_time=parse_any_time(passage.get("created_at") or passage.get("timestamp")),
    )


def make_letta_block(block: Json, agents: list[Json]) -> ForeignMemory:
    label, value = str(block.get("label") or "block"), str(block.get("value") or "")
    users = [agent for agent in agents if block.get("id") in (agent.get("block_ids") or ())] or agents
    name = str(users[0].get("name") or "")
    return ForeignMemory(
        source_id=str(block.get("id") or f"{name}/{label}"),
        text=f"{label}: {value}" if value.strip() else "",
        agent_id=name,
        metadata={"letta": {"label": label}},
    )


def read_hindsight(document: Any) -> Records:
    """Read the memory units of a bank, as its list or a recall returns them. The list has invalidated ones as well."""
    bank_id = str(document.get("bank_id") or "") if isinstance(document, Mapping) else ""
    for unit in list_of(document, "items", "results", "memories"):
        if isinstance(unit, Mapping) and unit.get("state", "valid") == "invalidated":
            yield SkippedRecord("It was invalidated there.")
            continue
        yield partial(make_hindsight_note, unit, bank_id)


def make_hindsight_note(unit: Json, bank_id: str) -> ForeignMemory:
    kept = {name: unit[name] for name in ("context", "tags", "entities", "document_id") if unit.get(name)}
    kind = unit.get("type") or unit.get("fact_type")
    return ForeignMemory(
        source_id=str(unit["id"]),
        text=str(unit.get("text") or ""),
        agent_id=str(unit.get("bank_id") or bank_id),
        metadata=dict(unit.get("metadata") or {}) | {"hindsight": kept | ({"type": kind} if kind else {})},
        event_time=parse_any_time(unit.get("occurred_start") or unit.get("mentioned_at") or unit.get("date")),
    )


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


def parse_any_time(value: Any) -> datetime | None:
    """Parse an ISO 8601 time or date. One without a zone is in UTC. Raises ValueError."""
    if not value:
        return None
    parsed = datetime.fromisoformat(str(value))
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)


READERS: Mapping[str, Callable[[Any], Records]] = {
    "hindsight": read_hindsight,
    "langgraph": read_langgraph,
    "letta": read_letta,
    "mem0": read_mem0,
    "zep": read_zep,
}
