"""Trace propagation: a request with a `traceparent` header (W3C Trace Context) joins its caller's trace."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponseBase

from memory_project.tracing import find_tracer

TRACE_HEADERS = ("traceparent", "tracestate")


class TraceParentMiddleware:
    """Middleware that continues traces. Disabled where tracing is off; malformed headers are ignored."""

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
