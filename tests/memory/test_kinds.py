"""Kinds of memory: each declares itself, and another one needs no more than the recipe in `memory.kinds` says."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse
from django.utils.module_loading import import_string

from memory import conf
from memory.errors import Unprocessable
from memory.kinds import (
    Audience,
    Globalizing,
    Kind,
    KindSpec,
    Merging,
    all_kinds,
    all_specs,
    register,
    spec_of,
    unregister,
)
from memory.maintenance import Batch
from memory.maintenance.memory_jobs import decay_stages, globalize_facts
from memory.models import AuditEntry, Link, Memory, MemoryRow, Vector
from memory.models.memory import model_of
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.timeline import TimelineFilter, read_timeline
from memory.services.artifacts.read import view_artifact
from memory.services.duplicates.merge import merge_pair, undo_merge
from memory.services.embedding.embed import embed_texts
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from memory.services.memories.lifecycle import Lifecycle
from memory.services.memories.links import DERIVED_FROM, NewLink, insert_links
from memory.services.memories.store import store_memories
from memory.services.prompt_context.build import build_prompt_context
from tests.memory.artifacts import kept
from tests.memory.context import request_for
from tests.memory.episodes import NOW
from tests.memory.recalls import found_by_words

TEXT = "The key of the greenhouse hangs behind the blue door."
CORRECTED = "The key of the greenhouse hangs behind the red door."
LATER = NOW + timedelta(hours=1)
QUESTION = "Where is the key of the greenhouse?"

erased: list[Any] = []
reminders: dict[UUID, list[str]] = {}


class NoteLifecycle(Lifecycle):
    """Refuses to erase notes of the greatest salience, and keeps the ids of erased ones."""

    def prepare(self) -> None:
        if self.operation.is_erasure and Memory.objects.filter(id__in=self.memory_ids, salience=1.0).exists():
            raise Unprocessable("an important note stays")

    def before_erasure(self) -> None:
        erased.extend(self.memory_ids)


def find_prominent_notes(**_asked: Any) -> QuerySet[Memory]:
    return Memory.objects.filter(kind="sticky_note", channel="atlas", access_count__gte=5)


def globalize_notes(notes: Sequence[Memory], *, now: Any) -> Counter[str]:
    done = Memory.objects.filter(id__in=[note.id for note in notes]).update(channel="_global", updated_at=now)
    return Counter({"sticky notes_promoted": done})


def move_reminders(giver: Memory, taker: Memory, ids: Sequence[str] | None) -> list[str]:
    """Move the reminders of a note, which are kept in this module."""
    moved = [each for each in reminders.pop(giver.id, []) if ids is None or each in ids]
    reminders.setdefault(taker.id, []).extend(moved)
    return moved


SPEC = KindSpec(
    name="sticky_note",
    label="sticky note",
    plural="sticky notes",
    memory_type="procedural",
    not_correctable=frozenset({"user_id"}),
    lifecycles=(f"{__name__}.NoteLifecycle",),
)


@pytest.fixture
def note(owner: Owner, request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Register a kind for the test alone, and store a memory of it. A parameter has further fields of its spec."""
    register(replace(SPEC, **getattr(request, "param", {})))
    forget_statements()
    yield write_note(owner)
    unregister(SPEC.name)
    forget_statements()
    erased.clear()
    reminders.clear()


def note_with(**fields: Any) -> pytest.MarkDecorator:
    """Declare further fields of the throw-away kind for a test."""
    return pytest.mark.parametrize("note", [fields], indirect=True, ids=[*fields])


def forget_statements() -> None:
    """Drop cached SQL, as a process has none when kinds are registered."""
    modules = [module for name, module in sys.modules.items() if name.startswith("memory.retrieval.")]
    for cached in [value for module in modules for value in vars(module).values() if hasattr(value, "cache_clear")]:
        cached.cache_clear()


def write_note(owner: Owner, **columns: Any) -> Memory:
    row = Memory(kind=SPEC.name, text=TEXT, event_time=NOW, **columns)
    (stored,) = store_memories(owner, [row], embedded=embed_texts([TEXT]), own={}, now=NOW)
    return stored


def recalled(owner: Owner, **asked: Any) -> list[Candidate]:
    return found_by_words(owner, QUESTION, **asked)


def prompt_context(owner: Owner) -> str:
    return build_prompt_context(owner, request_for(query=QUESTION), now=NOW).context


