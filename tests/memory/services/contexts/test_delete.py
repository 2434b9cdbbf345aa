"""Tests of deleting a context for good."""

import pytest

from memory.errors import Forbidden, NotFound
from memory.models import (
    ContextAccessLog,
    ContextEntry,
    ContextEntryVersion,
    ContextSnapshot,
    Memory,
    PersistentContext,
    SnapshotEntry,
    Vector,
)
from memory.models.access import AccessControl
from memory.owner import Owner
from memory.services.contexts import manage
from memory.services.contexts.manage import delete_context
from tests.memory.contexts import context_of, entry, keep, rewrite
from tests.memory.episodes import NOW, draft, store

pytestmark = pytest.mark.django_db

EVERYTHING = (
    PersistentContext, ContextEntry, ContextEntryVersion, ContextSnapshot, SnapshotEntry, ContextAccessLog, Vector,
)  # fmt: skip


def test_deleting_a_context_deletes_all_of_it_and_nothing_else(owner: Owner) -> None:
    context = context_of(owner)
    (row,) = keep(owner, context, entry("secret", angle=0.1))
    rewrite(owner, row, "more of it")
    snapshot = ContextSnapshot.objects.create(account_id=owner.account_id, context=context)
    SnapshotEntry.objects.create(
        account_id=owner.account_id, snapshot=snapshot, entry=row, number=1, importance=0.5, confidence=1
    )
    store(owner, draft("an episode"))

    assert delete_context(owner, context.id) == 1

    assert [model.__name__ for model in EVERYTHING if model._default_manager.exists()] == []
    assert Memory.objects.get().text == "an episode"


def test_an_interrupted_deletion_can_be_continued(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    context = context_of(owner)
    keep(owner, context, *[entry(f"entry {number}") for number in range(5)])
    monkeypatch.setattr(manage, "ROWS_PER_TRANSACTION", 2)

    assert delete_context(owner, context.id) == 5

    assert not PersistentContext.objects.exists()


def test_only_a_manager_may_delete_a_context(owner: Owner) -> None:
    colleague = Owner(account_id=owner.account_id, agent_id="colleague")
    granted = AccessControl(write=["colleague"])
    context = context_of(owner, access_control=granted)
    keep(owner, context, entry("kept"))

    with pytest.raises(Forbidden):
        delete_context(colleague, context.id)
    with pytest.raises(NotFound):
        delete_context(Owner(account_id=owner.account_id, agent_id="nobody"), context.id)

    assert ContextEntry.objects.filter(archived=False, context__archived=False).exists()
    assert keep(owner, context, entry("more"), now=NOW)
