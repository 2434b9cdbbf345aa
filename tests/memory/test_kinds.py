"""Kinds of memory: each declares itself, and another one needs no more than the recipe in `memory.kinds` says."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.module_loading import import_string

from memory.errors import Unprocessable
from memory.kinds import Kind, KindSpec, all_kinds, all_specs, register, spec_of, unregister
from memory.maintenance.memory_jobs import decay_stages
from memory.models import AuditEntry, Memory, Vector
from memory.models.memory import model_of
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.timeline import TimelineFilter, read_timeline
from memory.services.embedding.embed import embed_texts
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from memory.services.memories.lifecycle import Lifecycle
from memory.services.memories.store import store_memories
from memory.services.prompt_context.build import build_prompt_context
from tests.memory.context import request_for
from tests.memory.episodes import NOW
from tests.memory.recalls import found_by_words

TEXT = "The key of the greenhouse hangs behind the blue door."
CORRECTED = "The key of the greenhouse hangs behind the red door."
LATER = NOW + timedelta(hours=1)

erased: list[Any] = []


class NoteLifecycle(Lifecycle):
    """Refuses to erase notes of the greatest salience, and keeps the ids of erased ones."""

    def prepare(self) -> None:
        if self.operation.is_erasure and Memory.objects.filter(id__in=self.memory_ids, salience=1.0).exists():
            raise Unprocessable("an important note stays")

    def before_erasure(self) -> None:
        erased.extend(self.memory_ids)


SPEC = KindSpec(
    name="note",
    label="sticky note",
    plural="sticky notes",
    memory_type="procedural",
    not_correctable=frozenset({"user_id"}),
    lifecycles=(f"{__name__}.NoteLifecycle",),
)


@pytest.fixture
def note(owner: Owner) -> Iterator[Memory]:
    """Register a kind for the test alone, and store a memory of it."""
    register(SPEC)
    forget_statements()
    yield write_note(owner)
    unregister(SPEC.name)
    forget_statements()
    erased.clear()


def forget_statements() -> None:
    """Drop cached SQL, as a process has none when kinds are registered."""
    modules = [module for name, module in sys.modules.items() if name.startswith("memory.retrieval.")]
    for cached in [value for module in modules for value in vars(module).values() if hasattr(value, "cache_clear")]:
        cached.cache_clear()


def write_note(owner: Owner) -> Memory:
    row = Memory(kind=SPEC.name, text=TEXT, event_time=NOW)
    (stored,) = store_memories(owner, [row], embedded=embed_texts([TEXT]), own={}, now=NOW)
    return stored


def recalled(owner: Owner, **asked: Any) -> list[Candidate]:
    return found_by_words(owner, "Where is the key of the greenhouse?", **asked)


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.name)
def test_a_kind_refers_only_to_existing_models_and_columns(spec: KindSpec) -> None:
    columns = {field.name for field in apps.get_model(spec.model)._meta.get_fields()}

    assert Kind[spec.name.upper()] == spec.name
    assert issubclass(model_of(spec.name), Memory)
    assert spec.correctable | spec.not_correctable <= columns
    assert spec.merging is None or {*spec.merging.key, *spec.merging.sums, *spec.merging.maxima} <= columns
    assert not spec.has_reasoning_tier or "tier" in columns
    assert set(spec.repeat_key or ()) <= set(dir(Candidate))
    assert all(issubclass(import_string(path), Lifecycle) for path in spec.lifecycles)
    assert admin.site.is_registered(apps.get_model("memory", spec.admin_page))


def test_every_constant_has_a_spec_and_an_unknown_kind_is_refused() -> None:
    assert all_kinds() == list(Kind)
    with pytest.raises(LookupError):
        spec_of("note")
    with pytest.raises(ValueError, match="note"):
        Kind("note")


def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ValueError, match="turn"):
        register(spec_of(Kind.TURN))


def test_a_memory_of_another_kind_is_recalled(owner: Owner, note: Memory) -> None:
    (found,) = recalled(owner)

    assert (found.id, found.text, found.kind) == (note.id, TEXT, "note")
    assert [each.id for each in recalled(owner, kinds=[Kind("note")])] == [note.id]
    assert recalled(owner, kinds=[Kind.FACT]) == []


@pytest.mark.usefixtures("empty_redis")
def test_a_memory_of_another_kind_is_quoted_in_a_prompt_context(owner: Owner, note: Memory) -> None:
    context = build_prompt_context(owner, request_for(query="Where is the key of the greenhouse?"), now=NOW)

    assert TEXT in context.context
    assert "Sticky note" in context.context


def test_a_memory_of_another_kind_is_on_the_timeline(owner: Owner, note: Memory) -> None:
    (item,) = read_timeline(owner, TimelineFilter(), limit=10, now=NOW)

    assert (item.id, item.kind, item.item_key) == (note.id, "note", f"note:{note.id}")


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
    assert "salience_note" in decay_stages()


def test_a_memory_of_another_kind_is_erased(owner: Owner, note: Memory) -> None:
    assert delete_memories(owner, [note.id], now=LATER) == 1

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
