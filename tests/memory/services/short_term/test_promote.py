"""Tests of promotion: entries that were read often are stored for good, once, despite kills and concurrent runs."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, Unprocessable
from memory.models import (
    Account,
    AgentShortTermMemory,
    AuditEntry,
    ContextEntry,
    ContextEntryVersion,
    Memory,
    PersistentContext,
    Vector,
)
from memory.models.short_term import ShortTermKey
from memory.owner import Owner
from memory.services import short_term as consolidation
from memory.services.contexts.entries import EntryDraft
from memory.services.contexts.manage import archive_context, ensure_own_context, find_keyed_value
from memory.services.router import MemoryRouter
from memory.services.short_term import (
    ShortTermDraft,
    promote_in_batches,
    promote_session_entries,
    read_entry,
    store_entry,
)
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection
from tests.embedding_server import EmbeddingServer
from tests.memory.contexts import keep
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

LATER = NOW + timedelta(hours=1)
"""A time at which everything has expired."""

BATCH_STATEMENTS = 21
"""A savepoint's two among them, and the look for another batch."""


def remember(
    owner: Owner, *keys: str, value: Any = "stored", reads: int = 3, session_id: str = "s1", now: datetime = NOW
) -> None:
    for key in keys:
        draft = ShortTermDraft(memory_key=key, memory_value=value, session_id=session_id, ttl_seconds=60)
        store_entry(owner, draft, now=now)
        for _ in range(reads):
            read_entry(owner, ShortTermKey(key=key, session_id=session_id), now=now)


def consolidate(owner: Owner, *, now: datetime = NOW) -> list[str]:
    return list(promote_session_entries(owner, "s1", now=now).keys)


def consolidate_and_die(owner: Owner) -> None:
    with transaction.atomic():
        consolidate(owner, now=LATER)
        raise SystemExit


def kept(owner: Owner, key: str = "k") -> Any:
    found = find_keyed_value(owner, key, now=NOW)
    return None if found is None else found.value


def versions() -> list[tuple[int, str]]:
    return list(ContextEntryVersion.objects.order_by("number").values_list("number", "content"))


def test_entries_read_three_times_are_promoted_and_found_by_meaning(owner: Owner) -> None:
    remember(owner, "often", value="The keel broke.")
    remember(owner, "twice", reads=2)

    assert consolidate(owner) == ["often"]

    (hit,) = MemoryRouter(owner).semantic_search("The keel broke.", top_k=5, now=NOW).hits
    assert (hit.key, hit.value, hit.content) == ("often", "The keel broke.", "The keel broke.")
    assert hit.similarity == pytest.approx(1, abs=1e-2)
    assert kept(owner, "twice") is None


def test_a_promoted_entry_names_its_origin(owner: Owner) -> None:
    draft = ShortTermDraft(memory_key="k", memory_value=1, session_id="s1", memory_type="tool_result")
    entry = store_entry(owner, draft, now=NOW)
    AgentShortTermMemory.objects.update(access_count=7)

    consolidate(owner, now=NOW + timedelta(minutes=5))

    promoted = ContextEntry.objects.get()
    assert promoted.metadata == {
        "promoted_from": "short_term",
        "session_id": "s1",
        "access_count": 7,
        "memory_type": "tool_result",
    }
    assert (promoted.source, promoted.entry_type) == ("short_term", "tool_output")
    assert promoted.event_time == entry.updated_at


def test_live_sources_are_marked_and_expired_ones_deleted(owner: Owner) -> None:
    remember(owner, "live")
    remember(owner, "expired")
    AgentShortTermMemory.objects.filter(memory_key="expired").update(expires_at=NOW)

    assert sorted(consolidate(owner)) == ["expired", "live"]

    live = AgentShortTermMemory.objects.get()
    assert (live.memory_key, live.promoted_at) == ("live", NOW)


def test_promoting_again_promotes_nothing_twice(owner: Owner) -> None:
    remember(owner, "k")

    assert [consolidate(owner), consolidate(owner)] == [["k"], []]

    assert ContextEntry.objects.count() == 1


def test_promoting_the_same_value_again_changes_nothing(owner: Owner) -> None:
    remember(owner, "k", value="one")
    consolidate(owner)
    remember(owner, "k", value="one")

    assert consolidate(owner) == ["k"]

    assert versions() == [(1, "one")]
    assert AgentShortTermMemory.objects.get().promoted_at == NOW


def test_another_value_becomes_the_next_version(owner: Owner) -> None:
    remember(owner, "k", value="one")
    consolidate(owner)
    remember(owner, "k", value="two")

    consolidate(owner)

    assert (versions(), kept(owner)) == ([(1, "one"), (2, "two")], "two")


def test_an_existing_entry_gets_the_value_and_keeps_its_type(owner: Owner) -> None:
    mine = EntryDraft(key="k", value="by hand", entry_type="decision", metadata={"mine": 1}, source="upload")
    keep(owner, ensure_own_context(owner, now=NOW), mine)
    remember(owner, "k", value="promoted")

    consolidate(owner)

    entry = ContextEntry.objects.get()
    assert (entry.text, entry.content_version) == ("promoted", 2)
    assert (entry.entry_type, entry.metadata, entry.source) == ("decision", {"mine": 1}, "upload")


def test_the_same_key_of_two_sessions_is_one_entry_with_both_in_its_history(owner: Owner) -> None:
    for session_id in ("s1", "s2"):
        remember(owner, "goal", value=f"of {session_id}", session_id=session_id)
        promote_session_entries(owner, session_id, now=NOW)

    assert (versions(), kept(owner, "goal")) == ([(1, "of s1"), (2, "of s2")], "of s2")


