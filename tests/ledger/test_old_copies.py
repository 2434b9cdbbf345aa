"""A Redis that is restored from an old copy gets the marks back that it lacks."""

import pytest
from django.db import transaction

from ledger import store
from ledger.journal import (
    JournalStep,
    flush_journal,
    has_every_ledger,
    restore_all_ledgers,
)
from memory_project.redis import ConversationRef
from tests.ledger.test_restoring import committing, elsewhere, keep_copy, kept, restore_copy


@pytest.fixture
def reverted(conversation: ConversationRef, kept: None) -> ConversationRef:
    """A conversation whose Redis was replaced by a copy made before its last two changes."""
    store.mark(conversation, "old", "1")
    flush_journal(100)
    keep_copy()
    store.mark(conversation, "new", "2")
    store.evict(conversation, "old")
    flush_journal(100)
    restore_copy()
    return conversation


@committing
def test_a_redis_restored_from_an_old_copy_gets_its_missing_changes_back(reverted: ConversationRef) -> None:
    assert store.get_all(reverted) == {"old": "1"}

    restore_all_ledgers()

    assert store.get_all(reverted) == {"new": "2"}
    assert has_every_ledger()
    assert restore_all_ledgers() == JournalStep(examined=0, changed=0)


@committing
def test_an_old_copy_of_redis_is_detected_despite_newer_marks(reverted: ConversationRef) -> None:
    store.mark(elsewhere(reverted), "since")

    restore_all_ledgers()

    assert store.get_all(reverted) == {"new": "2"}
    assert store.get_all(elsewhere(reverted)) == {"since": "injected"}


@committing
def test_a_flush_does_not_hide_the_gap_of_an_old_copy(reverted: ConversationRef) -> None:
    store.mark(elsewhere(reverted), "since")

    flush_journal(100)

    assert store.get_all(reverted) == {"new": "2"}


@committing
@kept
def test_an_old_copy_restored_during_a_flush_is_detected_afterwards(conversation: ConversationRef) -> None:
    keep_copy()
    store.mark(conversation, "new")
    with transaction.atomic():
        flush_journal(100)
        restore_copy()
    store.mark(elsewhere(conversation), "since")

    restore_all_ledgers()

    assert store.get_all(conversation) == {"new": "injected"}


@committing
@kept
def test_an_old_copy_that_lacks_nothing_is_left_alone(conversation: ConversationRef) -> None:
    store.mark(conversation, "new")
    keep_copy()
    flush_journal(100)
    restore_copy()

    assert restore_all_ledgers() == JournalStep(examined=0, changed=0)
    assert store.get_all(conversation) == {"new": "injected"}
