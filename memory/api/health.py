"""`/health/live` and `/health/ready`, for whoever restarts and routes; no key, and nothing of any account in them."""

from concurrent.futures import Future
from datetime import datetime
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from redis import RedisError

from memory.maintenance import JOBS
from memory.models import Conversation, Memory
from memory.services.operations.alerts import MOST_COUNTED, find_alerts_of_redis, find_alerts_of_rows, look_for_workers
from memory_project.deadlines import POSTGRESQL, REDIS, Deadline
from memory_project.redis import client

MOST_SECONDS = 2.5
MOST_MILLISECONDS = 2_000


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
        body |= describe_lag(deadline, has_redis=checks["redis"] == "ok")
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


def describe_lag(deadline: Deadline, *, has_redis: bool) -> dict[str, Any]:
    """`lag` and `warnings`. That they could not be had in time takes nothing out of service either."""
    now = timezone.now()
    rows = POSTGRESQL.ask(lambda: (measure_lag(now), find_alerts_of_rows(now, jobs=JOBS.values())))
    memory = REDIS.ask(find_alerts_of_redis) if has_redis else None
    try:
        lag, alerts = deadline.wait_for(rows)
        more = deadline.wait_for(memory) if memory else []
    except (DatabaseError, TimeoutError):
        return {"warnings": ["What lags could not be measured in time."]}
    return {"lag": lag, "warnings": [alert.text for alert in (*alerts, *more)]}


def measure_lag(now: datetime) -> dict[str, Any]:
    """How far behind the work in the background is; of counts, MOST_COUNTED stands for more."""
    workers = look_for_workers(now)
    due = Conversation.objects.filter(extract_after__isnull=False).order_by("extract_after")
    return {
        "pending_embeddings": Memory.objects.awaiting_embedding().order_by("embed_after")[:MOST_COUNTED].count(),
        "pending_extractions": due[:MOST_COUNTED].count(),
        "oldest_queued_job_seconds": seconds_since(workers.queued_since, now),
        "last_worker_activity_seconds": seconds_since(workers.seen, now),
    }


def seconds_since(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else round((now - at).total_seconds(), 1)
