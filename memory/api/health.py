"""`/health/live` and `/health/ready`, for orchestrators and load balancers. They need no key and show no account."""

from concurrent.futures import Future
from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from redis import RedisError, ResponseError

from memory.maintenance import JOBS
from memory.models import Conversation, Memory
from memory.services.operations.alerts import find_alerts_of_redis, find_alerts_of_rows, read_worker_signs
from memory.services.operations.backlogs import MAX_COUNTED
from memory.services.operations.canary import compare_keys
from memory_project.deadlines import POSTGRESQL, REDIS, AnswerDeadline
from memory_project.http.problems import NO_SPACE
from memory_project.postgresql.replicas import Replica, replicas
from memory_project.redis import SHARED_KEYS, client, refuse_cluster_node
from memory_project.redis_cluster import ClusterUnavailable
from memory_project.stopping import STOPPING

TIMEOUT_SECONDS = 2.5
STATEMENT_TIMEOUT_MS = 2_000
PROBE_SECONDS = 10
DISK_ERROR = "MISCONF"
"""The first word of what Redis answers while it cannot write its files."""


class NotReady(Exception):  # noqa: N818  a finding, not a fault
    """The sentence that says what is missing."""


@csrf_exempt
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Answer that the process is running. Uses no store."""
    return JsonResponse({"status": "live"})


@csrf_exempt
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Answer 503 if PostgreSQL, its vector extension, Redis or a key fails, and say which; also when it stops.

    Late work is only a warning.
    """
    if STOPPING.is_set():
        return JsonResponse({"status": "stopping", "checks": {}}, status=503)
    deadline = AnswerDeadline(TIMEOUT_SECONDS)
    checks = run_checks(deadline)
    is_ready = all(result == "ok" for result in checks.values())
    body: dict[str, Any] = {"status": "ready" if is_ready else "unavailable", "checks": checks}
    if known := replicas():
        body["replicas"] = {each.alias: describe_replica(each) for each in known}
    if checks["postgresql"] == "ok":
        body |= describe_lag(deadline, has_redis=checks["redis"] == "ok")
    return JsonResponse(body, status=200 if is_ready else 503)


def describe_replica(replica: Replica) -> dict[str, Any]:
    """Return the state of a replica. One that is left out is no outage: the primary answers."""
    lag = replica.lag_seconds()
    return {"state": replica.describe(), "lag_seconds": None if lag is None else round(lag, 1)}


def run_checks(deadline: AnswerDeadline) -> dict[str, str]:
    """Return the result of each check by name. The extension is only checked if PostgreSQL answers."""
    asked = {"postgresql": POSTGRESQL.ask(lambda: fetch_one("SELECT 1")), "redis": REDIS.ask(write_to_redis)}
    checks = {name: await_check(question, deadline) for name, question in asked.items()}
    of_database = {"vector_extension": check_vector_extension, "keys": check_keys_of_database}
    if checks["postgresql"] != "ok":
        return checks | dict.fromkeys(of_database, "not known")
    return checks | {name: await_check(POSTGRESQL.ask(check), deadline) for name, check in of_database.items()}


def await_check(check: "Future[Any]", deadline: AnswerDeadline) -> str:
    """Return "ok", or what is wrong."""
    try:
        deadline.wait_for(check)
    except (NotReady, ClusterUnavailable) as err:
        return str(err)
    except TimeoutError:
        return "does not answer"
    except ResponseError as err:
        return describe_refusal(err)
    except (DatabaseError, RedisError) as err:
        return f"not reachable ({type(err).__name__})"
    return "ok"


def describe_refusal(err: ResponseError) -> str:
    """Return why Redis refuses to write: its disk, if it says so."""
    if NO_SPACE in str(err):
        return "has no disk space left, and refuses writes"
    if str(err).startswith(DISK_ERROR):
        return "cannot write to its disk, and refuses writes"
    return f"refuses commands ({type(err).__name__})"


def write_to_redis() -> None:
    """Write a key that lives for a moment: a Redis without memory still answers a PING.

    Raises NotReady for a node of a Redis Cluster that is named as a single Redis.
    """
    try:
        refuse_cluster_node()
    except ImproperlyConfigured as err:
        raise NotReady(f"{err}") from err
    client().set(SHARED_KEYS["health_probe"], "1", ex=PROBE_SECONDS)


def check_vector_extension() -> None:
    if fetch_one("SELECT extversion FROM pg_extension WHERE extname = 'vector'") is None:
        raise NotReady("the extension is not installed")


def check_keys_of_database() -> None:
    """Raise NotReady if this process has other keys than the database: another node may have other secrets."""
    try:
        compare_keys()
    except ImproperlyConfigured as err:
        raise NotReady(f"{err}") from err


def fetch_one(statement: str) -> Any:
    """Return the first row of a statement that may take at most STATEMENT_TIMEOUT_MS."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {STATEMENT_TIMEOUT_MS}")
        cursor.execute(statement)
        return cursor.fetchone()


def describe_lag(deadline: AnswerDeadline, *, has_redis: bool) -> dict[str, Any]:
    """Return `lag` and `warnings`. A measurement that takes too long is a warning as well, not an outage."""
    now = timezone.now()
    rows = POSTGRESQL.ask(lambda: (measure_background_lag(now), find_alerts_of_rows(now, jobs=JOBS.values())))
    memory = REDIS.ask(find_alerts_of_redis) if has_redis else None
    try:
        lag, alerts = deadline.wait_for(rows)
        more = deadline.wait_for(memory) if memory else []
    except (DatabaseError, TimeoutError):
        return {"warnings": ["The lag of background work could not be measured in time."]}
    return {"lag": lag, "warnings": [alert.text for alert in (*alerts, *more)]}


def measure_background_lag(now: datetime) -> dict[str, Any]:
    """Return how late background work is. A count of MOST_COUNTED stands for that many or more."""
    workers = read_worker_signs(now)
    due = Conversation.objects.filter(extract_after__isnull=False).order_by("extract_after")
    return {
        "pending_embeddings": Memory.objects.awaiting_embedding().order_by("embed_after")[:MAX_COUNTED].count(),
        "pending_extractions": due[:MAX_COUNTED].count(),
        "oldest_queued_job_seconds": seconds_since(workers.queued_since, now),
        "last_worker_activity_seconds": seconds_since(workers.seen, now),
    }


def seconds_since(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else round((now - at).total_seconds(), 1)
