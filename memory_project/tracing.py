"""OpenTelemetry: spans `gen_ai.memory.<operation>`, where an endpoint is configured; else nothing, at no cost.

Configured by OpenTelemetry's own variables: `OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) switches it on, and
the SDK is part of the installation. `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, headers and the
like are the SDK's. Spans are sent by OTLP over HTTP, every few seconds, by a thread; what cannot be sent is dropped.

Attributes are counts, kinds, models and our own ids: never a text, a key, an agent's or a user's id. Of an error, its
class. To trace an operation: `@traced("name")`, or `with span("name", count=3) as traced:`.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from functools import lru_cache, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponseBase

from memory_project.logs import current_job_id, current_request_id

logger = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
SERVICE_NAME = "agent-memory"
PREFIX = "gen_ai.memory."
EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
PACKAGES = ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

TIMEOUTS = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
SEND_SECONDS = 2
"""Seconds to send a batch, unless one of TIMEOUTS is set: a process that ends waits for its last batch."""

TRACE_HEADERS = ("traceparent", "tracestate")

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
Attribute = str | int | float | bool | UUID


class Span:
    """The handle with which a traced operation adds attributes; without tracing (no `inner`) it does nothing."""

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner

    def note(self, **attributes: Attribute) -> None:
        """Add attributes that are known only later."""
        if self._inner is not None:
            self._inner.set_attributes(named(attributes))


def is_wanted() -> bool:
    return any(os.environ.get(name) for name in ENDPOINTS)


def is_sdk_installed() -> bool:
    try:
        return all(find_spec(name) is not None for name in PACKAGES)
    except ModuleNotFoundError:  # of what they are in
        return False


@lru_cache(maxsize=1)
def find_tracer() -> Any | None:
    """Return OpenTelemetry's tracer, made with the process's first span, or None if tracing is off or unavailable.

    After a change of the environment, call `.cache_clear()`.
    """
    if not is_wanted():
        return None
    if not is_sdk_installed():
        logger.error("nothing is traced: OpenTelemetry is not installed")
        return None
    try:
        return make_provider().get_tracer("memory")
    except (ImportError, ValueError) as err:
        logger.error(
            "nothing is traced: OpenTelemetry cannot be configured from its environment variables: %s",
            type(err).__name__,
        )
        return None


def make_provider() -> Any:
    """Return the provider of an instrumented process, or else make one. Raises ImportError, ValueError."""
    sdk, export = import_module("opentelemetry.sdk.trace"), import_module("opentelemetry.sdk.trace.export")
    known = import_module("opentelemetry.trace").get_tracer_provider()
    if isinstance(known, sdk.TracerProvider):
        return known
    own = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": SERVICE_NAME}
    resource = import_module("opentelemetry.sdk.resources").Resource.create(own)
    provider = sdk.TracerProvider(resource=resource)
    seconds = None if any(os.environ.get(name) for name in TIMEOUTS) else SEND_SECONDS
    exporter = import_module(EXPORTER).OTLPSpanExporter(timeout=seconds)
    provider.add_span_processor(export.BatchSpanProcessor(exporter))
    return provider


@contextmanager
def span(operation: str, **attributes: Attribute) -> Iterator[Span]:
    """Trace the operation within. Whatever it raises is raised again."""
    tracer = find_tracer()
    if tracer is None:
        yield Span()
        return
    # the request and the job run that this is a part of
    ids = {"request_id": current_request_id.get(), "job_id": current_job_id.get()}
    known = {name: value for name, value in ids.items() if value} | attributes
    known = {"gen_ai.operation.name": operation, **named(known)}
    # an exception's words may quote what is remembered
    quiet = {"record_exception": False, "set_status_on_exception": False}
    with tracer.start_as_current_span(f"{PREFIX}{operation}", attributes=known, **quiet) as inner:
        try:
            yield Span(inner)
        except Exception as err:
            name = type(err).__name__
            inner.set_attribute("error.type", name)
            inner.set_status(import_module("opentelemetry.trace").StatusCode.ERROR, name)
            raise


def account_of(first: Any) -> UUID | None:
    """Return an owner's account."""
    account_id: UUID | None = getattr(first, "account_id", None)
    return account_id


def traced(
    operation: str,
    *,
    account: Callable[[Any], UUID | None] = account_of,
    attributes: Callable[[Any], Mapping[str, Attribute]] | None = None,
) -> Callable[[F], F]:
    """Trace a function, with the `account` of its first argument and the `attributes` of its result."""

    def decorate(function: F) -> F:
        @wraps(function)
        def call(first: Any, *args: Any, **kwargs: Any) -> Any:
            if find_tracer() is None:
                return function(first, *args, **kwargs)
            account_id = account(first)
            with span(operation, **({} if account_id is None else {"account_id": account_id})) as open_span:
                result = function(first, *args, **kwargs)
                open_span.note(**(attributes(result) if attributes else {}))
                return result

        return cast("F", call)

    return decorate


def carried(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function for another thread, so that its traces and logs belong to the current operation. Call it once."""
    context = copy_context()

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.run(function, *args, **kwargs)

    return call


def named(attributes: Mapping[str, Attribute]) -> dict[str, str | int | float | bool]:
    return {f"{PREFIX}{name}": str(value) if isinstance(value, UUID) else value for name, value in attributes.items()}


class TraceParentMiddleware:
    """Middleware that continues traces: a request with a `traceparent` (W3C Trace Context) joins its caller's trace.

    Disabled where tracing is off; malformed headers are ignored.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if find_tracer() is None:
            raise MiddlewareNotUsed
        self.get_response = get_response
        self._context: Any = import_module("opentelemetry.context")
        self._format: Any = import_module(
            "opentelemetry.trace.propagation.tracecontext"
        ).TraceContextTextMapPropagator()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        brought = {name: request.headers[name] for name in TRACE_HEADERS if name in request.headers}
        if not brought:
            return self.get_response(request)
        token = self._context.attach(self._format.extract(brought))
        try:
            return self.get_response(request)
        finally:
            self._context.detach(token)
