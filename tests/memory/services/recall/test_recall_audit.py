"""Tests for what a recall leaves behind: counted reads, and an audit entry where the level keeps reads."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import conf
from memory.models import Account, AuditEntry, Kind, Memory
from memory.owner import Owner
from memory.retrieval.candidates import Bundle
from memory.retrieval.queries import Query
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, conclude_recall, recall
from tests.memory.audits import written_read, written_reads
from tests.memory.episodes import MODEL, NOW, direction
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

QUESTION = "where is the archive"


@pytest.fixture
def atlas(owner: Owner) -> Owner:
    """Return the owner in a channel, with knowledge there and in `_global`."""
    own = replace(owner, channel="atlas")
    know(owner, "The archive is in Berlin.", angle=0.1)
    know(own, "The archive is in room 12.", angle=0.2)
    return own


def run_recall(owner: Owner, **fields: Any) -> tuple[RecallRequest, Bundle]:
    own = ClientVector(model=MODEL, vector=direction(0))
    request = RecallRequest(query=Query(text=QUESTION, **fields), own=own)
    return request, recall(owner, request, now=NOW)


def count_concluding_statements(owner: Owner, **fields: Any) -> int:
    """Recall and conclude; return the number of statements that concluding took."""
    request, bundle = run_recall(owner, **fields)
    with CaptureQueriesContext(connection) as captured:
        conclude_recall(owner, request, bundle, now=NOW)
    return len(captured)


@pytest.mark.parametrize(
    ("level", "questions"),
    [("off", []), ("writes", []), ("reads", [QUESTION]), ("verbose", [QUESTION])],
)
def test_reads_are_logged_at_the_levels_reads_and_verbose(
    atlas: Owner, monkeypatch: pytest.MonkeyPatch, level: str, questions: list[str]
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", level)

    assert count_concluding_statements(atlas) == 1
    assert [entry.query_text for entry in written_reads()] == questions
    assert [row.access_count for row in Memory.objects.all()] == [1, 1]


def test_an_entry_names_the_channels_that_memories_came_from(atlas: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")

    count_concluding_statements(atlas, conversation_id="c1")

    entry = written_read()
    assert (entry.source_channel, entry.target_channels) == ("atlas", ["_global", "atlas"])
    assert (entry.result_count, entry.conversation_id, entry.memory_type) == (2, "c1", "all")
    assert entry.cross_channel_count == 1
    assert set(entry.affected_ids) == {str(row.id) for row in Memory.objects.all()}


def test_no_entry_holds_a_word_of_the_memories(atlas: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "verbose")

    count_concluding_statements(atlas)

    entry = AuditEntry.objects.filter(id=written_read().id).values().get()
    assert "Berlin" not in str(entry)
    assert "room 12" not in str(entry)


def test_a_recall_without_results_is_logged_and_counts_nothing(
    stranger: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")

    assert count_concluding_statements(Owner(account_id=stranger.id, agent_id="assistant")) == 0

    entry = written_read()
    assert (entry.result_count, entry.target_channels, entry.affected_ids) == (0, [], [])


def test_recalling_alone_writes_nothing(atlas: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "verbose")
    before = AuditEntry.objects.count()

    run_recall(atlas)

    assert AuditEntry.objects.count() == before
    assert [row.access_count for row in Memory.objects.all()] == [0, 0]


@pytest.mark.parametrize(("level", "is_told"), [("reads", False), ("verbose", True)])
def test_an_entry_has_the_latency_and_at_verbose_the_request(
    atlas: Owner, monkeypatch: pytest.MonkeyPatch, level: str, is_told: bool
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", level)

    count_concluding_statements(atlas, top_k=1, kinds=[Kind.FACT])

    entry = written_read()
    assert entry.latency_ms is not None
    scores = entry.metadata.pop("scores", {})
    assert entry.metadata == ({"kinds": ["fact"], "techniques": [], "top_k": 1} if is_told else {})
    assert list(scores) == (entry.affected_ids if is_told else [])
