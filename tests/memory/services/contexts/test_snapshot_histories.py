"""Tests that a restore brings a snapshot back after random histories, kills and concurrent writers."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from memory.models import ContextEntry, ContextEntryVersion, PersistentContext, SnapshotEntry
from memory.models.statements import execute_statement
from memory.owner import Owner
from memory.services.contexts.entries import (
    EntryDraft,
    EntryEdit,
    boost_importance,
    reduce_importance,
    remove_entry,
    update_entry_content,
)
from memory.services.contexts.snapshots import (
    RestoreCounts,
)
from memory.services.memories.correct import correct_memory, lock_memories, mark_memories
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.contexts import (
    context_of,
    drop_snapshot,
    entry,
    held,
    keep,
    restore_entries,
    rewrite,
    take_snapshot,
)
from tests.memory.episodes import NOTHING, NOW
from tests.memory.maintenance.workers import environment
from tests.properties import examples

RESTORE_AND_DIE = """
import os, signal, sys, uuid, django
from django.db import connection
django.setup()
from django.utils import timezone
from memory.owner import Owner
from memory.services.contexts.snapshots import restore_snapshot

account_id, context_id, snapshot_id = map(uuid.UUID, sys.argv[1:4])

def die_before(execute, sql, *rest):
    if sys.argv[4] in sql:
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(sql, *rest)

with connection.execute_wrapper(die_before):
    restore_snapshot(Owner(account_id=account_id), context_id, snapshot_id, now=timezone.now())
