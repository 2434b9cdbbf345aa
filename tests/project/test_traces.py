"""Traces, as a collector of OTLP over HTTP receives them: counts, ids and classes of errors, and no words."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.http import HttpResponse
from django.test import RequestFactory
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memory.agent_memory import AgentMemory
from memory.models import JobRun
from memory.owner import Owner
from memory_project.logs import logged_as_job
from memory_project.tracing import ENDPOINTS, TraceParentMiddleware, carried, find_tracer, span
from tests.embedding_server import EmbeddingServer

ACCOUNT = UUID(int=7)
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"

Spans = Callable[[], dict[str, Any]]


@pytest.fixture(autouse=True)
def _untraced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    find_tracer.cache_clear()
    yield
    find_tracer.cache_clear()


@pytest.fixture
def collected(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Send spans to a collector for the length of the test, and return a function that lists them by name."""
    bodies: list[bytes] = []

    def collect(request: Request) -> Response:
        bodies.append(request.get_data())
        return Response(b"", content_type="application/x-protobuf")

    httpserver.expect_request("/v1/traces", method="POST").respond_with_handler(collect)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", httpserver.url_for(""))
    yield lambda: spans_of(bodies)
    tracer = find_tracer()
    assert tracer is not None
    tracer.span_processor.shutdown()


def spans_of(bodies: list[bytes]) -> dict[str, Any]:
    tracer = find_tracer()
    assert tracer is not None
    assert tracer.span_processor.force_flush(5_000)
    requests = [ExportTraceServiceRequest.FromString(body) for body in bodies]
    scopes = [scope for request in requests for each in request.resource_spans for scope in each.scope_spans]
    return {each.name: each for scope in scopes for each in scope.spans}


def attributes_of(found: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in found.attributes}


def test_a_span_carries_counts_and_ids(collected: Spans) -> None:
    run_id = UUID(int=9)
    with logged_as_job(run_id), span("recall", account_id=ACCOUNT, kind="turn") as found:
        found.note(results=3)

    recalled = collected()["gen_ai.memory.recall"]

    assert attributes_of(recalled) == {
        "gen_ai.operation.name": "recall",
        "gen_ai.memory.account_id": str(ACCOUNT),
        "gen_ai.memory.kind": "turn",
        "gen_ai.memory.results": 3,
        "gen_ai.memory.job_id": str(run_id),
    }


def test_a_failed_span_carries_the_class_of_the_error_but_not_its_message(collected: Spans) -> None:
    with pytest.raises(ValueError, match="secret"), span("store"):
        raise ValueError("secret")

    stored = collected()["gen_ai.memory.store"]

    assert (stored.status.code, stored.status.message) == (2, "ValueError")
    assert attributes_of(stored)["error.type"] == "ValueError"
    assert b"secret" not in stored.SerializeToString()


def test_a_span_in_another_thread_is_a_child_if_its_context_is_carried_over(collected: Spans) -> None:
    def ask() -> None:
        with span("chat"):
            pass

    with span("job"), ThreadPoolExecutor(1) as pool:
        pool.submit(carried(ask)).result()

    found = collected()
    assert found["gen_ai.memory.chat"].parent_span_id == found["gen_ai.memory.job"].span_id


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(("brought", "is_child"), [(f"00-{TRACE}-{PARENT}-01", True), ("nonsense", False)])
def test_a_request_continues_the_trace_of_a_valid_traceparent_header(
    collected: Spans, brought: str, is_child: bool
) -> None:
    def answer(request: Any) -> HttpResponse:
        with span("context"):
            return HttpResponse()

    TraceParentMiddleware(answer)(RequestFactory().get("/", headers={"traceparent": brought}))

    found = collected()["gen_ai.memory.context"]
    assert (found.trace_id.hex() == TRACE, found.parent_span_id.hex() == PARENT) == (is_child, is_child)


@pytest.mark.django_db
def test_a_recall_is_traced_with_its_embedding_request(
    collected: Spans, owner: Owner, embedding_server: EmbeddingServer, empty_redis: None
) -> None:
    memory = AgentMemory(owner)
    memory.store_turn("chat-1", {"role": "user", "content": "a secret key"})
    memory.remember("Where is the secret key?")

    found = collected()

    recalled, embedded = found["gen_ai.memory.recall"], found["gen_ai.memory.embed"]
    assert attributes_of(recalled) == {
        "gen_ai.operation.name": "recall",
        "gen_ai.memory.account_id": str(owner.account_id),
        "gen_ai.memory.results": 1,
    }
    assert embedded.parent_span_id == recalled.span_id
    assert attributes_of(found["gen_ai.memory.store"])["gen_ai.memory.kind"] == "turn"
    assert not [each for each in found.values() if b"secret" in each.SerializeToString()]


@pytest.mark.django_db
def test_a_job_run_is_traced(collected: Spans) -> None:
    call_command("run_job", "cleanup", stdout=StringIO())

    ran = attributes_of(collected()["gen_ai.memory.job"])

    assert ran["gen_ai.memory.job"] == "cleanup"
    assert ran["gen_ai.memory.job_id"] == str(JobRun.objects.get(job="cleanup").id)
