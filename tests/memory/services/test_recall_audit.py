"""What recalls leave behind: counted reads always, an entry of the audit log where its level keeps reads."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import conf
from memory.models import Account, AuditEntry, Memory
from memory.owner import Owner
from memory.retrieval.candidates import Bundle
from memory.retrieval.queries import Query
from memory.services.memories import OwnVector
from memory.services.recall import RecallRequest, conclude, recall
from tests.memory.episodes import MODEL, NOW, direction
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

QUESTION = "where is the archive"


@pytest.fixture
def atlas(owner: Owner) -> Owner:
    """Of a channel, where something is known there, and something everywhere."""
    own = replace(owner, channel="atlas")
    know(owner, "The archive is in Berlin.", angle=0.1)
    know(own, "The archive is in room 12.", angle=0.2)
    return own


def ask(owner: Owner, **fields: Any) -> tuple[RecallRequest, Bundle]:
    own = OwnVector(model=MODEL, vector=direction(0))
    request = RecallRequest(query=Query(text=QUESTION, **fields), own=own)
    return request, recall(owner, request, now=NOW)


def concluded(owner: Owner, **fields: Any) -> int:
    """The statements that it took."""
    request, bundle = ask(owner, **fields)
    with CaptureQueriesContext(connection) as captured:
        conclude(owner, request, bundle, now=NOW)
    return len(captured)


@pytest.mark.parametrize(
    ("level", "statements", "questions"),
    [("off", 1, []), ("writes", 1, []), ("reads", 2, [QUESTION]), ("verbose", 2, [QUESTION])],
)
def test_each_level_keeps_what_it_says(
    atlas: Owner, monkeypatch: pytest.MonkeyPatch, level: str, statements: int, questions: list[str]
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", level)

    assert concluded(atlas) == statements
    entries = AuditEntry.objects.filter(operation="retrieve")
    assert [entry.query_text for entry in entries] == questions
    assert [row.access_count for row in Memory.objects.all()] == [1, 1]


def test_an_entry_names_the_channels_that_memories_came_from(atlas: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")

    concluded(atlas, conversation_id="c1")

    entry = AuditEntry.objects.get(operation="retrieve")
    assert (entry.source_channel, entry.target_channels) == ("atlas", ["_global", "atlas"])
    assert (entry.result_count, entry.conversation_id, entry.memory_type) == (2, "c1", "all")
    assert set(entry.affected_ids) == {str(row.id) for row in Memory.objects.all()}


def test_no_entry_holds_a_word_of_the_memories(atlas: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "verbose")

    concluded(atlas)

    entry = AuditEntry.objects.filter(operation="retrieve").values().get()
    assert "Berlin" not in str(entry)
    assert "room 12" not in str(entry)


def test_a_recall_of_nothing_is_entered_and_counts_nothing(stranger: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")

    assert concluded(Owner(account_id=stranger.id, agent_id="assistant")) == 1

    entry = AuditEntry.objects.get(operation="retrieve")
    assert (entry.result_count, entry.target_channels, entry.affected_ids) == (0, [], [])


def test_recalling_alone_writes_nothing(atlas: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "verbose")
    before = AuditEntry.objects.count()

    ask(atlas)

    assert AuditEntry.objects.count() == before
    assert [row.access_count for row in Memory.objects.all()] == [0, 0]
