"""Tests of who may create, read, restore and delete snapshots of contexts."""

from uuid import uuid4

import pytest

from memory.errors import Conflict, Forbidden, NotFound
from memory.models import AccessControl, Account, PersistentContext
from memory.owner import Owner
from memory.services.contexts.manage import archive_context
from memory.services.contexts.snapshots import find_snapshot, list_snapshots, preview_restore
from tests.memory.contexts import context_of, drop_snapshot, restore_entries, take_snapshot
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


def test_an_archived_context_is_read_only(owner: Owner, context: PersistentContext) -> None:
    snapshot_id = take_snapshot(owner, context)
    archive_context(owner, context.id, expected=None, now=NOW)

    for change in (
        take_snapshot,
        lambda *_: restore_entries(owner, context, snapshot_id),
        lambda *_: drop_snapshot(owner, context, snapshot_id),
    ):
        with pytest.raises(Conflict):
            change(owner, context)

    assert preview_restore(owner, context.id, snapshot_id, now=NOW).unchanged == 0


def test_a_snapshot_of_another_context_is_not_found(owner: Owner, context: PersistentContext) -> None:
    snapshot_id = take_snapshot(owner, context_of(owner, "other"))

    for act in (restore_entries, drop_snapshot):
        with pytest.raises(NotFound):
            act(owner, context, snapshot_id)
    with pytest.raises(NotFound):
        preview_restore(owner, context.id, snapshot_id, now=NOW)


def test_a_reader_sees_snapshots_but_cannot_create_one(owner: Owner) -> None:
    context = context_of(owner, access_control=AccessControl.parse({"read": ["reader"], "write": ["writer"]}))
    reader, snapshot_id = Owner(account_id=owner.account_id, agent_id="reader"), take_snapshot(owner, context)

    assert preview_restore(reader, context.id, snapshot_id, now=NOW).missing == 0
    for act in (lambda: take_snapshot(reader, context), lambda: restore_entries(reader, context, snapshot_id)):
        with pytest.raises(Forbidden):
            act()


def test_a_writer_restores_but_only_a_manager_deletes(owner: Owner) -> None:
    context = context_of(owner, access_control=AccessControl.parse({"write": ["writer"]}))
    writer = Owner(account_id=owner.account_id, agent_id="writer")

    snapshot_id = take_snapshot(writer, context)
    restore_entries(writer, context, snapshot_id)
    with pytest.raises(Forbidden):
        drop_snapshot(writer, context, snapshot_id)

    drop_snapshot(owner, context, snapshot_id)


def test_strangers_find_no_snapshots(owner: Owner, context: PersistentContext, stranger: Account) -> None:
    snapshot_id = take_snapshot(owner, context)

    for other in (Owner(account_id=stranger.id), Owner(account_id=owner.account_id, agent_id="other")):
        for act in (restore_entries, drop_snapshot):
            with pytest.raises(NotFound):
                act(other, context, snapshot_id)
        with pytest.raises(NotFound):
            list_snapshots(other, context.id)
    with pytest.raises(NotFound):
        find_snapshot(owner, uuid4(), snapshot_id)