"""

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
jsons = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=4,
)
contents = words.filter(str.strip)
attributes = {
    "entry_type": st.sampled_from(ContextEntry.EntryType.values),
    "source_type": st.sampled_from(ContextEntry.SourceType.values),
    "memory_type": st.sampled_from(ContextEntry.MemoryType.values),
    "source": st.sampled_from(("agent", "upload")),
    "metadata": st.dictionaries(words, st.sampled_from((1, 1.0, "1", None)), max_size=2),
}
drafted = st.fixed_dictionaries({}, optional=attributes)
which = st.integers(0, 9)
acts = st.one_of(
    st.tuples(st.just("create"), contents, jsons),
    st.tuples(st.just("put"), st.sampled_from("ab"), jsons, drafted),
    st.tuples(st.just("edit"), which, contents, jsons),
    st.tuples(st.sampled_from(["boost", "reduce"]), which, st.floats(0, 1)),
    st.tuples(st.sampled_from(["remove", "archive", "unarchive"]), which),
    st.tuples(st.just("correct"), which, contents, drafted),
)
histories = st.lists(acts, max_size=12)


def perform(owner: Owner, context: PersistentContext, act: tuple[Any, ...]) -> None:
    """Do what agents and staff do to a context, or nothing if the entry does not exist."""
    name, *details = act
    if name == "create":
        keep(owner, context, EntryDraft(content=details[0], value=details[1]))
    elif name == "put":
        keep(owner, context, EntryDraft(key=details[0], value=details[1], **details[2]))
    else:
        rows = list(ContextEntry.objects.filter(context_id=context.id).order_by("id"))
        if rows:
            change(owner, rows[details[0] % len(rows)], name, *details[1:])


def change(owner: Owner, row: ContextEntry, name: str, *details: Any) -> None:
    staff = Owner(account_id=owner.account_id, actor="staff:ana")
    if name in ("archive", "unarchive"):
        mark_memories(staff, [row.id], mark=name, now=NOW)
    elif name == "correct":
        changes = {"text": details[0], **details[1]}
        correct_memory(staff, row.id, changes=changes, version=row.version, now=NOW)
    elif not row.archived:
        change_as_agent(owner, row.id, name, *details)


def change_as_agent(owner: Owner, entry_id: UUID, name: str, *details: Any) -> None:
    if name == "edit":
        edit = EntryEdit(content=details[0], value=details[1])
        update_entry_content(owner, entry_id, edit=edit, embedded=NOTHING, now=NOW)
    elif name == "boost":
        boost_importance(owner, entry_id, by=details[0], now=NOW)
    elif name == "reduce":
        reduce_importance(owner, entry_id, by=details[0], now=NOW)
    else:
        remove_entry(owner, entry_id, now=NOW)


def history(context: PersistentContext) -> set[tuple[Any, ...]]:
    rows = ContextEntryVersion.objects.filter(entry__context_id=context.id)
    return {(row.entry_id, row.number, row.content, json.dumps(row.value), row.previous_version_id) for row in rows}


@pytest.mark.slow
@pytest.mark.django_db
@examples(30)
@given(before=histories, between=histories, after=histories)
def test_a_restore_equals_the_snapshot_after_any_history(owner: Owner, before: Any, between: Any, after: Any) -> None:
    context, taken = context_of(owner, str(uuid4())), list[tuple[UUID, set[Any]]]()
    for acts_of_a_time in (before, between):
        for act in acts_of_a_time:
            perform(owner, context, act)
        taken.append((take_snapshot(owner, context), held(context)))
    for act in after:
        perform(owner, context, act)

    for snapshot_id, expected in (*reversed(taken), taken[1]):
        known = history(context)
        restore_entries(owner, context, snapshot_id)
        again = restore_entries(owner, context, snapshot_id)

        assert held(context) == expected
        assert known <= history(context)
        assert again == RestoreCounts(changed=0, returned=0, removed=0, unchanged=len(expected), missing=0)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", ['DELETE FROM "memory_vectors"', 'INTO "context_access_logs"'])
def test_a_restore_killed_in_the_middle_changes_nothing(owner: Owner, statement: str) -> None:
    context = context_of(owner)
    edited, removed = keep(owner, context, entry("before"), entry("leaves"))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, edited, "after")
    remove_entry(owner, removed.id, now=NOW)
    as_it_was = (held(context), history(context))

    ids = [str(owner.account_id), str(context.id), str(snapshot_id)]
    command = [sys.executable, "-c", RESTORE_AND_DIE, *ids, statement]
    killed = subprocess.run(command, env=environment(), check=False, timeout=200)

    assert killed.returncode == -9
    assert (held(context), history(context)) == as_it_was
    assert restore_entries(owner, context, snapshot_id).changed == 1


@pytest.mark.django_db(transaction=True)
def test_a_restore_waits_for_an_edit_and_undoes_it(owner: Owner, start_concurrently: Start) -> None:
    context = context_of(owner)
    (row,) = keep(owner, context, entry("before"))
    snapshot_id = take_snapshot(owner, context)

    with transaction.atomic():
        rewrite(owner, row, "after")
        restored = start_concurrently(lambda: restore_entries(owner, context, snapshot_id))

    assert restored.result(PATIENCE_SECONDS) == RestoreCounts(changed=1, returned=0, removed=0, unchanged=0, missing=0)
    assert [number for _, number, *_ in sorted(history(context), key=str)] == [1, 2, 3]


@pytest.mark.django_db(transaction=True)
def test_an_edit_waits_for_a_restore_and_is_the_next_version(owner: Owner, start_concurrently: Start) -> None:
    context = context_of(owner)
    (row,) = keep(owner, context, entry("before"))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, row, "after")

    with transaction.atomic():
        restore_entries(owner, context, snapshot_id)
        edited = start_concurrently(lambda: rewrite(owner, row, "later"))
    edited.result(PATIENCE_SECONDS)

    contents = ContextEntryVersion.objects.order_by("number").values_list("content", flat=True)
    assert list(contents) == ["before", "after", "before", "later"]


@pytest.mark.django_db(transaction=True)
def test_a_correction_by_staff_waits_for_a_restore(owner: Owner, start_concurrently: Start) -> None:
    context = context_of(owner)
    (row,) = keep(owner, context, entry("before"))
    snapshot_id = take_snapshot(owner, context)
    staff = Owner(account_id=owner.account_id, actor="staff:ana")

    with transaction.atomic():
        restore_entries(owner, context, snapshot_id)
        changes = {"text": "corrected"}
        corrected = start_concurrently(lambda: correct_memory(staff, row.id, changes=changes, version=1, now=NOW))
    corrected.result(PATIENCE_SECONDS)

    assert {text for _, text, *_ in held(context)} == {"corrected"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["take", "delete"])
def test_snapshots_lock_entries_in_the_common_order_of_memories(
    owner: Owner, start_concurrently: Start, name: str
) -> None:
    context = context_of(owner)
    first, second = sorted(keep(owner, context, entry("one"), entry("two")), key=lambda row: row.id)
    # rewritten, it comes after the other in the table, which is small enough to be read in that order
    boost_importance(owner, first.id, by=0.1, now=NOW)
    execute_statement("ANALYZE memories", [])
    acts: dict[str, Callable[[], object]] = {
        "take": partial(take_snapshot, owner, context),
        "delete": partial(drop_snapshot, owner, context, take_snapshot(owner, context)),
    }

    with transaction.atomic():
        lock_memories(owner, [first.id])
        waiting = start_concurrently(acts[name])
        lock_memories(owner, [second.id])
        SnapshotEntry.objects.filter(entry_id__in=(first.id, second.id)).order_by("entry_id").delete()
    waiting.result(PATIENCE_SECONDS)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["boost", "restore"])
def test_a_restore_waits_for_a_correction_that_has_begun(owner: Owner, start_concurrently: Start, name: str) -> None:
    context = context_of(owner)
    (row,) = keep(owner, context, entry("before", importance=0.25))
    snapshot_id = take_snapshot(owner, context)
    rivals = {
        "boost": lambda: boost_importance(owner, row.id, by=0.25, now=NOW),
        "restore": lambda: restore_entries(owner, context, snapshot_id),
    }

    with transaction.atomic():
        lock_memories(owner, [row.id])
        waiting = start_concurrently(rivals[name])
        correct_memory(owner, row.id, changes={"text": "corrected", "confidence": 0.5}, version=1, now=NOW)
    waiting.result(PATIENCE_SECONDS)

    expected = {"boost": ("corrected", 0.5, 0.5), "restore": ("before", 1.0, 0.25)}
    ((_id, text, _value, importance, confidence, _attributes),) = held(context)
    assert (text, confidence, importance) == expected[name]
