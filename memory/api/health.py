"""`/health/live` and `/health/ready`, for whoever restarts and routes; no key, and nothing of any account in them."""

from collections.abc import Mapping
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Max, Min
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from redis import RedisError

from memory.models import Conversation, JobRun, Memory
from memory_project.deadlines import POSTGRESQL, REDIS, Deadline
from memory_project.redis import client

MOST_SECONDS = 2.5
MOST_MILLISECONDS = 2_000
QUIET_WORKER = timedelta(minutes=10)
WAITING_JOB = timedelta(minutes=2)
LARGE_BACKLOG = 1_000


class NotReady(Exception):  # noqa: N818  a finding, not a fault
    """The sentence that says what is missing."""


@csrf_exempt
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """The process answers; no store is touched."""
    return JsonResponse({"status": "live"})


@csrf_exempt
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """503 when PostgreSQL, its vector extension or Redis fail, saying which; what lags is a warning."""
    deadline = Deadline(MOST_SECONDS)
    checks = run_checks(deadline)
    is_ready = all(result == "ok" for result in checks.values())
    body: dict[str, Any] = {"status": "ready" if is_ready else "unavailable", "checks": checks}
    if checks["postgresql"] == "ok":
        body |= describe_lag(deadline)
    return JsonResponse(body, status=200 if is_ready else 503)


def run_checks(deadline: Deadline) -> dict[str, str]:
    """Each check's name and result. Without PostgreSQL nobody waits a second time for its extension."""
    asked = {"postgresql": POSTGRESQL.ask(check_postgresql), "redis": REDIS.ask(check_redis)}
    checks = {name: result_of(question, deadline) for name, question in asked.items()}
    if checks["postgresql"] != "ok":
        return checks | {"vector_extension": "not known"}
    return checks | {"vector_extension": result_of(POSTGRESQL.ask(check_vector_extension), deadline)}


def result_of(check: "Future[None]", deadline: Deadline) -> str:
    """ "ok", or what is wrong."""
    try:
        deadline.wait_for(check)
    except NotReady as err:
        return str(err)
    except TimeoutError:
        return "does not answer"
    except (DatabaseError, RedisError) as err:
        return f"not reachable ({type(err).__name__})"
    return "ok"


def check_postgresql() -> None:
    query_quickly("SELECT 1")


def check_vector_extension() -> None:
    if query_quickly("SELECT extversion FROM pg_extension WHERE extname = 'vector'") is None:
        raise NotReady("the extension is not installed")


def check_redis() -> None:
    client().ping()


def query_quickly(statement: str) -> Any:
    """The first row, within two seconds."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(MOST_MILLISECONDS)])
        cursor.execute(statement)
        return cursor.fetchone()


def describe_lag(deadline: Deadline) -> dict[str, Any]:
    """`lag` and `warnings`. That they could not be had in time takes nothing out of service either."""
    try:
        lag = deadline.wait_for(POSTGRESQL.ask(lambda: measure_lag(timezone.now())))
    except (DatabaseError, TimeoutError):
        return {"warnings": ["what lags could not be measured in time"]}
    return {"lag": lag, "warnings": warnings_about(lag)}


def measure_lag(now: datetime) -> dict[str, Any]:
    """How far behind the work in the background is."""
    oldest = JobRun.objects.filter(status=JobRun.Status.QUEUED).aggregate(at=Min("created_at"))["at"]
    worked = JobRun.objects.aggregate(started=Max("started_at"), finished=Max("finished_at"))
    active = max((at for at in worked.values() if at), default=None)
    return {
        "pending_embeddings": Memory.objects.awaiting_embedding().count(),
        "pending_extractions": Conversation.objects.filter(extract_after__isnull=False).count(),
        "oldest_queued_job_seconds": seconds_since(oldest, now),
        "last_worker_activity_seconds": seconds_since(active, now),
    }


def seconds_since(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else round((now - at).total_seconds(), 1)


def warnings_about(lag: Mapping[str, Any]) -> list[str]:
    """A sentence each; none of them takes the service out of service."""
    quiet, waiting = lag["last_worker_activity_seconds"], lag["oldest_queued_job_seconds"]
    warnings = []
    if quiet is None or quiet > QUIET_WORKER.total_seconds():
        warnings.append("no worker has run a job lately")
    if waiting is not None and waiting > WAITING_JOB.total_seconds():
        warnings.append("a job has been waiting for a worker")
    if lag["pending_embeddings"] > LARGE_BACKLOG:
        warnings.append("many memories wait for their embedding")
    if lag["pending_extractions"] > LARGE_BACKLOG:
        warnings.append("many conversations wait for extraction")
    return warnings