def timeline(owner: Owner, **asked: Any) -> list[UUID]:
    return [item.id for item in read_timeline(owner, TimelineFilter(**asked), limit=10, now=NOW)]


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.name)
def test_a_kind_refers_only_to_existing_models_and_columns(spec: KindSpec) -> None:
    columns = {field.name for field in apps.get_model(spec.model)._meta.get_fields()}

    assert Kind[spec.name.upper()] == spec.name
    assert issubclass(model_of(spec.name), MemoryRow)
    assert spec.correctable | spec.not_correctable <= columns
    assert spec.merging is None or {*spec.merging.key, *spec.merging.sums, *spec.merging.maxima} <= columns
    assert not spec.has_reasoning_tier or "tier" in columns
    assert not spec.has_beliefs or {"recorded_at", "retracted_at", "temporal", "valid_to", "belief_number"} <= columns
    assert not spec.has_access_log or spec.audience is Audience.CONTEXT_READERS
    assert all(callable(import_string(path)) for path in functions_of(spec))
    assert set(spec.repeat_key or ()) <= set(dir(Candidate))
    assert all(issubclass(import_string(path), Lifecycle) for path in spec.lifecycles)
    assert admin.site.is_registered(apps.get_model("memory", spec.admin_page))


def functions_of(spec: KindSpec) -> list[str]:
    """Return the dotted paths of functions that a kind names."""
    moves = spec.merging.moves.values() if spec.merging else ()
    return [*moves, *((spec.globalizing.find, spec.globalizing.copy) if spec.globalizing else ())]


def test_every_constant_has_a_spec_and_an_unknown_kind_is_refused() -> None:
    assert all_kinds() == list(Kind)
    with pytest.raises(LookupError):
        spec_of("sticky_note")
    with pytest.raises(ValueError, match="sticky_note"):
        Kind("sticky_note")


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ValueError, match="turn"):
        register(spec_of(Kind.TURN))


def test_a_memory_of_another_kind_is_recalled(owner: Owner, note: Memory) -> None:
    (found,) = recalled(owner)

    assert (found.id, found.text, found.kind) == (note.id, TEXT, "sticky_note")
    assert [each.id for each in recalled(owner, kinds=[Kind("sticky_note")])] == [note.id]
    assert recalled(owner, kinds=[Kind.FACT]) == []


@pytest.mark.usefixtures("empty_redis")
def test_a_memory_of_another_kind_is_quoted_in_a_prompt_context(owner: Owner, note: Memory) -> None:
    assert f"1. Sticky note, 2026-05-04 12:00 UTC\n> {TEXT}\n" in prompt_context(owner)


@note_with(prompt_quote="message")
@pytest.mark.usefixtures("empty_redis")
def test_another_kind_may_be_quoted_as_a_message_of_its_conversation(owner: Owner, note: Memory) -> None:
    Memory.objects.filter(id=note.id).update(conversation_id="trip")

    assert f"1. Conversation trip, 2026-05-04 12:00 UTC\n> {TEXT}\n" in prompt_context(owner)


@note_with(prompt_quote="summary")
@pytest.mark.usefixtures("empty_redis")
def test_another_kind_may_be_quoted_among_the_similar_episodes(owner: Owner, note: Memory) -> None:
    context = prompt_context(owner)

    assert "[Episodic Memory -- Relevant Past Conversations]\n- (" in context
    assert f") {TEXT}" in context
    assert "Sticky note" not in context


def test_a_memory_of_another_kind_is_on_the_timeline(owner: Owner, note: Memory) -> None:
    (item,) = read_timeline(owner, TimelineFilter(), limit=10, now=NOW)

    assert (item.id, item.kind, item.item_key) == (note.id, "sticky_note", f"sticky_note:{note.id}")
    assert timeline(owner, kinds=[Kind("sticky_note")]) == [note.id]
    assert timeline(owner, kinds=[Kind.FACT]) == []


def test_a_memory_of_another_kind_has_its_admin_page(note: Memory, client: Client, db: None) -> None:
    client.force_login(User.objects.create_superuser("chief"))

    for page in (reverse("admin:memory_memory_changelist"), reverse("admin:memory_memory_change", args=[note.id])):
        assert TEXT in client.get(page).content.decode()


