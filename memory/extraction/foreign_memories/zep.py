"""Zep and Graphiti: edges and nodes of a graph, as their APIs return them or as Neo4j exports a graph of Graphiti."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any

from memory.extraction.foreign_memories.records import (
    MESSAGES,
    ForeignMemory,
    Json,
    Records,
    SkippedRecord,
    keep_members,
    leave_out,
    list_of,
    parse_any_time,
)
from memory.kinds import Kind

DEFAULT_GROUPS = frozenset({"", "_", "\\_", "default_db"})
"""Groups of Graphiti that are nobody's in particular."""
SUMMARIES = ("nodes", "communities", "observations", "thread_summaries")
EPISODE = "Episodic"


def read_zep(document: Any) -> Records:
    """Read facts with their validity, and the summaries of entities, communities and threads."""
    if not isinstance(document, Mapping):
        yield from read_graph(list_of(document))
        return
    user_id = str(document.get("user_id") or "")
    summaries = list(chain.from_iterable(document.get(name) or () for name in SUMMARIES))
    for edge in document.get("edges") or document.get("facts") or (() if summaries else list_of(document, "edges")):
        yield partial(make_zep_fact, edge, user_id)
    for node in summaries:
        yield partial(make_zep_note, node, user_id)
    yield from leave_out(document, ("episodes", "messages"), MESSAGES)


def read_graph(rows: Iterable[Any]) -> Records:
    """Read a list of edges and nodes. Neo4j's export has what matters in `properties`."""
    for row in rows:
        if not isinstance(row, Mapping):
            yield SkippedRecord("It does not have the documented shape.")
            continue
        is_exported = isinstance(row.get("properties"), Mapping)
        body = {**row["properties"], "labels": row.get("labels")} if is_exported else row
        if is_exported and EPISODE in (row.get("labels") or ()):
            yield SkippedRecord(MESSAGES)
        elif "fact" in body or (not is_exported and "summary" not in body):
            yield partial(make_zep_fact, body, "")
        elif is_exported and row.get("type") == "relationship":
            yield SkippedRecord("Links without a fact have no text.")
        else:
            yield partial(make_zep_note, body, "")


def make_zep_fact(edge: Json, user_id: str) -> ForeignMemory:
    return ForeignMemory(
        source_id=zep_id(edge),
        text=str(edge.get("fact") or ""),
        kind=Kind.FACT,
        user_id=user_id or group_user(edge),
        metadata=zep_metadata(edge, ("name", "attributes")),
        event_time=parse_any_time(edge.get("created_at")),
        valid_from=parse_any_time(edge.get("valid_at")),
        valid_to=parse_any_time(edge.get("invalid_at") or edge.get("expired_at")),
    )


def make_zep_note(node: Json, user_id: str) -> ForeignMemory:
    summary = str(node.get("summary") or "")
    return ForeignMemory(
        source_id=zep_id(node),
        text=f"{node.get('name') or 'Entity'}: {summary}" if summary.strip() else "",
        user_id=user_id or group_user(node),
        metadata=zep_metadata(node, ("labels", "attributes")),
        event_time=parse_any_time(node.get("created_at")),
    )


def zep_metadata(row: Json, names: Iterable[str]) -> dict[str, Any]:
    kept = keep_members(row, names)
    return {"zep": kept} if kept else {}


def zep_id(row: Json) -> str:
    """Return the id of an edge or node. Zep's Python client writes it as `uuid_`."""
    return str(row["uuid"] if "uuid" in row else row["uuid_"])


def group_user(row: Json) -> str:
    """Return the user whose part of a graph of Graphiti a row is in: it keeps users apart by groups."""
    group = str(row.get("group_id") or "")
    return "" if group in DEFAULT_GROUPS else group
