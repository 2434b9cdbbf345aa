"""Tests of versions of entries: every former content stays readable, in order, and can be restored."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from uuid import uuid4

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from memory import conf
from memory.errors import NotFound, StaleVersion, TooLarge
from memory.models import ContextAccessLog, ContextEntry, ContextEntryVersion, Vector
from memory.owner import Owner
from memory.services.contexts.entries import (
    EntryDraft,
    EntryEdit,
    entry_versions,
    find_entry,
    find_version,
    restore_version,
    update_entry_content,
)
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.contexts import context_of, entry, keep, rewrite
from tests.memory.episodes import MODEL, NOTHING, NOW, WIDTH, direction
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

ANYTHING = EntryQuestion(text="anything", own=ClientVector(model=MODEL, vector=direction(0)))


@pytest.fixture
def row(owner: Owner) -> ContextEntry:
    return keep(owner, context_of(owner), entry("first", angle=0.1))[0]


def history(row: ContextEntry) -> list[ContextEntryVersion]:
    return list(entry_versions(row).order_by("number"))


def contents(row: ContextEntry) -> list[str]:
    return [version.content for version in history(row)]


def bring_back(owner: Owner, row: ContextEntry, number: int) -> ContextEntry:
    version = find_version(owner, row.id, number, now=NOW)
    return restore_version(owner, version, embedded=NOTHING, editor="ana", now=NOW)


def test_an_edit_is_a_version_with_its_editor_and_its_time(owner: Owner, row: ContextEntry) -> None:
    later = NOW + timedelta(hours=1)
    edit = EntryEdit(content="second", editor="ana")

    edited = update_entry_content(owner, row.id, edit=edit, embedded=NOTHING, now=later)

    first, second = history(row)
    assert (first.content, first.editor, first.created_at, first.previous_version) == ("first", "assistant", NOW, None)
    assert (second.content, second.editor, second.created_at, second.previous_version) == (
        "second",
        "ana",
        later,
        first,
    )
    assert (edited.text, edited.content_version, edited.version, edited.updated_at) == ("second", 2, 2, later)


def test_the_same_content_makes_no_version(owner: Owner, row: ContextEntry) -> None:
    again = rewrite(owner, row, "first")

    assert (again.version, contents(row)) == (1, ["first"])
    assert ContextAccessLog.objects.filter(action="update").count() == 0


def test_the_same_text_with_another_value_makes_a_version(owner: Owner) -> None:
    (row,) = keep(owner, context_of(owner), EntryDraft(key="k", content="count", value=1))

    for value in (1, 1.0, True):
        edit = EntryEdit(content="count", value=value)
        update_entry_content(owner, row.id, edit=edit, embedded=NOTHING, now=NOW)

    assert [repr(version.value) for version in history(row)] == ["1", "1.0", "True"]


def test_restoring_a_version_makes_a_new_one_with_its_content(owner: Owner) -> None:
    (row,) = keep(owner, context_of(owner), EntryDraft(key="k", value={"b": 1, "a": [1.0, None]}))
    rewrite(owner, row, "second")

    restored = bring_back(owner, row, 1)

    first, _second, third = history(row)
    assert (third.content, third.value, list(third.value)) == (first.content, first.value, ["b", "a"])
    assert (third.number, third.restored_from, third.editor) == (3, 1, "ana")
    assert (restored.text, restored.value) == (first.content, first.value)
    assert ContextAccessLog.objects.filter(action="restore", entry_id=row.id).count() == 1


def test_restoring_the_current_content_changes_nothing(owner: Owner, row: ContextEntry) -> None:
    bring_back(owner, row, 1)

    assert contents(row) == ["first"]


def test_a_long_content_under_a_key_can_be_restored(owner: Owner) -> None:
    long = "x" * (conf.TIER_VALUE_BYTES + 1)
    (row,) = keep(owner, context_of(owner), entry(long, key="k"))
    rewrite(owner, row, "short")

    assert bring_back(owner, row, 1).value == long


def test_a_value_too_large_is_refused_and_nothing_changed(owner: Owner, row: ContextEntry) -> None:
    edit = EntryEdit(content="second", value="x" * conf.TIER_VALUE_BYTES)

    with pytest.raises(TooLarge):
        update_entry_content(owner, row.id, edit=edit, embedded=NOTHING, now=NOW)

    assert contents(row) == ["first"]


@pytest.mark.slow
@examples(25)
@given(steps=st.lists(st.sampled_from("abc") | st.integers(1, 4), max_size=7))
def test_whatever_was_done_every_content_is_readable_in_order(owner: Owner, steps: list[str | int]) -> None:
    (row,) = keep(owner, context_of(owner, str(uuid4())), entry("a"))
    expected = ["a"]

    for step in steps:
        if isinstance(step, int) and step > len(expected):
            continue
        said = step if isinstance(step, str) else expected[step - 1]
        rewrite(owner, row, said) if isinstance(step, str) else bring_back(owner, row, step)
        expected += [said] if said != expected[-1] else []

    found = history(row)
    assert [version.content for version in found] == expected
    assert [version.number for version in found] == list(range(1, len(expected) + 1))
    assert [version.previous_version for version in found] == [None, *found[:-1]]
    assert find_entry(owner, row.id, now=NOW).text == expected[-1]


def test_after_an_edit_the_old_text_is_found_neither_by_words_nor_by_meaning(owner: Owner) -> None:
    (row,) = keep(owner, context_of(owner), entry("The boiler was repaired", angle=0.0))
    made = EmbeddedTexts(model=MODEL, width=WIDTH, vectors={"Flour was ordered": direction(np.pi / 2)})

    update_entry_content(owner, row.id, edit=EntryEdit(content="Flour was ordered"), embedded=made, now=NOW)

    by_words = [find_entries(owner, EntryQuestion(text=word), now=NOW) for word in ("boiler", "flour")]
    (by_meaning,) = find_entries(owner, ANYTHING, now=NOW).hits
    assert [[hit.content for hit in found.hits] for found in by_words] == [[], ["Flour was ordered"]]
    assert by_meaning.content == "Flour was ordered"
    assert by_meaning.similarity == pytest.approx(0, abs=1e-3)


def test_an_edit_without_a_vector_waits_for_one_and_has_none_of_the_old_text(owner: Owner, row: ContextEntry) -> None:
    edited = rewrite(owner, row, "second")

    assert edited.embed_after == NOW
    assert not Vector.objects.filter(memory_id=row.id).exists()


def test_an_edit_may_bring_its_own_vector(owner: Owner, row: ContextEntry) -> None:
    own = ClientVector(model=MODEL, vector=direction(0))

    edited = update_entry_content(owner, row.id, edit=EntryEdit(content="second", own=own), embedded=NOTHING, now=NOW)

    (hit,) = find_entries(owner, ANYTHING, now=NOW).hits
    assert edited.embed_after is None
    assert hit.similarity == pytest.approx(1, abs=1e-3)


@pytest.mark.django_db(transaction=True)
def test_of_two_edits_of_one_version_one_wins_and_the_other_changes_nothing(owner: Owner, row: ContextEntry) -> None:
    together = Barrier(2)

    def edit(content: str) -> str:
        together.wait(PATIENCE_SECONDS)
        try:
            change = EntryEdit(content=content)
            update_entry_content(owner, row.id, edit=change, embedded=NOTHING, expected=frozenset({1}), now=NOW)
        except StaleVersion:
            return ""
        finally:
            connection.close()
        return content

    with ThreadPoolExecutor(2) as agents:
        won = [content for content in agents.map(edit, ("one", "two")) if content]

    assert contents(row) == ["first", *won]
    assert len(won) == 1


@pytest.mark.parametrize("number", [0, 2, 10**12])
def test_an_unknown_version_is_not_found(owner: Owner, row: ContextEntry, number: int) -> None:
    with pytest.raises(NotFound):
        find_version(owner, row.id, number, now=NOW)


def test_others_do_not_find_a_version_and_cannot_restore_one(owner: Owner, row: ContextEntry) -> None:
    rewrite(owner, row, "second")
    version, other = find_version(owner, row.id, 1, now=NOW), replace(owner, agent_id="other")
    attempts: list[Callable[[], object]] = [
        lambda: find_version(other, row.id, 1, now=NOW),
        lambda: restore_version(other, version, embedded=NOTHING, editor="other", now=NOW),
    ]

    for attempt in attempts:
        with pytest.raises(NotFound):
            attempt()

    assert contents(row) == ["first", "second"]


@pytest.mark.parametrize("change", [{"content": "other"}, {"editor": "other"}, {"number": 7}], ids=str)
def test_the_database_refuses_changes_to_versions(row: ContextEntry, change: dict[str, object]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        ContextEntryVersion.objects.update(**change)

    assert contents(row) == ["first"]
