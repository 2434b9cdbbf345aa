"""`manage.py import_memories` with exports of our own making in the documented shapes."""

import json
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.models import Account, AuditEntry, ContextEntry, Fact, Kind, Memory
from memory.owner import Owner
from memory.services.custody.subjects import request_subject

pytestmark = pytest.mark.django_db
EXPORTS = Path(__file__).with_name("exports_of_others")
SHAPE = "It does not have the documented shape."
MESSAGES = "Messages are imported by import_conversations."
SOURCES = {
    "mem0.json": ("mem0", {"note": 3}, {"It has expired.": 1, "It has no text.": 1, SHAPE: 1}),
    "langgraph.jsonl": ("langgraph", {"context_entry": 3}, {"It has expired.": 1, SHAPE: 1}),
    "letta.json": ("letta", {"note": 1}, {"It has no text.": 1, MESSAGES: 2, "Tools and files are no memories.": 1}),
    "letta_passages.json": ("letta", {"note": 1}, {}),
    "hindsight.json": ("hindsight", {"note": 1}, {"It holds a NUL character.": 1, "It was invalidated there.": 1}),
}


def run_import(file: str, source: str, *options: str) -> dict[str, Any]:
    output = StringIO()
    call_command(
        "import_memories", EXPORTS / file, "--from", source, "--account", "workshop", "--json", *options, stdout=output
    )
    figures: dict[str, Any] = json.loads(output.getvalue())
    return figures


@pytest.mark.parametrize("file", SOURCES)
def test_an_export_is_imported_once_after_a_rehearsal_that_stores_nothing(file: str, account: Account) -> None:
    source, imported, left_out = SOURCES[file]

    rehearsed = run_import(file, source, "--dry-run")
    before = Memory.objects.count(), AuditEntry.objects.count()
    first, second = run_import(file, source), run_import(file, source)

    assert rehearsed == {"imported": imported, "already_there": 0, "left_out": left_out, "dry_run": True}
    assert before == (0, 0)
    assert first == {**rehearsed, "dry_run": False}
    assert second == {**first, "imported": {}, "already_there": sum(imported.values())}


def test_memories_of_mem0_keep_their_owners_times_and_metadata(account: Account) -> None:
    run_import("mem0.json", "mem0", "--agent", "assistant")

    [note] = Memory.objects.filter(kind=Kind.NOTE, text="Prefers window seats")
    assert (note.agent_id, note.user_id, note.source) == ("travel", "ana", "mem0")
    assert note.event_time == datetime(2026, 2, 1, 18, 0, 0, 123_000, tzinfo=UTC)
    assert note.metadata == {"source": "form", "mem0": {"categories": ["travel"], "run_id": "r1"}}
    assert Memory.objects.get(text="Is allergic to nuts").agent_id == "assistant"
    assert Memory.objects.get(text="Owns a bicycle").metadata == {"colour": "green"}


def test_facts_of_zep_keep_their_validity(account: Account) -> None:
    figures = run_import("zep.json", "zep")

    assert figures["imported"] == {"fact": 2, "note": 1}
    assert sum(figures["left_out"].values()) == 3
    facts = {fact.text: (fact.user_id, fact.valid_from, fact.valid_to) for fact in Fact.objects.all()}
    moved = datetime(2024, 3, 1, tzinfo=UTC)
    assert facts["Ana lives in Lisbon"] == ("ana", moved, None)
    assert facts["Ana lives in Porto"] == ("ana", datetime(2020, 1, 1, tzinfo=UTC), moved)
    assert run_import("zep.json", "zep")["already_there"] == 3


def test_items_of_langgraph_are_those_of_our_store(account: Account) -> None:
    run_import("langgraph.jsonl", "langgraph", "--agent", "assistant")

    entries = ContextEntry.objects.select_related("context")
    assert {(each.context.name, each.key) for each in entries} == {
        ("langgraph", "users.ana/seat"),
        ("langgraph", "users.ben/seat"),
        ("langgraph", "a.b/dots"),
    }


def test_an_erased_user_stays_erased(account: Account) -> None:
    request_subject(Owner(account_id=account.id), "ana", now=datetime.now(UTC))

    figures = run_import("mem0.json", "mem0")

    assert figures["imported"] == {"note": 1}
    assert any("was erased" in reason for reason in figures["left_out"])


@pytest.mark.parametrize(("text", "message"), [("{", "neither JSON"), ('{"a": 1}', "results"), ("[" * 100_000, "JSON")])
def test_a_file_that_is_no_export_is_refused(account: Account, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)

    with pytest.raises(CommandError, match=message):
        call_command("import_memories", file, "--from", "mem0", "--account", "workshop")


def test_what_was_imported_is_said_in_words(account: Account) -> None:
    output = StringIO()

    call_command("import_memories", EXPORTS / "letta.json", "--from", "letta", "--account", "workshop", stdout=output)

    assert output.getvalue().splitlines()[:2] == ["imported: 1 note; already there: 0", f"left out: 2: {MESSAGES}"]
