"""Health and metrics: what they look at, and what they say."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.api.health import warnings_about
from memory.models import Account, Conversation, JobRun
from memory.providers.language_models import Usage
from memory.services.usage import record_usage

NOTHING_WRONG = {
    "pending_embeddings": 0,
    "pending_extractions": 0,
    "oldest_queued_job_seconds": None,
    "last_worker_activity_seconds": 1.0,
}


def test_live_touches_no_store(django_assert_num_queries: Any, db: None) -> None:
    with django_assert_num_queries(0):
        assert Client().get("/health/live").json() == {"status": "live"}


@pytest.mark.django_db(transaction=True)
def test_ready_names_every_store() -> None:
    body = Client().get("/health/ready").json()

    assert body["status"] == "ready"
    assert body["checks"] == {"postgresql": "ok", "vector_extension": "ok", "redis": "ok"}


@pytest.mark.django_db(transaction=True)
def test_ready_warns_of_a_job_that_nobody_takes() -> None:
    account = Account.objects.create(name="workshop")
    run = JobRun.objects.create(account=account, job="embed")
    JobRun.objects.filter(id=run.id).update(created_at=timezone.now() - timedelta(hours=1))

    answer = Client().get("/health/ready")

    assert answer.status_code == 200
    assert answer.json()["lag"]["oldest_queued_job_seconds"] > 3_500
    assert "a job has been waiting for a worker" in answer.json()["warnings"]


@pytest.mark.django_db(transaction=True)
def test_ready_counts_the_conversations_that_wait_for_extraction() -> None:
    account, now = Account.objects.create(name="workshop"), timezone.now()
    for name, due in (("read", None), ("unread", now), ("failing", now + timedelta(hours=1))):
        Conversation.objects.create(account=account, conversation_id=name, started_at=now, extract_after=due)

    assert Client().get("/health/ready").json()["lag"]["pending_extractions"] == 2


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics"])
def test_whoever_writes_to_them_is_told_what_they_allow(path: str) -> None:
    refused = Client(enforce_csrf_checks=True).post(path)

    assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("lag", "count"),
    [
        ({}, 0),
        ({"last_worker_activity_seconds": None}, 1),
        ({"last_worker_activity_seconds": 601.0}, 1),
        ({"oldest_queued_job_seconds": 121.0}, 1),
        ({"pending_embeddings": 1_001}, 1),
        ({"pending_extractions": 1_001}, 1),
    ],
)
def test_each_kind_of_lag_has_its_warning(lag: dict[str, Any], count: int) -> None:
    assert len(warnings_about(NOTHING_WRONG | lag)) == count


@pytest.mark.django_db(transaction=True)
def test_metrics_say_how_the_stores_are_and_nothing_of_an_account() -> None:
    account = Account.objects.create(name="workshop")
    JobRun.objects.create(account=account, job="embed")

    figures = Client().get("/metrics").content.decode()

    assert 'memory_store_up{store="postgresql"} 1.0' in figures
    assert 'memory_store_up{store="redis"} 1.0' in figures
    assert "memory_pending_embeddings 0.0" in figures
    assert 'memory_job_runs{job="embed",status="queued"} 1.0' in figures
    assert "memory_redis_used_bytes" in figures
    assert account.name not in figures


@pytest.mark.django_db(transaction=True)
def test_metrics_sum_what_language_models_were_asked_for_over_accounts_and_days() -> None:
    usage = Usage(model="small", failed_calls=1, prompt_tokens=1_000, completion_tokens=200, cost=Decimal("0.25"))
    for name in ("workshop", "strangers"):
        account = Account.objects.create(name=name)
        record_usage(account.id, use="summary", usages=[usage], now=timezone.now())
        record_usage(account.id, use="summary", usages=[usage], now=timezone.now() - timedelta(days=1))

    figures = Client().get("/metrics").content.decode()

    labels = '{model="small",use="summary"}'
    assert f"memory_model_calls_total{labels} 4.0" in figures
    assert f"memory_model_failed_calls_total{labels} 4.0" in figures
    assert f"memory_model_prompt_tokens_total{labels} 4000.0" in figures
    assert f"memory_model_completion_tokens_total{labels} 800.0" in figures
    assert f"memory_model_cost_total{labels} 1.0" in figures


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("noun", "due", "prefix"),
    [("summaries", "summarize_after", "summary"), ("extractions", "extract_after", "extract")],
)
def test_metrics_count_the_conversations_that_wait_in_a_queue_and_those_that_failed(
    noun: str, due: str, prefix: str
) -> None:
    account = Account.objects.create(name="workshop")
    now = timezone.now()
    soon, lately = now + timedelta(minutes=5), now - timedelta(minutes=5)
    attempts, error, lease = f"{prefix}_attempts", f"{prefix}_error", f"{prefix}_lease_until"
    states: dict[str, dict[str, Any]] = {
        "not due": {},
        "due": {due: now},
        "at work": {due: now, attempts: 1, lease: soon},
        "failed": {due: soon, attempts: 1, error: "provider_refused"},
        "tried again": {due: now, attempts: 2, error: "x", lease: soon},
        "died": {due: now, attempts: 1, lease: lately},
    }
    for name, state in states.items():
        Conversation.objects.create(account=account, conversation_id=name, started_at=now, **state)

    figures = Client().get("/metrics").content.decode()

    assert f"memory_pending_{noun} 5.0" in figures
    assert f"memory_failing_{noun} 3.0" in figures
