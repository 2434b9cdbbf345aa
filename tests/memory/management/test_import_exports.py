"""`manage.py import_memories` with the other shapes in which those services give their memories away."""

import json
import math
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.management import CommandError, call_command

from memory.models import Account, ContextEntry, Fact, Kind, Memory

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path, account: Account) -> Path:
    return tmp_path


def import_document(folder: Path, source: str, document: Any) -> dict[str, Any]:
    file = folder / "export.json"
    file.write_text(json.dumps(document))
    return import_file(file, source)


def import_file(file: Path, source: str) -> dict[str, Any]:
    output = StringIO()
    call_command("import_memories", file, "--from", source, "--account", "workshop", "--json", stdout=output)
    figures: dict[str, Any] = json.loads(output.getvalue())
    return figures


def test_what_the_typescript_package_of_mem0_returns_is_read(folder: Path) -> None:
    row = {
        "id": "m1",
        "memory": "Prefers tea",
        "hash": "x",
        "createdAt": "2026-02-01T10:00:00.123Z",
        "updatedAt": "2026-02-02T10:00:00.123Z",
        "metadata": {"colour": "green", "expiration_date": "2999-01-31"},
        "user_id": "ana",
        "attributedTo": "user",
    }

    import_document(folder, "mem0", {"results": [row], "relations": [{"source": "ana", "relationship": "likes"}]})

    note = Memory.objects.get(kind=Kind.NOTE)
    assert (note.user_id, note.metadata) == ("ana", {"colour": "green", "mem0": {"attributed_to": "user"}})
    assert note.event_time == datetime(2026, 2, 1, 10, 0, 0, 123_000, tzinfo=UTC)
    assert note.expires_at == datetime(2999, 2, 1, tzinfo=UTC)


def test_points_of_mem0s_vector_store_are_read_without_its_entities_and_history(folder: Path) -> None:
    point = {"id": "p1", "payload": {"data": "Owns a boat", "user_id": "ana", "text_lemmatized": "own boat"}}
    entity = {"id": "p2", "payload": {"data": "Lisbon", "entity_type": "place", "linked_memory_ids": ["p1"]}}
    line = {"id": "h1", "memory_id": "p1", "old_memory": None, "new_memory": "Owns a boat", "event": "ADD"}

    page = {"result": {"points": [point, entity, line], "next_page_offset": None}, "status": "ok"}
    figures = import_document(folder, "mem0", page)

    assert figures["imported"] == {"note": 1}
    assert set(figures["left_out"]) == {
        "It is an entity, not a memory.",
        "It is a line of a history, not a memory.",
    }
    assert Memory.objects.get(kind=Kind.NOTE).metadata == {}


def test_a_memory_of_mem0_is_there_on_the_day_on_which_it_expires(folder: Path) -> None:
    today = datetime.now(UTC).date().isoformat()

    figures = import_document(folder, "mem0", [{"id": "m1", "memory": "Is in town", "expiration_date": today}])

    assert figures["imported"] == {"note": 1}


def test_rows_of_langgraphs_store_in_sqlite_are_read(folder: Path) -> None:
    row = {"prefix": "users.ana", "key": "seat", "value": '{"text": "window"}', "created_at": "2026-01-01 10:00:00"}

    import_document(folder, "langgraph", [row])

    entry = ContextEntry.objects.get()
    assert (entry.key, entry.value) == ("users.ana/seat", {"text": "window"})


def test_an_item_of_langgraph_lives_its_whole_time_again(folder: Path) -> None:
    item = {"prefix": "a", "key": "b", "value": {"text": "c"}, "expires_at": "2999-01-01T00:00:00+00:00"}

    import_document(folder, "langgraph", [{**item, "ttl_minutes": 90}])

    assert ContextEntry.objects.get().metadata["ttl_seconds"] == 5400


def test_the_export_of_a_graph_by_neo4j_is_read(folder: Path) -> None:
    person = {"uuid": "n1", "name": "Ana", "summary": "A traveller.", "group_id": "ana"}
    episode = {"uuid": "p1", "content": "Ana: hello", "group_id": "ana"}
    fact = {"uuid": "e1", "fact": "Ana lives in Lisbon", "name": "LIVES_IN", "group_id": "ana"}
    fact |= {"valid_at": "2024-03-01T00:00Z[UTC]", "created_at": "2025-01-01T00:00:00.123456789Z"}
    rows = [
        {"type": "node", "id": "0", "labels": ["Entity", "Person"], "properties": person},
        {"type": "node", "id": "1", "labels": ["Episodic"], "properties": episode},
        {"type": "relationship", "id": "2", "label": "RELATES_TO", "properties": fact},
        {"type": "relationship", "id": "3", "label": "MENTIONS", "properties": {"uuid": "m1", "group_id": "ana"}},
    ]
    file = folder / "export.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    figures = import_file(file, "zep")

    assert figures["imported"] == {"fact": 1, "note": 1}
    assert sum(figures["left_out"].values()) == 2
    known = Fact.objects.get()
    assert (known.user_id, known.valid_from) == ("ana", datetime(2024, 3, 1, tzinfo=UTC))
    assert Memory.objects.get(kind=Kind.NOTE).text == "Ana: A traveller."


def test_observations_and_summaries_of_threads_of_zep_are_notes(folder: Path) -> None:
    observation = {"uuid": "o1", "name": "Travel", "summary": "Ana travels in spring.", "created_at": "2026-01-01"}
    thread = {"uuid": "t1", "name": "Booking", "summary": "Ana booked a flight.", "created_at": "2026-01-02"}

    figures = import_document(folder, "zep", {"observations": [observation], "thread_summaries": [thread]})

    assert figures["imported"] == {"note": 2}