@pytest.mark.parametrize("value", ["123", 123, 1.0, None, "", [], {"b": [10**30], "a": "ä"}], ids=repr)
def test_values_of_every_type_are_kept_exact(owner: Owner, value: Any) -> None:
    remember(owner, "k", value=value)

    consolidate(owner)

    assert json.dumps(MemoryRouter(owner).read("k", tier="long_term", now=NOW).value) == json.dumps(value)


def test_other_sessions_agents_and_accounts_are_left_alone(owner: Owner, stranger: Account) -> None:
    others = [replace(owner, agent_id="planner"), replace(owner, account_id=stranger.id)]
    remember(owner, "k", session_id="s2")
    for other in others:
        remember(other, "k")

    assert consolidate(owner) == []

    assert not ContextEntry.objects.exists()
    assert [consolidate(other) for other in others] == [["k"], ["k"]]
    assert kept(owner) is None


def test_nothing_to_promote_creates_no_context(owner: Owner) -> None:
    remember(owner, "k", reads=2)

    consolidate(owner)

    assert not PersistentContext.objects.exists()


def test_an_archived_context_refuses_and_nothing_is_lost(owner: Owner) -> None:
    archive_context(owner, ensure_own_context(owner, now=NOW).id, expected=None, now=NOW)
    remember(owner, "k")

    with pytest.raises(Conflict):
        consolidate(owner, now=LATER)

    assert AgentShortTermMemory.objects.get().promoted_at is None


def test_a_quarantined_entry_is_not_overwritten_and_blocks_nothing_else(owner: Owner) -> None:
    remember(owner, "k", value="one")
    consolidate(owner)
    Memory.objects.update(quarantined=True)
    remember(owner, "k", value="two")
    remember(owner, "other")

    assert consolidate(owner) == ["other"]

    assert versions() == [(1, "one"), (1, "stored")]
    assert AgentShortTermMemory.objects.get(memory_key="k").promoted_at is None


def test_an_account_without_an_agent_has_no_long_term_memory(owner: Owner) -> None:
    remember(owner, "k")

    with pytest.raises(Unprocessable):
        consolidate(replace(owner, agent_id=""))


def test_without_the_embedder_entries_are_kept_and_queued(owner: Owner, embedding_server: EmbeddingServer) -> None:
    remember(owner, "k", value="never seen before")
    embedding_server.fail(503)

    consolidate(owner)

    entry = ContextEntry.objects.get()
    assert (entry.text, entry.embed_after) == ("never seen before", NOW)


def test_an_embedder_that_is_down_is_asked_once(
    owner: Owner, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidation, "BATCH_ENTRIES", 1)
    for key in ("a", "b", "c"):
        remember(owner, key, value=f"never seen before: {key}")
    embedding_server.fail(400)

    consolidate(owner)

    assert set(embedding_server.texts) == {"never seen before: a"}
    assert ContextEntry.objects.awaiting_embedding().count() == 3


def test_a_run_killed_between_batches_can_be_continued(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidation, "BATCH_ENTRIES", 2)
    remember(owner, "a", "b", "c")
    waiting = AgentShortTermMemory.objects.visible_to(owner).to_promote()

    first = next(promote_in_batches(owner, waiting, now=NOW))

    assert (first, ContextEntry.objects.count(), waiting.count()) == (["a", "b"], 2, 1)
    assert consolidate(owner) == ["c"]


def test_a_run_killed_within_a_batch_changes_nothing(owner: Owner) -> None:
    remember(owner, "k")

    with pytest.raises(SystemExit):
        consolidate_and_die(owner)

    assert (ContextEntry.objects.count(), Vector.objects.count()) == (0, 0)
    assert consolidate(owner, now=LATER) == ["k"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_runs_promote_each_entry_once(owner: Owner) -> None:
    remember(owner, *"abcdefgh")

    with ThreadPoolExecutor(4) as threads:
        started = [threads.submit(over_own_connection, partial(consolidate, owner)) for _ in range(4)]
        keys = [key for done in started for key in done.result()]

    assert sorted(keys) == list("abcdefgh")
    assert (ContextEntry.objects.count(), len(versions())) == (8, 8)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_waits_promotes_values_written_meanwhile(owner: Owner, start_concurrently: Start) -> None:
    remember(owner, "k", value="old")

    with transaction.atomic():
        store_entry(owner, ShortTermDraft(memory_key="k", memory_value="new", session_id="s1"), now=NOW)
        consolidating = start_concurrently(lambda: consolidate(owner))

    consolidating.result(PATIENCE_SECONDS)
    assert kept(owner) == "new"
    assert ContextEntry.objects.get().embed_after is not None


def test_promotions_are_in_the_audit_log(owner: Owner) -> None:
    remember(owner, "k")
    entry = AgentShortTermMemory.objects.get()

    consolidate(owner)

    promoted = AuditEntry.objects.get(operation="promote")
    assert (promoted.memory_type, promoted.affected_ids, promoted.session_id) == ("short_term", [str(entry.id)], "s1")


def test_the_statements_of_a_batch_do_not_depend_on_its_size(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    remember(owner, "first")
    consolidate(owner)
    for count in (1, 20):
        remember(owner, *(f"{count}:{number}" for number in range(count)))

        with django_assert_num_queries(BATCH_STATEMENTS):
            consolidate(owner)
