"""Corrections of memories: columns derived from a text are derived again, and every write is audited."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from memory.errors import NotFound, StaleVersion, Unprocessable
from memory.models import Account, AuditEntry, EpisodicMemory, Link, Memory, Vector
from memory.owner import Owner
from memory.services.embedding.embed import content_hash
from memory.services.memories.correct import MARKS, correct_memory, delete_memories, mark_memories, queue_for_embedding
from tests.memory.episodes import MODEL, NOW, draft, store

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def staff(account: Account) -> Owner:
    return Owner(account_id=account.id, actor="staff:chief")


@pytest.fixture
def episode(owner: Owner) -> EpisodicMemory:
    (row,) = store(owner, draft("The pump was bought in March.", angle=0.0))
    return row


def correct(staff: Owner, episode: EpisodicMemory, **changes: Any) -> Memory:
    version = Memory.objects.values_list("version", flat=True).get(id=episode.id)
    correct_memory(staff, episode.id, changes=changes, version=version, now=LATER)
    return Memory.objects.get(id=episode.id)


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def test_a_corrected_text_is_hashed_counted_and_queued_again(staff: Owner, episode: EpisodicMemory) -> None:
    row = correct(staff, episode, text="It was bought in April.")

    assert row.content_hash == content_hash("It was bought in April.")
    assert (row.version, row.updated_at, row.embed_after) == (2, LATER, LATER)
    assert row.token_count != episode.token_count
    assert not Vector.objects.filter(memory_id=row.id).exists()


def test_other_corrections_keep_the_vector(staff: Owner, episode: EpisodicMemory) -> None:
    row = correct(staff, episode, salience=0.9, key_decisions=["buy a pump"])

    assert (row.salience, row.version) == (0.9, 2)
    assert EpisodicMemory.objects.get(id=row.id).key_decisions == ["buy a pump"]
    assert Vector.objects.filter(memory_id=row.id).exists()


def test_the_audit_entry_of_a_correction_has_columns_and_actor_but_no_text(
    staff: Owner, episode: EpisodicMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.conf.AUDIT_LEVEL", "verbose")

    correct(staff, episode, text="It was bought in April.")

    entry = last_entry()
    assert (entry.actor, entry.operation, entry.memory_type) == ("staff:chief", "update", "episodic")
    assert entry.affected_ids == [str(episode.id)]
    assert entry.metadata == {"columns": ["text"]}


def test_a_correction_of_an_older_version_is_refused(staff: Owner, episode: EpisodicMemory) -> None:
    correct(staff, episode, salience=0.9)

    with pytest.raises(StaleVersion):
        correct_memory(staff, episode.id, changes={"salience": 0.1}, version=1, now=LATER)

    assert Memory.objects.get(id=episode.id).salience == 0.9


@pytest.mark.parametrize("changes", [{"text": " \n"}, {"account_id": uuid4()}, {"kind": "fact"}, {"agent_id": "x"}])
def test_a_column_that_may_not_be_corrected_is_refused_and_nothing_changes(
    staff: Owner, episode: EpisodicMemory, changes: dict[str, Any]
) -> None:
    with pytest.raises(Unprocessable):
        correct(staff, episode, **changes)

    assert Memory.objects.get(id=episode.id).version == 1


@pytest.mark.parametrize("mark", MARKS)
def test_marks_change_only_unmarked_rows(staff: Owner, episode: EpisodicMemory, mark: str) -> None:
    undo = {"unarchive": "archive", "release": "quarantine", "unpin": "pin", "unbury": "bury"}
    if mark in undo:
        mark_memories(staff, [episode.id], mark=undo[mark], now=LATER)

    changed = [mark_memories(staff, [episode.id], mark=mark, now=LATER) for _ in range(2)]

    assert changed == [1, 0]
    assert last_entry().operation == mark


def test_quarantine_takes_the_vector_out_of_searches(staff: Owner, episode: EpisodicMemory) -> None:
    mark_memories(staff, [episode.id], mark="quarantine", now=LATER)

    assert not Vector.objects.get(memory_id=episode.id).live


def test_embedding_again_queues_the_row_and_keeps_the_clients_own_vector(staff: Owner, episode: EpisodicMemory) -> None:
    queued = queue_for_embedding(staff, [episode.id], now=LATER)

    assert queued == 1
    assert Memory.objects.get(id=episode.id).embed_after == LATER
    assert Vector.objects.get().model == MODEL


def test_deleting_removes_row_child_vector_and_links_and_audits_the_ids(
    staff: Owner, owner: Owner, episode: EpisodicMemory
) -> None:
    (other,) = store(owner, draft("another", angle=0.2))
    Link.objects.create(account_id=owner.account_id, source_id=episode.id, target_id=other.id, type="ABOUT")

    deleted = delete_memories(staff, [episode.id], now=NOW)

    assert deleted == 1
    assert [row.id for row in EpisodicMemory.objects.all()] == [other.id]
    assert [vector.memory_id for vector in Vector.objects.all()] == [other.id]
    assert not Link.objects.exists()
    assert last_entry().affected_ids == [str(episode.id)]


def test_corrections_do_not_reach_another_account(stranger: Account, episode: EpisodicMemory) -> None:
    other = Owner(account_id=stranger.id, actor="staff:chief")

    assert mark_memories(other, [episode.id], mark="archive", now=LATER) == 0
    assert queue_for_embedding(other, [episode.id], now=LATER) == 0
    assert delete_memories(other, [episode.id], now=NOW) == 0
    with pytest.raises(NotFound):
        correct_memory(other, episode.id, changes={"salience": 0.1}, version=1, now=LATER)