def test_blocks_of_two_agent_files_of_letta_are_apart_though_their_ids_are_equal(folder: Path) -> None:
    for name in ("companion", "coach"):
        agent = {"id": "agent-0", "name": name, "block_ids": ["block-0"], "messages": []}
        block = {"id": "block-0", "label": "human", "value": f"Ana talks to the {name}."}
        import_document(folder, "letta", {"agents": [agent], "blocks": [block], "tools": []})

    assert set(Memory.objects.values_list("agent_id", "text")) == {
        ("companion", "human: Ana talks to the companion."),
        ("coach", "human: Ana talks to the coach."),
    }


def test_a_block_that_agents_of_letta_share_belongs_to_each(folder: Path) -> None:
    agents = [{"id": f"agent-{name}", "name": name, "block_ids": ["block-0"]} for name in ("one", "two")]
    block = {"id": "block-0", "label": "team", "value": "Releases are on Friday."}

    import_document(folder, "letta", {"agents": agents, "blocks": [block]})

    assert set(Memory.objects.values_list("agent_id", flat=True)) == {"one", "two"}


def test_a_list_of_blocks_of_letta_is_read(folder: Path) -> None:
    figures = import_document(folder, "letta", [{"id": "block-7f", "label": "human", "value": "Ana", "limit": 5000}])

    assert figures["imported"] == {"note": 1}


def pack_archive(folder: Path) -> Path:
    """Write an archive as Hindsight exports a bank: two facts of a document, an observation and a mental model."""
    past = {"text": "Ana flew to Madeira", "fact_type": "world", "occurred_start": "2026-05-04T00:00:00Z"}
    plan = {"text": "Ana will fly to Oslo", "fact_type": "world", "occurred_start": "2999-01-01T00:00:00Z"}
    facts = [{**past, "mentioned_at": "2026-05-05T00:00:00Z"}, {**plan, "mentioned_at": "2026-05-06T00:00:00Z"}]
    model = {"id": "x", "bank_id": "travel", "name": "Ana's trips", "content": "She flies.", "source_query": "Trips?"}
    files: dict[str, Any] = {
        "manifest.json": {"schema_version": 1, "source_bank_id": "travel", "fact_count": 2},
        "documents/000000.json": {"id": "session-1", "chunks": [], "facts": facts},
        "observations.json": [{"text": "Ana flies often", "proof_count": 2, "sources": []}],
        "mental_models.json": [model],
        "banks.json": [{"bank_id": "travel"}],
    }
    path = folder / "bank.zip"
    with ZipFile(path, "w") as archive:
        for name, contents in files.items():
            archive.writestr(name, json.dumps(contents))
    return path


def test_an_archive_of_hindsight_is_imported_once(folder: Path) -> None:
    path = pack_archive(folder)

    first, second = import_file(path, "hindsight"), import_file(path, "hindsight")

    assert first["imported"] == {"note": 4}
    assert second == {**first, "imported": {}, "already_there": 4}
    kinds = {note.text: note.metadata["hindsight"]["type"] for note in Memory.objects.filter(agent_id="travel")}
    assert kinds == {
        "Ana flew to Madeira": "world",
        "Ana will fly to Oslo": "world",
        "Ana flies often": "observation",
        "Ana's trips: She flies.": "mental_model",
    }


def test_a_plan_in_hindsight_happened_when_it_was_mentioned(folder: Path) -> None:
    import_file(pack_archive(folder), "hindsight")

    times = dict(Memory.objects.values_list("text", "event_time"))
    assert times["Ana flew to Madeira"] == datetime(2026, 5, 4, tzinfo=UTC)
    assert times["Ana will fly to Oslo"] == datetime(2026, 5, 6, tzinfo=UTC)


def test_a_unit_of_hindsight_that_is_only_planned_is_imported(folder: Path) -> None:
    unit = {"id": "u1", "text": "Ana flies", "fact_type": "world", "occurred_start": "2999-01-01T00:00:00+00:00"}

    assert import_document(folder, "hindsight", {"items": [unit]})["imported"] == {"note": 1}


def test_a_damaged_archive_is_refused(folder: Path) -> None:
    path = pack_archive(folder)
    path.write_bytes(path.read_bytes()[:200])

    with pytest.raises(CommandError, match="damaged archive"):
        import_file(path, "hindsight")


def test_a_record_of_another_shape_is_counted(folder: Path) -> None:
    last = {"id": "m1", "memory": "Is in town", "expiration_date": "9999-12-31"}

    figures = import_document(folder, "mem0", {"results": [5, last]})

    assert figures["left_out"] == {"It does not have the documented shape.": 2}


def test_a_block_of_letta_and_an_item_of_langgraph_of_another_shape_are_counted(folder: Path) -> None:
    block = {"id": "b1", "label": "human", "value": "Ana"}
    item = {"prefix": "a", "key": "b", "value": {"text": "c"}, "expires_at": "2999-01-01T00:00:00+00:00"}

    blocks = import_document(folder, "letta", {"agents": [5, {"name": "Scout"}], "blocks": [None, block]})
    items = import_document(folder, "langgraph", [{**item, "ttl_minutes": each} for each in (1e300, -5, math.nan, 90)])

    assert blocks["left_out"] == {"It does not have the documented shape.": 1}
    assert blocks["imported"] == {"note": 1}
    assert items["left_out"] == {"It does not have the documented shape.": 3}
    assert items["imported"] == {"context_entry": 1}


def test_a_file_of_another_shape_is_refused(folder: Path) -> None:
    with pytest.raises(CommandError, match="documented shape"):
        import_document(folder, "zep", {"edges": [], "nodes": 5})
