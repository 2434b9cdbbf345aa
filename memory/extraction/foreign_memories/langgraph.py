"""LangGraph: items of a store (`Item.dict()`), or rows of the table `store` of its PostgresStore and SqliteStore."""

import json
from functools import partial
from typing import Any

from memory.extraction.foreign_memories.records import ForeignMemory, Json, Records, list_of, parse_any_time
from memory.kinds import Kind

MAX_TTL_MINUTES = 100 * 365 * 24 * 60


def read_langgraph(document: Any) -> Records:
    for each in list_of(document, "items"):
        yield partial(make_langgraph_item, each)


def make_langgraph_item(each: Json) -> ForeignMemory:
    # the table has the namespace as one text, and SQLite's has the value as JSON in a text
    labels = each["namespace"] if "namespace" in each else str(each["prefix"]).split(".")
    value = json.loads(each["value"]) if isinstance(each["value"], str) else each["value"]
    if not isinstance(value, dict) or not isinstance(labels, list):
        raise TypeError("an item has labels and an object")
    minutes = float(each.get("ttl_minutes") or 0)
    if not 0 <= minutes <= MAX_TTL_MINUTES:
        raise ValueError("a time to live is a number of minutes, of a century at most")
    return ForeignMemory(
        source_id=".".join([*labels, str(each["key"])]),
        text="",
        kind=Kind.CONTEXT_ENTRY,
        namespace=tuple(str(label) for label in labels),
        key=str(each["key"]),
        value=value,
        expires_at=parse_any_time(each.get("expires_at")),
        ttl_minutes=minutes or None,
    )
