"""Health and metrics: what they check, and what they answer."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from redis import ResponseError

from memory.api.health import describe_refusal, measure_background_lag
from memory.api.metrics import postgresql_metrics
from memory.maintenance import JOBS, Batch
from memory.maintenance.log_jobs import measure
from memory.models import Account, Conversation, JobRun
from memory.owner import Owner
from memory.providers.language_models import Usage
from memory.services.operations.alerts import ALERTS
from memory.services.operations.usage import record_usage
from memory_project import measures, redis
from tests.memory.episodes import draft, store
from tests.redis_elsewhere import own_redis, take_disk

STATEMENTS = 6


def test_the_liveness_check_queries_no_store(django_assert_num_queries: Any, db: None) -> None:
    with django_assert_num_queries(0):
        assert Client().get("/health/live").json() == {"status": "live"}


@pytest.mark.django_db(transaction=True)
def test_the_readiness_check_lists_every_store() -> None:
    body = Client().get("/health/ready").json()

    assert body["status"] == "ready"
    assert body["checks"] == {"postgresql": "ok", "vector_extension": "ok", "keys": "ok", "redis": "ok"}


@pytest.mark.django_db(transaction=True)
def test_the_readiness_check_warns_of_a_job_run_that_no_worker_takes() -> None:
    account = Account.objects.create(name="workshop")
    run = JobRun.objects.create(account=account, job="embed")
    JobRun.objects.filter(id=run.id).update(created_at=timezone.now() - timedelta(hours=1))

    answer = Client().get("/health/ready")

    assert answer.status_code == 200
    assert answer.json()["lag"]["oldest_queued_job_seconds"] > 3_500
    assert any("Job runs waiting for a worker" in warning for warning in answer.json()["warnings"])


@pytest.mark.django_db(transaction=True)
def test_the_readiness_check_fails_for_a_redis_without_memory() -> None:
    with own_redis():
        redis.client().config_set("maxmemory", "1")
        answer = Client().get("/health/ready")

    assert (answer.status_code, answer.json()["checks"]["redis"]) == (503, "refuses commands (OutOfMemoryError)")


@pytest.mark.django_db(transaction=True)
def test_the_readiness_check_names_the_disk_of_a_redis_that_cannot_write_to_it() -> None:
    with own_redis():
        take_disk()
        answer = Client().get("/health/ready")

    assert answer.status_code == 503
    assert answer.json()["checks"]["redis"] == "cannot write to its disk, and refuses writes"


def test_a_full_disk_is_named_as_such() -> None:
    refusal = ResponseError("MISCONF Errors writing to the AOF file: No space left on device")

    assert describe_refusal(refusal) == "has no disk space left, and refuses writes"
    assert describe_refusal(ResponseError("NOPERM no right")) == "refuses commands (ResponseError)"


@pytest.mark.django_db(transaction=True)
def test_the_readiness_check_succeeds_despite_a_redis_warning() -> None:
    with own_redis():
        redis.client().config_set("maxmemory-policy", "allkeys-lru")
        answer = Client().get("/health/ready")

    assert answer.status_code == 200
    assert any("Redis evicts keys (policy allkeys-lru)" in warning for warning in answer.json()["warnings"])


@pytest.mark.django_db(transaction=True)
def test_the_readiness_check_counts_conversations_waiting_for_extraction() -> None:
    account, now = Account.objects.create(name="workshop"), timezone.now()
    for name, due in (("read", None), ("unread", now), ("failing", now + timedelta(hours=1))):
        Conversation.objects.create(account=account, conversation_id=name, started_at=now, extract_after=due)

    assert Client().get("/health/ready").json()["lag"]["pending_extractions"] == 2


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics"])
def test_a_post_is_refused_with_the_allowed_methods(path: str) -> None:
    refused = Client(enforce_csrf_checks=True).post(path)

    assert (refused.status_code, refused["Allow"]) == (405, "GET, HEAD")


@pytest.mark.django_db
def test_background_lag_is_measured_in_three_statements(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(3):
        lag = measure_background_lag(timezone.now())

    assert lag == {
        "pending_embeddings": 0,
        "pending_extractions": 0,
        "oldest_queued_job_seconds": None,
        "last_worker_activity_seconds": None,
    }


@pytest.mark.django_db(transaction=True)
def test_metrics_describe_the_stores_without_naming_an_account() -> None:
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
def test_metrics_sum_the_usage_of_language_models_over_accounts_and_days() -> None:
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
def test_metrics_count_queued_and_failed_conversations(noun: str, due: str, prefix: str) -> None:
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
        "parked": {attempts: 8, error: "x", f"{prefix}_parked_at": now},
    }
    for name, state in states.items():
        Conversation.objects.create(account=account, conversation_id=name, started_at=now, **state)

    figures = Client().get("/metrics").content.decode()

    assert f"memory_pending_{noun} 5.0" in figures
    assert f"memory_failing_{noun} 3.0" in figures
    assert f"memory_parked_{noun} 1.0" in figures


@pytest.mark.django_db
def test_a_scrape_executes_the_same_number_of_statements_for_any_data(
    account: Account, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    now = timezone.now()
    store(owner, *(draft(name) for name in ("a", "b", "c")))
    for job in JOBS:
        JobRun.objects.create(account=account, job=job, figures={"one": 1, "two": 2})
    measure(now=now, batch=Batch(size=10))

    with django_assert_num_queries(STATEMENTS):
        postgresql_metrics(now)


@pytest.mark.django_db(transaction=True)
def test_metrics_contain_samples_and_their_age(empty_redis: None) -> None:
    owner = Owner(account_id=Account.objects.create(name="workshop").id, agent_id="assistant")
    store(owner, draft("a"), draft("b"))
    measure(now=timezone.now() - timedelta(hours=1), batch=Batch(size=10))
    store(owner, draft("c"))

    figures = Client().get("/metrics").content.decode()

    assert 'memory_rows{kind="episode"} 2.0' in figures
    assert 'memory_tier_items{tier="long_term"} 2.0' in figures
    assert 3_590 < figure(figures, "memory_samples_age_seconds") < 3_700


@pytest.mark.django_db(transaction=True)
def test_metrics_contain_the_figures_of_job_runs_of_the_last_day() -> None:
    for _ in range(2):
        JobRun.objects.create(job="decay", status="completed", examined=10, changed=4, figures={"faded": 4})
    JobRun.objects.create(job="decay", status="completed", examined=10, figures={"faded": 10}, dry_run=True)
    old = JobRun.objects.create(job="decay", status="completed", figures={"faded": 100})
    JobRun.objects.filter(id=old.id).update(created_at=timezone.now() - timedelta(days=2))

    figures = Client().get("/metrics").content.decode()

    assert 'memory_job_rows{figure="faded",job="decay"} 8.0' in figures
    assert 'memory_job_rows{figure="examined",job="decay"} 20.0' in figures


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("just_migrated")
def test_metrics_contain_the_state_of_each_alert() -> None:
    JobRun.objects.create(job="embed", status="failed", requested_by="schedule", finished_at=timezone.now())

    figures = Client().get("/metrics").content.decode()

    assert 'memory_alert{name="job_failed"} 1.0' in figures
    assert {name for name in ALERTS if f'memory_alert{{name="{name}"}} 0.0' in figures} == {*ALERTS} - {"job_failed"}


@pytest.mark.django_db(transaction=True)
def test_metrics_report_that_redis_is_down(dead_redis: None) -> None:
    figures = Client().get("/metrics").content.decode()

    assert 'memory_store_up{store="redis"} 0.0' in figures
    assert 'memory_alert{name="redis_unreachable"} 1.0' in figures
    assert "memory_pending_embeddings 0.0" in figures


@pytest.mark.django_db(transaction=True)
def test_metrics_contain_the_durations_of_recalls() -> None:
    for _ in range(100):
        measures.RECALL_SECONDS.observe(0.04)

    figures = Client().get("/metrics").content.decode()

    assert figure(figures, "memory_recall_seconds_count") >= 100
    assert figure(figures, 'memory_recall_quantile_seconds{quantile="0.5"}') > 0


def figure(figures: str, name: str) -> float:
    (line,) = [line for line in figures.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[-1])
