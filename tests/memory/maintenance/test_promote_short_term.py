"""Expired entries that were read often are promoted, each into its own agent's memory."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.maintenance import Batch
from memory.maintenance.memory_jobs import promote_short_term
from memory.maintenance.retention_jobs import expire
from memory.models import Account, AgentShortTermMemory, AuditEntry, ContextEntry
from memory.owner import Owner
from memory.services.contexts.manage import archive_context, ensure_own_context, find_keyed_value
from memory.services.short_term import ShortTermDraft, store_entry
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

PAST = NOW - timedelta(hours=1)


def wait(owner: Owner, *keys: str, session_id: str = "s1", reads: int = 3, ttl_seconds: int = 3_600) -> None:
    """Entries of an hour that is over, read so often."""
    for key in keys:
        draft = ShortTermDraft(
            memory_key=key, memory_value=f"{key} of {session_id}", session_id=session_id, ttl_seconds=ttl_seconds
        )
        entry = store_entry(owner, draft, now=PAST)
        AgentShortTermMemory.objects.filter(id=entry.id).update(access_count=reads)


def kept(owner: Owner, key: str) -> object:
    found = find_keyed_value(owner, key, now=NOW)
    return None if found is None else found.value


def run_to_the_end(batch: Batch) -> list[tuple[int, int]]:
    """Return how many entries each batch promoted, and how many it could not."""
    figures: list[tuple[int, int]] = []
    report = None
    while report is None or report.cursor:
        report = promote_short_term(now=NOW, batch=replace(batch, cursor=report.cursor if report else ""))
        figures.append((report.changed, report.failed))
    return figures


def test_waiting_entries_are_promoted_into_the_memory_of_their_agent(owner: Owner, stranger: Account) -> None:
    others = [replace(owner, agent_id="planner"), replace(owner, account_id=stranger.id)]
    for each in (owner, *others):
        wait(each, "k")

    assert run_to_the_end(Batch(size=10)) == [(3, 0)]

    assert [kept(each, "k") for each in (owner, *others)] == ["k of s1"] * 3
    assert not AgentShortTermMemory.objects.exists()


def test_live_or_rarely_read_entries_are_not_promoted(owner: Owner) -> None:
    wait(owner, "live", ttl_seconds=3_601)
    wait(owner, "twice", reads=2)

    assert run_to_the_end(Batch(size=10)) == [(0, 0)]

    assert AgentShortTermMemory.objects.count() == 2


def test_expiry_keeps_entries_awaiting_promotion_and_deletes_the_others(owner: Owner) -> None:
    wait(owner, "often")
    wait(owner, "seldom", reads=2)

    expire(now=NOW, batch=Batch(size=10))
    run_to_the_end(Batch(size=10))

    assert (kept(owner, "often"), kept(owner, "seldom")) == ("often of s1", None)


def test_one_key_of_several_sessions_becomes_one_entry_with_versions(owner: Owner) -> None:
    for session_id in ("s1", "s2"):
        wait(owner, "k", session_id=session_id)

    run_to_the_end(Batch(size=10))

    assert kept(owner, "k") == "k of s2"
    assert list(ContextEntry.objects.get().versions.values_list("content", flat=True)) == ["k of s1", "k of s2"]


@pytest.mark.parametrize("size", [1, 10])
def test_a_key_rewritten_while_waiting_becomes_one_entry_with_versions(owner: Owner, size: int) -> None:
    for value, hours in ((1, 4), (2, 2)):
        draft = ShortTermDraft(memory_key="k", memory_value=value, ttl_seconds=3_600)
        entry = store_entry(owner, draft, now=NOW - timedelta(hours=hours))
        AgentShortTermMemory.objects.filter(id=entry.id).update(access_count=3)

    run_to_the_end(Batch(size=size))

    assert kept(owner, "k") == 2
    assert list(ContextEntry.objects.get().versions.values_list("content", flat=True)) == ["1", "2"]
    assert not AgentShortTermMemory.objects.exists()


def test_promoting_continues_at_its_cursor_and_can_be_repeated(owner: Owner) -> None:
    wait(owner, "a", "b", "c")

    first = promote_short_term(now=NOW, batch=Batch(size=2))
    again = promote_short_term(now=NOW, batch=Batch(size=2))

    assert (first.changed, bool(first.cursor), again.changed, again.cursor) == (2, True, 1, "")
    assert run_to_the_end(Batch(size=2)) == [(0, 0)]
    assert ContextEntry.objects.count() == 3


def test_a_dry_run_counts_and_promotes_nothing(owner: Owner) -> None:
    wait(owner, "a", "b", "c")

    assert run_to_the_end(Batch(size=2, dry_run=True)) == [(2, 0), (1, 0)]

    assert (AgentShortTermMemory.objects.count(), ContextEntry.objects.count()) == (3, 0)


def test_a_run_of_an_account_promotes_only_its_own(owner: Owner, stranger: Account) -> None:
    wait(owner, "k")
    wait(replace(owner, account_id=stranger.id), "k")

    assert run_to_the_end(Batch(size=10, account_id=stranger.id)) == [(1, 0)]

    assert kept(owner, "k") is None


def test_an_archived_context_does_not_block_the_entries_of_other_agents(owner: Owner) -> None:
    planner = replace(owner, agent_id="planner")
    archive_context(owner, ensure_own_context(owner, now=NOW).id, expected=None, now=NOW)
    wait(owner, "a", "b")
    wait(planner, "k")

    assert run_to_the_end(Batch(size=10)) == [(1, 2)]

    assert kept(planner, "k") == "k of s1"
    assert AgentShortTermMemory.objects.visible_to(owner).count() == 2


def test_the_audit_log_names_the_job(owner: Owner) -> None:
    wait(owner, "k")

    run_to_the_end(Batch(size=10))

    promoted = AuditEntry.objects.get(operation="promote")
    assert (promoted.actor, promoted.agent_id) == ("job:promote_short_term", "assistant")