def test_a_memory_of_another_kind_is_corrected(owner: Owner, note: Memory) -> None:
    correct_memory(owner, note.id, changes={"text": CORRECTED}, version=note.version, now=LATER)

    assert Memory.objects.get(id=note.id).text == CORRECTED
    assert not Vector.objects.filter(memory_id=note.id).exists()
    assert AuditEntry.objects.filter(operation="update", memory_type="procedural", affected_ids=[str(note.id)]).exists()
    with pytest.raises(Unprocessable, match="sticky note"):
        correct_memory(owner, note.id, changes={"user_id": "ana"}, version=note.version + 1, now=LATER)


def test_a_memory_of_another_kind_is_marked_and_decays(owner: Owner, note: Memory) -> None:
    assert mark_memories(owner, [note.id], mark="archive", now=LATER) == 1
    assert recalled(owner) == []
    assert "salience_sticky_note" in decay_stages()


def test_a_memory_of_another_kind_is_erased(owner: Owner, note: Memory) -> None:
    assert timeline(owner) == [note.id]

    assert delete_memories(owner, [note.id], now=LATER) == 1

    assert (timeline(owner), recalled(owner)) == ([], [])
    assert not Memory.objects.filter(id=note.id).exists()
    assert erased == [note.id]


def test_another_kind_may_refuse_to_be_erased(owner: Owner, note: Memory) -> None:
    Memory.objects.filter(id=note.id).update(salience=1.0)

    with pytest.raises(Unprocessable, match="stays"):
        delete_memories(owner, [note.id], now=LATER)


def test_agents_see_the_knowledge_of_another_kind_by_its_audience(owner: Owner, note: Memory) -> None:
    colleague = Owner(account_id=owner.account_id, agent_id="colleague")

    assert Memory.objects.visible_to(owner).filter(id=note.id).exists()
    assert not Memory.objects.visible_to(colleague).filter(id=note.id).exists()


@note_with(merging=Merging(moves={"reminders": f"{__name__}.move_reminders"}))
def test_duplicates_of_another_kind_are_merged_with_the_rows_that_it_names(owner: Owner, note: Memory) -> None:
    other = write_note(owner)
    reminders[other.id] = ["on Monday"]

    merged = merge_pair(owner, (note.id, other.id), similarity=1.0, now=LATER)

    assert merged is not None
    assert (merged.survivor_id, merged.loser_id) == (note.id, other.id)
    properties = Link.objects.get(source_id=other.id).properties
    assert (properties["reminders"], properties["uses"], properties["votes"]) == (["on Monday"], [], [])
    assert reminders == {note.id: ["on Monday"]}
    undo_merge(owner, other.id, now=LATER)
    assert reminders[other.id] == ["on Monday"]


def test_duplicates_of_another_kind_are_not_merged_unless_it_says_so(owner: Owner, note: Memory) -> None:
    assert merge_pair(owner, (note.id, write_note(owner).id), similarity=1.0, now=LATER) is None


GLOBALIZING = Globalizing(find=f"{__name__}.find_prominent_notes", copy=f"{__name__}.globalize_notes")


@pytest.mark.parametrize(
    ("note", "channel"), [({"globalizing": GLOBALIZING}, "_global"), ({}, "atlas")], indirect=["note"]
)
def test_a_prominent_memory_of_another_kind_is_globalized_if_it_says_so(note: Memory, channel: str) -> None:
    Memory.objects.filter(id=note.id).update(channel="atlas", access_count=5)

    report = globalize_facts(now=LATER, batch=Batch(size=10, cursor=f"{SPEC.plural}:" if channel == "_global" else ""))

    is_globalized = int(channel == "_global")
    assert (report.examined, report.changed) == (is_globalized, is_globalized)
    assert Memory.objects.get(id=note.id).channel == channel


@pytest.mark.parametrize(("note", "texts"), [({}, [TEXT]), ({"has_guarded_text": True}, [])], indirect=["note"])
@pytest.mark.usefixtures("note")
def test_the_audit_log_and_links_quote_no_guarded_text(
    owner: Owner, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "verbose")
    note, artifact = write_note(owner), kept(owner)
    insert_links(owner.account_id, [NewLink(source_id=artifact.id, type=DERIVED_FROM, target_id=note.id)])

    entry = AuditEntry.objects.get(operation="store", affected_ids=[str(note.id)])
    assert entry.metadata.get("texts", []) == texts
    assert [link.label for link in view_artifact(owner, artifact.id, now=NOW).links] == (texts or [""])
