"""`manage.py memory_stats`: counts of stored rows, for one account or all, in a fixed number of queries."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from ledger import store as ledger
from memory.maintenance import Batch
from memory.maintenance.log_jobs import measure
from memory.models import Account, Conversation, FactTombstone, Goal, JobRun, Link, Memory
from memory.owner import Owner
from memory.services.facts.review import open_review
from memory.services.facts.supersede import reject_fact
from memory.services.goals.plan import GoalDraft, add_goal, complete_goal
from memory.services.operations.statistics import WaitingConversations, gather_statistics
from memory_project import redis
from memory_project.redis import ConversationRef
from tests.memory.entities import entity_of
from tests.memory.episodes import MODEL, NOTHING, NOW, WIDTH, draft, store
from tests.memory.facts import fact_draft, know
from tests.memory.procedures import invoke

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

QUERIES = 17


@pytest.fixture
def filled(account: Account, stranger: Account, owner: Owner) -> Account:
    """Three episodes of one account, of which one has its vector, and one episode of another account."""
    episodes = store(owner, draft("first", angle=0.0), draft("second"), draft("third"))
    Memory.objects.filter(id=episodes[2].id).update(
        embed_after=NOW + timedelta(hours=1), embed_error="provider_refused"
    )
    Link.objects.create(account=account, source_id=episodes[0].id, target_id=episodes[1].id, type="FOLLOWED_BY")
    JobRun.objects.create(account=account, job="embed")
    store(Owner(account_id=stranger.id, agent_id="spy"), draft("theirs"))
    return account


def run(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("memory_stats", "--json", *arguments, stdout=out)
    figures: dict[str, Any] = json.loads(out.getvalue())
    return figures


def test_the_figures_of_an_account_leave_out_others(filled: Account) -> None:
    figures = run("--account", filled.name)

    assert figures["memories"] == {"episode": 3}
    assert figures["vectors"] == [{"model": MODEL, "width": WIDTH, "count": 1}]
    assert (figures["links"], figures["participants"], figures["job_runs"]) == (1, 1, {"queued": 1})


def test_without_an_account_all_are_counted(filled: Account) -> None:
    figures = run()

    assert figures["memories"] == {"episode": 4}
    assert figures["participants"] == 2


def test_pending_embeddings_are_counted_by_error(filled: Account) -> None:
    pending = gather_statistics(filled.id, now=NOW).pending

    assert (pending.waiting, pending.by_error["provider_refused"]) == (1, 1)
    assert (pending.due, pending.by_error[""]) == (1, 1)
    assert pending.oldest is not None


def test_waiting_failing_and_parked_conversations_are_counted_by_queue(filled: Account) -> None:
    soon = NOW + timedelta(minutes=5)
    states: dict[str, dict[str, Any]] = {
        "idle": {},
        "new": {"summarize_after": NOW, "extract_after": NOW},
        "at work": {"extract_after": NOW, "extract_attempts": 1, "extract_lease_until": soon},
        "failed": {"extract_after": soon, "extract_attempts": 1, "extract_error": "provider_refused"},
        "parked": {"extract_parked_at": NOW, "extract_attempts": 8, "extract_error": "reply_invalid"},
    }
    Conversation.objects.all().delete()
    for name, state in states.items():
        Conversation.objects.create(account=filled, conversation_id=name, started_at=NOW, **state)

    statistics = gather_statistics(filled.id, now=NOW)

    assert statistics.summaries == WaitingConversations(waiting=1, failing=0, parked=0)
    assert statistics.extractions == WaitingConversations(waiting=3, failing=1, parked=1)


def test_entities_facts_reviews_tombstones_goals_and_invocations_are_counted(filled: Account, owner: Owner) -> None:
    ana = entity_of(owner, "Ana Lima")
    facts = [know(owner, claim, entity_ids=[ana.pk]) for claim in ("Ana lives in Berlin.", "Ana bakes.", "Ana sings.")]
    open_review(owner, old=facts[0], draft=fact_draft("Ana lives in Rome."), similarity=None, embedded=NOTHING, now=NOW)
    for fact in facts[1:]:
        reject_fact(owner, fact.pk, now=NOW)
    FactTombstone.objects.filter(fact_digest=FactTombstone.objects.order_by("id")[0].fact_digest).update(met_count=2)
    goals = [add_goal(owner, GoalDraft(description=name), embedded=NOTHING, now=NOW) for name in ("bake", "sing")]
    complete_goal(owner, goals[0].pk, status=Goal.Status.COMPLETED, now=NOW)
    invoke(owner)

    for figures in (run("--account", filled.name)["knowledge"], run()["knowledge"]):
        assert figures == {
            "entities": 1,
            "facts": {"active": 1, "pending": 1, "rejected": 2},
            "open_reviews": 1,
            "tombstones": 2,
            "tombstones_met": 1,
            "open_goals": 1,
            "invocations": 1,
        }


def test_knowledge_of_another_account_is_not_counted(filled: Account, stranger: Account) -> None:
    know(Owner(account_id=stranger.id, agent_id="spy"))

    knowledge = run("--account", filled.name)["knowledge"]

    assert not any(knowledge.values())


def test_the_number_of_queries_does_not_grow(
    filled: Account, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    store(owner, *(draft(f"more {number}", angle=number) for number in range(20)))

    with django_assert_num_queries(QUERIES):
        gather_statistics(None, now=NOW)
    with django_assert_num_queries(QUERIES):
        gather_statistics(filled.id, now=NOW)


def test_ledger_changes_that_are_not_yet_rows_are_counted(filled: Account) -> None:
    redis.client().set("ledger:epoch", "one")
    ledger.mark(ConversationRef(account_id=filled.id, conversation_id="c1"), "skill:sql")

    figures = run()["redis"]

    assert (figures["journal"], figures["epoch"], figures["keys"]) == (1, "one", 3)
    assert figures["memory_bytes"] > 0


def test_the_audit_log_is_counted_by_day(filled: Account) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE memory_audit_log_20990102 PARTITION OF memory_audit_log"
            " FOR VALUES FROM ('2099-01-02 00:00+00') TO ('2099-01-03 00:00+00')"
        )

    assert {"2099-01-02", f"{timezone.now():%Y-%m-%d}"} <= set(run()["audit_by_day"])


def test_table_sizes_include_their_indexes_and_partitions(filled: Account) -> None:
    tables = {size["table"]: size for size in run()["tables"]}

    assert tables["memories"]["table_bytes"] > 0
    assert tables["memory_audit_log"]["index_bytes"] > 0
    assert not [name for name in tables if name.startswith("memory_audit_log_")]
    assert "auth_user" not in tables


@pytest.mark.usefixtures("just_migrated")
def test_a_redis_that_is_down_leaves_the_other_figures(filled: Account, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    redis.client.cache_clear()
    try:
        figures = run()
    finally:
        redis.client.cache_clear()

    assert figures["redis"] is None
    assert [alert["name"] for alert in figures["alerts"]] == ["redis_unreachable"]
    assert figures["memories"] == {"episode": 4}


def test_the_latest_samples_are_reported(filled: Account) -> None:
    measure(now=timezone.now(), batch=Batch(size=10))

    sampled = run()["sampled"]

    assert (sampled["memory_rows episode"], sampled["memory_links"]) == (4.0, 1.0)


def test_the_report_is_also_available_as_text(filled: Account) -> None:
    out = io.StringIO()
    Conversation.objects.create(account=filled, conversation_id="parked", started_at=NOW, extract_parked_at=NOW)

    call_command("memory_stats", stdout=out)

    for title in (
        "Alerts",
        "Conversations parked",
        "Nothing sampled yet",
        "Memories",
        "Vectors",
        "Pending embeddings",
        "Knowledge",
        "Conversations that wait",
        "Job runs",
        "Redis",
    ):
        assert title in out.getvalue()


def test_an_unknown_account_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="no account '"):
        call_command("memory_stats", "--account=nobody")
