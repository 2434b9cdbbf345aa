"""Tests of writing under an existing key: given values are stored, missing ones stay."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import AuditEntry, ContextAccessLog, ContextEntry, PersistentContext
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft, boost_importance, remove_entry
from memory.services.router import MemoryRouter
from memory.tiers.base import NewValue
from tests.embedding_server import EmbeddingServer
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

GIVEN: dict[str, Any] = {
    "entry_type": "fact",
    "source_type": "tool",
    "memory_type": "experiential",
    "importance": 0.9,
    "confidence": 0.3,
    "metadata": {"b": 1.0},
}


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


def store_under_k(owner: Owner, context: PersistentContext, value: Any = 1, **attributes: Any) -> ContextEntry:
    """Store a draft under the key k and return the stored entry."""
    (row,) = keep(owner, context, EntryDraft(key="k", value=value, **attributes))
    return ContextEntry.objects.get(id=row.id)


def attributes(row: ContextEntry) -> dict[str, Any]:
    return {name: getattr(row, name) for name in GIVEN}


def test_new_entries_have_defaults_for_missing_attributes(owner: Owner, context: PersistentContext) -> None:
    assert attributes(store_under_k(owner, context)) == {
        "entry_type": "observation",
        "source_type": "agent",
        "memory_type": "factual",
        "importance": 0.5,
        "confidence": 1.0,
        "metadata": {},
    }


@pytest.mark.parametrize("name", GIVEN)
def test_given_attributes_are_stored_and_the_others_stay(owner: Owner, context: PersistentContext, name: str) -> None:
    first = store_under_k(owner, context, metadata={"a": 1}, entry_type="plan", importance=0.7)

    second = store_under_k(owner, context, 2, **{name: GIVEN[name]})

    assert attributes(second) == attributes(first) | {name: GIVEN[name]}
    assert (second.value, second.content_version, second.version) == (2, 2, 2)


@pytest.mark.parametrize("name", GIVEN)
def test_attributes_alone_make_no_version_of_the_content(owner: Owner, context: PersistentContext, name: str) -> None:
    store_under_k(owner, context)

    row = store_under_k(owner, context, **{name: GIVEN[name]})

    assert getattr(row, name) == GIVEN[name]
    assert (row.content_version, row.version, row.versions.count(), row.updated_at) == (1, 2, 1, NOW)
    assert ContextAccessLog.objects.filter(action="update").count() == 1
    assert AuditEntry.objects.filter(operation="update").count() == 1


def test_the_same_content_and_attributes_change_nothing(owner: Owner, context: PersistentContext) -> None:
    store_under_k(owner, context, **GIVEN)

    row = store_under_k(owner, context, **GIVEN)

    assert (row.version, row.content_version) == (1, 1)
    assert not ContextAccessLog.objects.filter(action="update").exists()


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0, False), ([], {}), (None, 0)], ids=repr)
def test_metadata_is_replaced_exactly(owner: Owner, context: PersistentContext, before: Any, after: Any) -> None:
    store_under_k(owner, context, metadata={"a": before, "b": 2})

    row = store_under_k(owner, context, metadata={"a": after})

    assert repr(row.metadata) == repr({"a": after})


def test_a_boost_survives_a_write_without_an_importance(owner: Owner, context: PersistentContext) -> None:
    boost_importance(owner, store_under_k(owner, context).id, by=0.25, now=NOW)

    assert store_under_k(owner, context, 2).importance == 0.75


def test_the_router_gives_an_existing_key_the_named_type(owner: Owner, embedding_server: EmbeddingServer) -> None:
    router = MemoryRouter(owner)
    for value, memory_type in ((1, "factual"), (2, "experiential"), (3, "")):
        router.write("k", NewValue(value=value, memory_type=memory_type), tier="long_term", now=NOW)

    entry = ContextEntry.objects.get()
    assert (entry.value, entry.memory_type) == (3, "experiential")


def test_writing_a_removed_entry_restores_it_with_the_new_values(owner: Owner, context: PersistentContext) -> None:
    remove_entry(owner, store_under_k(owner, context).id, now=NOW)

    row = store_under_k(owner, context, **GIVEN)

    assert (attributes(row), row.archived, row.content_version, row.version) == (GIVEN, False, 2, 3)


def test_the_last_of_two_drafts_with_the_same_key_wins(owner: Owner, context: PersistentContext) -> None:
    store_under_k(owner, context)
    drafts = [EntryDraft(key="k", value=2, importance=0.1), EntryDraft(key="k", value=2, confidence=0.2)]

    keep(owner, context, *drafts)

    row = ContextEntry.objects.get()
    assert (row.importance, row.confidence) == (0.5, 0.2)


@pytest.mark.slow
def test_a_thousand_entries_with_attributes_take_as_many_statements_as_ten(
    owner: Owner, context: PersistentContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for count in (10, 1_000):
        keep(owner, context, *(entry("old", key=f"{count}: {number}") for number in range(count)))
        given = [entry("new", key=f"{count}: {number}", metadata={"n": number}) for number in range(count)]

        # those of edits, and the rows' metadata
        with django_assert_num_queries(11):
            keep(owner, context, *given)
    assert set(ContextEntry.objects.values_list("metadata__n", flat=True)) == set(range(1_000))
