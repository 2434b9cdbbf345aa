"""What is stored under a key that is taken: what was sent counts, what was not sent stays."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import AuditEntry, ContextAccessLog, ContextEntry, PersistentContext
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft, boost_importance, remove_entry
from memory.services.router.route import MemoryRouter
from memory.tiers.base import Written
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


def put(owner: Owner, context: PersistentContext, value: Any = 1, **attributes: Any) -> ContextEntry:
    """Under the key k; the entry as it is stored."""
    (row,) = keep(owner, context, EntryDraft(key="k", value=value, **attributes))
    return ContextEntry.objects.get(id=row.id)


def attributes(row: ContextEntry) -> dict[str, Any]:
    return {name: getattr(row, name) for name in GIVEN}


def test_new_entries_have_the_defaults_of_what_is_not_given(owner: Owner, context: PersistentContext) -> None:
    assert attributes(put(owner, context)) == {
        "entry_type": "observation",
        "source_type": "agent",
        "memory_type": "factual",
        "importance": 0.5,
        "confidence": 1.0,
        "metadata": {},
    }


@pytest.mark.parametrize("name", GIVEN)
def test_an_attribute_that_is_given_counts_and_the_others_stay(
    owner: Owner, context: PersistentContext, name: str
) -> None:
    first = put(owner, context, metadata={"a": 1}, entry_type="plan", importance=0.7)

    second = put(owner, context, 2, **{name: GIVEN[name]})

    assert attributes(second) == attributes(first) | {name: GIVEN[name]}
    assert (second.value, second.content_version, second.version) == (2, 2, 2)


@pytest.mark.parametrize("name", GIVEN)
def test_attributes_alone_make_no_version_of_the_content(owner: Owner, context: PersistentContext, name: str) -> None:
    put(owner, context)

    row = put(owner, context, **{name: GIVEN[name]})

    assert getattr(row, name) == GIVEN[name]
    assert (row.content_version, row.version, row.versions.count(), row.updated_at) == (1, 2, 1, NOW)
    assert ContextAccessLog.objects.filter(action="update").count() == 1
    assert AuditEntry.objects.filter(operation="update").count() == 1


def test_the_same_content_and_attributes_change_nothing(owner: Owner, context: PersistentContext) -> None:
    put(owner, context, **GIVEN)

    row = put(owner, context, **GIVEN)

    assert (row.version, row.content_version) == (1, 1)
    assert not ContextAccessLog.objects.filter(action="update").exists()


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0, False), ([], {}), (None, 0)], ids=repr)
def test_metadata_is_replaced_to_the_letter(owner: Owner, context: PersistentContext, before: Any, after: Any) -> None:
    put(owner, context, metadata={"a": before, "b": 2})

    row = put(owner, context, metadata={"a": after})

    assert repr(row.metadata) == repr({"a": after})


def test_a_boost_survives_what_is_stored_again_without_an_importance(owner: Owner, context: PersistentContext) -> None:
    boost_importance(owner, put(owner, context).id, by=0.25, now=NOW)

    assert put(owner, context, 2).importance == 0.75


def test_the_router_gives_a_taken_key_the_type_that_it_names(owner: Owner, embedding_server: EmbeddingServer) -> None:
    router = MemoryRouter(owner)
    for value, memory_type in ((1, "factual"), (2, "experiential"), (3, "")):
        router.write("k", Written(value=value, memory_type=memory_type), tier="long_term", now=NOW)

    entry = ContextEntry.objects.get()
    assert (entry.value, entry.memory_type) == (3, "experiential")


def test_a_removed_entry_comes_back_with_what_was_sent(owner: Owner, context: PersistentContext) -> None:
    remove_entry(owner, put(owner, context).id, now=NOW)

    row = put(owner, context, **GIVEN)

    assert (attributes(row), row.archived, row.content_version, row.version) == (GIVEN, False, 2, 3)


def test_of_a_key_that_is_named_twice_the_last_counts_whole(owner: Owner, context: PersistentContext) -> None:
    put(owner, context)
    drafts = [EntryDraft(key="k", value=2, importance=0.1), EntryDraft(key="k", value=2, confidence=0.2)]

    keep(owner, context, *drafts)

    row = ContextEntry.objects.get()
    assert (row.importance, row.confidence) == (0.5, 0.2)


def test_a_thousand_with_attributes_take_as_many_statements_as_ten(
    owner: Owner, context: PersistentContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for count in (10, 1_000):
        keep(owner, context, *(entry("old", key=f"{count}: {number}") for number in range(count)))
        given = [entry("new", key=f"{count}: {number}", metadata={"n": number}) for number in range(count)]

        # those of edits, and the rows' metadata
        with django_assert_num_queries(12):
            keep(owner, context, *given)
    assert set(ContextEntry.objects.values_list("metadata__n", flat=True)) == set(range(1_000))
