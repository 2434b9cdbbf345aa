"""Tests of snapshots of contexts: taking, previewing and exactly restoring them, while all history stays."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.errors import NotFound
from memory.models import (
    AuditEntry,
    ContextAccessLog,
    ContextEntry,
    ContextEntryVersion,
    Memory,
    PersistentContext,
    SnapshotEntry,
    Vector,
)
from memory.owner import Owner
from memory.services.contexts.access_log import Action
from memory.services.contexts.entries import EntryDraft, boost_importance, remove_entry, store_entries
from memory.services.contexts.snapshots import (
    RestoreCounts,
    create_snapshot,
    find_snapshot,
    list_snapshots,
    preview_restore,
    texts_to_restore,
)
from memory.services.contexts.versions import delete_old_versions
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from tests.memory.contexts import (
    LATER,
    context_of,
    drop_snapshot,
    entry,
    held,
    keep,
    restore_entries,
    rewrite,
    take_snapshot,
)
from tests.memory.episodes import MODEL, NOTHING, NOW, WIDTH, direction

pytestmark = pytest.mark.django_db


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


@pytest.fixture
def staff(owner: Owner) -> Owner:
    return Owner(account_id=owner.account_id, actor="staff:ana")


def test_a_snapshot_stores_its_author_and_entry_count(owner: Owner, context: PersistentContext) -> None:
    keep(owner, context, entry("one"), entry("two"))

    snapshot = create_snapshot(owner, context.id, name="friday", now=NOW)

    assert (snapshot.name, snapshot.agent_id, snapshot.entry_count) == ("friday", "assistant", 2)
    assert list(list_snapshots(owner, context.id)) == [find_snapshot(owner, context.id, snapshot.id)]
    assert AuditEntry.objects.filter(operation="snapshot", result_count=2).count() == 1


def test_edits_creations_and_removals_since_are_undone(owner: Owner, context: PersistentContext) -> None:
    edited, removed, same = keep(owner, context, entry("before"), entry("leaves"), entry("stays"))
    snapshot_id, before = take_snapshot(owner, context), held(context)
    rewrite(owner, edited, "after")
    remove_entry(owner, removed.id, now=NOW)
    keep(owner, context, entry("new"))

    restored = restore_entries(owner, context, snapshot_id)

    assert held(context) == before
    assert restored == RestoreCounts(changed=1, returned=1, removed=1, unchanged=1, missing=0)
    assert same.version == ContextEntry.objects.get(pk=same.id).version


def test_content_comes_back_as_a_new_version_after_the_latest(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("first"))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, row, "second")

    restore_entries(owner, context, snapshot_id, editor="ana")

    first, second, third = ContextEntryVersion.objects.filter(entry_id=row.id).order_by("number")
    assert (third.number, third.content, third.editor, third.restored_from) == (3, "first", "ana", first.number)
    assert (third.previous_version_id, third.created_at) == (second.id, LATER)
    row.refresh_from_db()
    assert (row.content_version, row.version, row.updated_at) == (3, 3, LATER)


def test_a_value_is_restored_exactly(owner: Owner, context: PersistentContext) -> None:
    value = {"b": 1.0, "a": [None, "1", 10**30]}
    draft = EntryDraft(key="k", value=value)
    keep(owner, context, draft)
    snapshot_id = take_snapshot(owner, context)
    keep(owner, context, EntryDraft(key="k", value=None))

    restore_entries(owner, context, snapshot_id)

    row = ContextEntry.objects.get()
    assert json.dumps(row.value) == json.dumps(value)
    assert row.text == draft.text


def test_weights_are_restored_without_a_new_version(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("steady", importance=0.3))
    snapshot_id, before = take_snapshot(owner, context), held(context)
    boost_importance(owner, row.id, by=0.4, now=NOW)

    restored = restore_entries(owner, context, snapshot_id)

    assert held(context) == before
    assert (restored.changed, ContextEntryVersion.objects.count()) == (1, 1)


def test_a_second_restore_changes_nothing(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, EntryDraft(content="first", value=[1]))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, row, "second")
    restore_entries(owner, context, snapshot_id)
    before = (held(context), ContextAccessLog.objects.count(), ContextEntryVersion.objects.count())

    again = restore_entries(owner, context, snapshot_id)

    assert again == RestoreCounts(changed=0, returned=0, removed=0, unchanged=1, missing=0)
    assert (held(context), ContextAccessLog.objects.count(), ContextEntryVersion.objects.count()) == before


def test_an_older_snapshot_is_restored_after_a_newer_one(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("old"))
    older, then = take_snapshot(owner, context), held(context)
    rewrite(owner, row, "new")
    keep(owner, context, entry("more"))
    newer, since = take_snapshot(owner, context), held(context)

    for snapshot_id, expected in ((newer, since), (older, then), (newer, since)):
        restore_entries(owner, context, snapshot_id)
        assert held(context) == expected


def test_the_preview_matches_the_restore(owner: Owner, context: PersistentContext) -> None:
    edited, removed, _same = keep(owner, context, entry("before", key="k"), entry("leaves"), entry("stays"))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, edited, "after")
    remove_entry(owner, removed.id, now=NOW)
    (new,) = keep(owner, context, entry("new", key="new"))

    preview = preview_restore(owner, context.id, snapshot_id, now=LATER)

    (changed,), (returned,), (gone,) = preview.changed, preview.returned, preview.removed
    assert (changed.entry_id, changed.key, changed.from_version, changed.to_version) == (edited.id, "k", 2, 1)
    assert (changed.is_reworded, changed.is_reweighed) == (True, False)
    assert (returned.entry_id, gone.entry_id, gone.to_version) == (removed.id, new.id, None)
    assert gone.is_reworded is False
    assert (preview.unchanged, preview.missing) == (1, 0)


def test_entries_that_staff_deleted_or_that_expired_count_as_missing(
    owner: Owner, staff: Owner, context: PersistentContext
) -> None:
    deleted, expired, kept = keep(owner, context, entry("gone"), entry("over"), entry("here"))
    snapshot_id = take_snapshot(owner, context)
    delete_memories(staff, [deleted.id], now=NOW)
    Memory.objects.filter(id=expired.id).update(expires_at=NOW)

    assert preview_restore(owner, context.id, snapshot_id, now=LATER).missing == 2
    assert restore_entries(owner, context, snapshot_id) == RestoreCounts(
        changed=0, returned=0, removed=0, unchanged=1, missing=2
    )
    assert ContextEntry.objects.filter(id=kept.id, archived=False).exists()


def test_a_deleted_version_is_not_restored(owner: Owner, staff: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("secret"))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, row, "harmless")
    delete_old_versions(staff, row.id)

    restored = restore_entries(owner, context, snapshot_id)

    assert (restored.removed, restored.missing) == (1, 1)
    assert held(context) == set()
    assert not ContextEntryVersion.objects.filter(content="secret").exists()


def test_a_restore_does_not_end_quarantine(owner: Owner, staff: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("before"))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, row, "poison")
    mark_memories(staff, [row.id], mark="quarantine", now=NOW)

    restore_entries(owner, context, snapshot_id)

    row.refresh_from_db()
    assert (row.text, row.quarantined) == ("before", True)


def test_previews_omit_quarantined_entries(owner: Owner, staff: Owner, context: PersistentContext) -> None:
    edited, archived = keep(owner, context, entry("before", key="k"), entry("kept", key="l"))
    snapshot_id = take_snapshot(owner, context)
    (new,) = keep(owner, context, entry("new"))
    rewrite(owner, edited, "poison")
    remove_entry(owner, archived.id, now=NOW)
    mark_memories(staff, [edited.id, archived.id, new.id], mark="quarantine", now=NOW)

    preview = preview_restore(owner, context.id, snapshot_id, now=LATER)

    assert (preview.changed, preview.returned, preview.removed, preview.missing) == ([], [], [], 2)
    assert restore_entries(owner, context, snapshot_id) == RestoreCounts(
        changed=0, returned=0, removed=0, unchanged=0, missing=2
    )


def test_types_source_and_metadata_come_back(owner: Owner, staff: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("steady", entry_type="plan", metadata={"a": 1.0}))
    snapshot_id, before = take_snapshot(owner, context), held(context)
    changes = {"entry_type": "fact", "memory_type": "working", "source": "staff", "metadata": {"a": 1}}
    correct_memory(staff, row.id, changes=changes, version=1, now=NOW)

    restored = restore_entries(owner, context, snapshot_id)

    assert held(context) == before
    assert (restored.changed, ContextEntryVersion.objects.count()) == (1, 1)


def test_a_snapshot_without_attributes_leaves_them_alone(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("before", entry_type="plan", metadata={"a": 1}))
    snapshot_id, before = take_snapshot(owner, context), held(context)
    SnapshotEntry.objects.update(attributes={})
    rewrite(owner, row, "after")

    restore_entries(owner, context, snapshot_id)

    assert held(context) == before


def test_corrections_and_archiving_by_staff_are_undone(owner: Owner, staff: Owner, context: PersistentContext) -> None:
    corrected, archived = keep(owner, context, entry("before"), entry("kept"))
    snapshot_id, before = take_snapshot(owner, context), held(context)
    correct_memory(staff, corrected.id, changes={"text": "after", "confidence": 0.1}, version=1, now=NOW)
    mark_memories(staff, [archived.id], mark="archive", now=NOW)

    restore_entries(owner, context, snapshot_id)

    assert held(context) == before


def test_restored_content_waits_for_its_vector(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("before", angle=0.1))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, row, "after")

    restore_entries(owner, context, snapshot_id)

    row.refresh_from_db()
    assert (row.text, row.embed_after) == ("before", LATER)
    assert not Vector.objects.filter(memory_id=row.id).exists()


def test_content_embedded_beforehand_is_found_immediately(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("before"))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, row, "after")
    (text,) = texts_to_restore(owner, context.id, snapshot_id, now=LATER)

    embedded = EmbeddedTexts(model=MODEL, width=WIDTH, vectors={text: direction(0.2)})
    restore_entries(owner, context, snapshot_id, embedded=embedded)

    row.refresh_from_db()
    assert (text, row.embed_after) == ("before", None)
    assert Vector.objects.get(memory_id=row.id).live


def test_an_entry_that_comes_back_keeps_its_vector(owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("leaves", angle=0.1))
    snapshot_id = take_snapshot(owner, context)
    remove_entry(owner, row.id, now=NOW)

    restore_entries(owner, context, snapshot_id)

    assert Vector.objects.get(memory_id=row.id).live
    assert ContextEntryVersion.objects.filter(entry_id=row.id).count() == 1


def test_a_restore_is_logged_entry_by_entry_and_audited_once(owner: Owner, context: PersistentContext) -> None:
    (edited,) = keep(owner, context, entry("before"))
    snapshot_id = take_snapshot(owner, context)
    rewrite(owner, edited, "after")
    (new,) = keep(owner, context, entry("new"))

    restore_entries(owner, context, snapshot_id)

    logged = ContextAccessLog.objects.filter(accessed_at=LATER).values_list("entry_id", "action", "agent_id")
    assert set(logged) == {(edited.id, Action.RESTORE, "assistant"), (new.id, Action.ARCHIVE, "assistant")}
    (audited,) = AuditEntry.objects.filter(operation="restore")
    assert (audited.affected_ids, audited.result_count) == ([str(context.id), str(snapshot_id)], 2)


@pytest.mark.parametrize("count", [10, 300])
def test_a_restore_takes_as_many_statements_whatever_it_restores(
    owner: Owner, context: PersistentContext, count: int
) -> None:
    rows = keep(owner, context, *(entry(f"entry {number}", key=f"k{number}") for number in range(count)))
    snapshot_id = take_snapshot(owner, context)
    drafts = [EntryDraft(key=row.key, value=f"edited {row.key}") for row in rows[: count // 2]]
    store_entries(owner, context.id, drafts=drafts, embedded=NOTHING, now=NOW)
    Memory.objects.filter(id__in=[row.id for row in rows[-count // 4 :]]).update(archived=True)
    keep(owner, context, *(entry(f"new {number}") for number in range(count // 4)))

    with CaptureQueriesContext(connection) as statements:
        restored = restore_entries(owner, context, snapshot_id)

    assert (restored.changed, restored.removed) == (count // 2, count // 4)
    # the savepoint of the test among them
    assert len(statements) == 16


def test_a_snapshot_is_deleted_and_the_entries_stay(owner: Owner, context: PersistentContext) -> None:
    keep(owner, context, entry("stays"))
    snapshot_id = take_snapshot(owner, context)

    drop_snapshot(owner, context, snapshot_id)

    with pytest.raises(NotFound):
        find_snapshot(owner, context.id, snapshot_id)
    assert len(held(context)) == 1
