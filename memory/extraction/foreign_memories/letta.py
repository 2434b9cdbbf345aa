"""Letta: an agent file (.af) of either format, or lists of memory blocks or archival passages."""

from collections.abc import Mapping
from functools import partial
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


def read_letta(document: Any) -> Records:
    is_file = isinstance(document, Mapping) and ("agents" in document or "core_memory" in document)
    if not is_file:
        for each in list_of(document, "passages", "archival_memory", "results", "blocks"):
            is_block = isinstance(each, Mapping) and "label" in each and "value" in each
            yield partial(make_letta_block, each, "") if is_block else partial(make_letta_passage, each)
        return
    agents = [agent for agent in document.get("agents") or [document] if isinstance(agent, Mapping)]
    for block in [*(document.get("blocks") or ()), *(document.get("core_memory") or ())]:
        if not isinstance(block, Mapping):
            yield SkippedRecord("It does not have the documented shape.")
            continue
        for name in agents_of(block, agents):
            yield partial(make_letta_block, block, name)
    for agent in agents:
        yield from leave_out(agent, ("messages",), MESSAGES)
    yield from leave_out(document, ("tools", "files"), "Tools and files are no memories.")


def agents_of(block: Json, agents: list[Json]) -> list[str]:
    """Return the names of the agents that a block belongs to. In the older format there is one."""
    owners = [agent for agent in agents if block.get("id") in (agent.get("block_ids") or ())] or agents[:1]
    return list(dict.fromkeys(str(agent.get("name") or "") for agent in owners))


def make_letta_passage(passage: Json) -> ForeignMemory:
    kept = keep_members(passage, ("tags", "file_name"))
    return ForeignMemory(
        source_id=str(passage["id"]),
        text=str(passage.get("text") or passage.get("content") or ""),
        agent_id=str(passage.get("agent_id") or ""),
        metadata=dict(passage.get("metadata") or {}) | ({"letta": kept} if kept else {}),
        event_time=parse_any_time(passage.get("created_at") or passage.get("timestamp")),
    )


def make_letta_block(block: Json, name: str) -> ForeignMemory:
    """Make a note of a block of an agent. Ids in agent files are numbered anew in each, so its contents are its id."""
    label, value = str(block.get("label") or "block"), str(block.get("value") or "")
    return ForeignMemory(
        source_id="\n".join((name, label, value)),
        text=f"{label}: {value}" if value.strip() else "",
        agent_id=name,
        metadata={"letta": {"label": label}},
    )
