"""Tests of context entries: storing with and without a key, importance, removal, access rights."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.errors import Conflict, Forbidden, NotFound, StaleVersion, TooLarge
from memory.models import (
    AccessControl,
    Account,
    Agent,
    AuditEntry,
    ContextAccessLog,
    ContextEntry,
    Memory,
    PersistentContext,
    Vector,
)
from memory.models.writer import MIN_ROWS_TO_PLAN_ONCE
from memory.owner import Owner
from memory.services.contexts.entries import (
    EntryDraft,
    boost_importance,
    find_entry,
    reduce_importance,
    remove_entry,
    visible_entries,
)
from memory.services.contexts.manage import archive_context
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.contexts import context_of, entry, keep, rewrite
from tests.memory.episodes import NOW
from tests.properties import examples

pytestmark = pytest.mark.django_db


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


@pytest.fixture
def row(owner: Owner, context: PersistentContext) -> ContextEntry:
    return keep(owner, context, entry("The roof leaks", angle=0.1))[0]


def contents(owner: Owner, context: PersistentContext) -> list[str]:
    return list(visible_entries(owner, now=NOW).filter(context=context).order_by("id").values_list("text", flat=True))


def test_entries_come_back_in_the_order_in_which_they_were_given(owner: Owner, context: PersistentContext) -> None:
    rows = keep(owner, context, entry("one"), EntryDraft(key="k", value=2), entry("three", importance=0.9))

    assert [(row.text, row.key, row.value, row.importance) for row in rows] == [
        ("one", "", None, 0.5),
        ("2", "k", 2, 0.5),
        ("three", "", None, 0.9),
    ]
    assert [find_entry(owner, row.id, now=NOW).text for row in rows] == ["one", "2", "three"]


@pytest.mark.parametrize("value", ["text", "", " ", 1, 1.0, True, None, [], {"a": [1, {"b": None}]}, "123"], ids=repr)
def test_a_value_is_returned_unchanged_and_has_a_searchable_text(
    owner: Owner, context: PersistentContext, value: Any
) -> None:
    (row,) = keep(owner, context, EntryDraft(key="k", value=value))

    found = find_entry(owner, row.id, now=NOW)

    assert (found.value, type(found.value)) == (value, type(value))
    assert found.text.strip()


def test_the_value_under_a_key_defaults_to_the_content(owner: Owner, context: PersistentContext) -> None:
    with_value, without = keep(owner, context, EntryDraft(key="a", content="one", value=1), entry("two", key="b"))

    assert (with_value.text, with_value.value, without.value) == ("one", 1, "two")


def test_a_value_too_large_is_refused_also_with_a_content(owner: Owner, context: PersistentContext) -> None:
    draft = EntryDraft(content="short", value="x" * conf.TIER_VALUE_BYTES)

    with pytest.raises(TooLarge):
        keep(owner, context, entry("before it"), draft)

    assert contents(owner, context) == []


def test_an_existing_key_gets_the_next_version_of_its_entry(owner: Owner, context: PersistentContext) -> None:
    (first,) = keep(owner, context, EntryDraft(key="k", value=1))
    (second,) = keep(owner, context, EntryDraft(key="k", value=2))
    (again,) = keep(owner, context, EntryDraft(key="k", value=2))

    assert first.id == second.id == again.id
    assert (second.content_version, again.content_version, again.value) == (2, 2, 2)


def test_keys_belong_to_their_context(owner: Owner, context: PersistentContext) -> None:
    other = context_of(owner, "other")

    keep(owner, context, EntryDraft(key="k", value=1))
    keep(owner, other, EntryDraft(key="k", value=2))

    assert (contents(owner, context), contents(owner, other)) == (["1"], ["2"])


def test_a_key_given_twice_in_one_call_is_one_entry_with_the_last_content(
    owner: Owner, context: PersistentContext
) -> None:
    for value in (1, 3):
        given = EntryDraft(key="k", value=value), entry("other"), EntryDraft(key="k", value=value + 1)

        rows = keep(owner, context, *given)

        assert [row.text for row in rows] == [str(value + 1), "other", str(value + 1)]
    assert sorted(contents(owner, context)) == ["4", "other", "other"]
    assert [version.value for version in rows[0].versions.order_by("number")] == [2, 4]


def test_new_changed_unchanged_and_removed_ones_are_stored_together(owner: Owner, context: PersistentContext) -> None:
    before = {row.key: row for row in keep(owner, context, *(entry("old", angle=0.1, key=key) for key in "abc"))}
    remove_entry(owner, before["c"].id, now=NOW)

    drafts = [entry("new", key="a"), entry("old", key="b"), entry("old", angle=0.2, key="c"), entry("first", key="d")]
    rows = keep(owner, context, *drafts)

    stored = [find_entry(owner, row.id, now=NOW) for row in rows]
    assert [(row.text, row.content_version, row.version) for row in stored] == [
        *(("new", 2, 2), ("old", 1, 1), ("old", 2, 3), ("first", 1, 1)),
    ]
    assert [row.embed_after for row in stored] == [NOW, None, None, NOW]
    assert set(Vector.objects.values_list("memory_id", flat=True)) == {before["b"].id, before["c"].id}


def test_storing_is_audited_and_in_the_access_log(owner: Owner, row: ContextEntry) -> None:
    logged = ContextAccessLog.objects.get()

    assert (logged.context_id, logged.entry_id, logged.agent_id, logged.action) == (
        *(row.context_id, row.id, "assistant", "create"),
    )
    assert AuditEntry.objects.filter(operation="store", memory_type="semantic").count() == 1


def test_importance_moves_and_the_content_stays_at_its_version(owner: Owner, row: ContextEntry) -> None:
    boosted = boost_importance(owner, row.id, by=0.25, now=NOW)
    reduced = reduce_importance(owner, row.id, by=0.5, now=NOW)

    assert (boosted.importance, reduced.importance) == (0.75, 0.25)
    assert (reduced.version, reduced.content_version, reduced.updated_at) == (3, 1, NOW)
    assert list(ContextAccessLog.objects.order_by("id").values_list("action", flat=True)) == [
        *("create", "boost", "reduce")
    ]


@examples(30)
@given(moves=st.lists(st.tuples(st.booleans(), st.floats(0, 1, exclude_min=True)), max_size=8))
def test_importance_stays_within_its_bounds_whatever_moves_it(
    owner: Owner, row: ContextEntry, moves: list[tuple[bool, float]]
) -> None:
    expected = find_entry(owner, row.id, now=NOW).importance
    for is_boost, by in moves:
        weigh = boost_importance if is_boost else reduce_importance
        expected = min(1.0, max(0.0, expected + (by if is_boost else -by)))

        found = weigh(owner, row.id, by=by, now=NOW)

        assert 0 <= found.importance <= 1
        assert found.importance == pytest.approx(expected, abs=1e-9)


def test_a_stale_version_moves_nothing(owner: Owner, row: ContextEntry) -> None:
    boost_importance(owner, row.id, by=0.1, expected=frozenset({1}), now=NOW)

    for act in (boost_importance, reduce_importance):
        with pytest.raises(StaleVersion):
            act(owner, row.id, by=0.1, expected=frozenset({1}), now=NOW)
    with pytest.raises(StaleVersion):
        remove_entry(owner, row.id, expected=frozenset({1}), now=NOW)

    assert find_entry(owner, row.id, now=NOW).importance == pytest.approx(0.6)


@pytest.mark.django_db(transaction=True)
def test_concurrent_boosts_are_all_counted(owner: Owner, row: ContextEntry) -> None:
    together = Barrier(8)

    def boost(_agent: int) -> None:
        together.wait(PATIENCE_SECONDS)
        try:
            for _again in range(5):
                boost_importance(owner, row.id, by=0.01, now=NOW)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as agents:
        list(agents.map(boost, range(8)))

    found = find_entry(owner, row.id, now=NOW)
    assert found.importance == pytest.approx(0.9)
    assert found.version == 41


@pytest.mark.django_db(transaction=True)
def test_a_key_stored_by_many_threads_is_one_entry(owner: Owner, context: PersistentContext) -> None:
    together = Barrier(6)

    def store(agent: int) -> None:
        together.wait(PATIENCE_SECONDS)
        try:
            keep(owner, context, EntryDraft(key="k", value=agent))
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as agents:
        list(agents.map(store, range(6)))

    (found,) = visible_entries(owner, now=NOW)
    assert (found.content_version, found.versions.count()) == (6, 6)


def test_a_removed_entry_is_not_found(owner: Owner, row: ContextEntry) -> None:
    remove_entry(owner, row.id, now=NOW)

    with pytest.raises(NotFound):
        find_entry(owner, row.id, now=NOW)
    for act in (lambda: boost_importance(owner, row.id, by=0.1, now=NOW), lambda: remove_entry(owner, row.id, now=NOW)):
        with pytest.raises(NotFound):
            act()
    with pytest.raises(NotFound):
        rewrite(owner, row, "back")


@pytest.mark.parametrize("gone", [{"archived": True}, {"expires_at": NOW - timedelta(seconds=1)}], ids=str)
def test_storing_its_key_again_brings_an_entry_back_with_its_history(
    owner: Owner, context: PersistentContext, gone: dict[str, Any]
) -> None:
    (row,) = keep(owner, context, EntryDraft(key="k", value=1))
    Memory.objects.filter(id=row.id).update(**gone)

    keep(owner, context, EntryDraft(key="k", value=1))

    found = find_entry(owner, row.id, now=NOW)
    assert (found.content_version, found.versions.count()) == (2, 2)


def test_a_key_with_a_quarantined_entry_cannot_be_written(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, EntryDraft(key="k", value=1))
    Memory.objects.filter(id=row.id).update(quarantined=True)

    with pytest.raises(Conflict):
        keep(owner, context, EntryDraft(key="k", value=2))

    assert row.versions.count() == 1


def test_an_archived_context_takes_no_writes(owner: Owner, context: PersistentContext, row: ContextEntry) -> None:
    archive_context(owner, context.id, expected=None, now=NOW)

    for act in (
        lambda: keep(owner, context, entry("new")),
        lambda: rewrite(owner, row, "other"),
        lambda: boost_importance(owner, row.id, by=0.1, now=NOW),
        lambda: remove_entry(owner, row.id, now=NOW),
    ):
        with pytest.raises(Conflict, match="unless it is being deleted"):
            act()

    assert contents(owner, context) == ["The roof leaks"]


def test_a_reader_cannot_write(owner: Owner, context: PersistentContext, row: ContextEntry) -> None:
    PersistentContext.objects.update(scope="account")
    reader = replace(owner, agent_id="reader")

    for act in (
        lambda: keep(reader, context, entry("new")),
        lambda: rewrite(reader, row, "other"),
        lambda: reduce_importance(reader, row.id, by=0.1, now=NOW),
        lambda: remove_entry(reader, row.id, now=NOW),
    ):
        with pytest.raises(Forbidden):
            act()

    assert contents(reader, context) == ["The roof leaks"]


def test_a_context_that_may_not_be_read_is_not_found(
    owner: Owner, context: PersistentContext, row: ContextEntry, stranger: Account
) -> None:
    for other in (replace(owner, agent_id="other"), Owner(account_id=stranger.id), replace(owner, account_id=uuid4())):
        with pytest.raises(NotFound):
            keep(other, context, entry("new"))
        with pytest.raises(NotFound):
            rewrite(other, row, "other")

    assert contents(owner, context) == ["The roof leaks"]


def test_the_first_write_creates_the_agent(
    owner: Owner,
    context: PersistentContext,
    row: ContextEntry,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    PersistentContext.objects.update(access_control=AccessControl(write=["one", "two"]).model_dump())
    (keyed,) = keep(owner, context, EntryDraft(key="k", value=1))

    with django_capture_on_commit_callbacks(execute=True):
        boost_importance(replace(owner, agent_id="one"), row.id, by=0.1, now=NOW)
        keep(replace(owner, agent_id="two"), context, EntryDraft(key="k", value=2))

    assert set(Agent.objects.values_list("agent_id", flat=True)) == {"assistant", "one", "two"}
    assert find_entry(owner, keyed.id, now=NOW).value == 2


def test_a_thousand_entries_take_as_many_statements_as_ten(
    owner: Owner, context: PersistentContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for count in (10, 1_000):
        # two of the savepoint; the context; rows, children, agent, audit; versions; access log; for many, plans once
        with django_assert_num_queries(8 + (count >= MIN_ROWS_TO_PLAN_ONCE)):
            keep(owner, context, *(entry(f"{count}: {number}") for number in range(count)))


@pytest.mark.slow
def test_a_thousand_edits_take_as_many_statements_as_ten(
    owner: Owner, context: PersistentContext, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for count in (10, 1_000):
        keep(owner, context, *(entry("old", key=f"{count}: {number}") for number in range(count)))

        # two of the savepoint; the context, its entries; rows, vectors, values; versions before and after; log, audit
        with django_assert_num_queries(11):
            keep(owner, context, *(entry("new", key=f"{count}: {number}") for number in range(count)))
