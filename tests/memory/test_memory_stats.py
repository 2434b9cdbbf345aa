"""`manage.py memory_stats`: what is stored, by account or of all, at a cost that does not grow."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from pytest_django import DjangoAssertNumQueries, Settings

from ledger import store as ledger
from memory.models import Account, JobRun, Link, Memory
from memory.owner import Owner
from memory.services.statistics import gather_statistics
from memory_project import redis
from memory_project.redis import Place
from tests.memory.episodes import MODEL, NOW, WIDTH, draft, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

QUERIES = 9


@pytest.fixture
def filled(account: Account, stranger: Account, owner: Owner) -> Account:
    """Three episodes of one account, of which one has its vector, and one episode of another account."""
    episodes = store(owner, draft("first", angle=0.0), draft("second"), draft("third"))
    Memory.objects.filter(id=episodes[2].id).update(
        embed_after=NOW + timedelta(hours=1), embed_error="provider_refused"
    )
    Link.objects.create(account=account, source=episodes[0], target=episodes[1], type="FOLLOWED_BY")
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


def test_pending_embeddings_are_told_apart(filled: Account) -> None:
    pending = gather_statistics(filled.id, now=NOW).pending

    assert (pending.waiting, pending.by_error["provider_refused"]) == (1, 1)
    assert (pending.due, pending.by_error[""]) == (1, 1)
    assert pending.oldest is not None


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
    ledger.mark(Place(account_id=filled.id, conversation_id="c1"), "skill:sql")

    figures = run()["redis"]

    assert (figures["journal"], figures["epoch"], figures["keys"]) == (1, "one", 3)
    assert figures["memory_bytes"] > 0


def test_the_audit_log_is_told_by_day(filled: Account) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE memory_audit_log_20990102 PARTITION OF memory_audit_log"
            " FOR VALUES FROM ('2099-01-02 00:00+00') TO ('2099-01-03 00:00+00')"
        )

    assert {"2099-01-02", "default"} <= set(run()["audit_by_day"])


def test_tables_are_told_with_their_indexes_and_partitions_as_one(filled: Account) -> None:
    tables = {size["table"]: size for size in run()["tables"]}

    assert tables["memories"]["table_bytes"] > 0
    assert tables["memory_audit_log"]["index_bytes"] > 0
    assert "memory_audit_log_default" not in tables
    assert "auth_user" not in tables


def test_a_redis_that_is_down_leaves_the_other_figures(filled: Account, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    redis.client.cache_clear()
    try:
        figures = run()
    finally:
        redis.client.cache_clear()

    assert figures["redis"] is None
    assert figures["memories"] == {"episode": 4}


def test_it_is_readable_too(filled: Account) -> None:
    out = io.StringIO()

    call_command("memory_stats", stdout=out)

    for title in ("Memories", "Vectors", "Pending embeddings", "Job runs", "Audit log", "Redis", "Tables"):
        assert title in out.getvalue()


def test_an_unknown_account_is_refused(db: None) -> None:
    with pytest.raises(CommandError, match="no account named"):
        call_command("memory_stats", "--account=nobody")
