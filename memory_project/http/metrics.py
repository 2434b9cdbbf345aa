"""Request counts and latencies by route template, summed over the web server's processes.

Each process writes its figures to files in a shared folder (`share_counters`); the process that is scraped reads all.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Counter, Histogram

access_logger = logging.getLogger("memory_project.access")

REQUEST_LABELS = ("method", "route", "status")
REQUESTS = Counter("memory_http_requests", "Requests answered.", REQUEST_LABELS, registry=None)
LATENCY = Histogram(
    "memory_http_request_seconds",
    "Seconds from the first middleware to the answer.",
    ("method", "route"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=None,
)
KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


class RequestMetricsMiddleware:
    """Middleware that counts requests. It is the outermost, so it also counts what other middleware refuses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        response = self.get_response(request)
        # the path's template, so that ids in paths do not create time series
        match = request.resolver_match
        route = f"/{match.route}" if match else "unknown"
        # clients can invent methods, and each would create a time series
        method = request.method if request.method in KNOWN_METHODS else "other"
        seconds = time.perf_counter() - started
        LATENCY.labels(method, route).observe(seconds)
        REQUESTS.labels(method, route, response.status_code).inc()
        if access_logger.isEnabledFor(logging.INFO):
            log_access(request, {"method": method, "route": route, "status": response.status_code, "seconds": seconds})
        return response


def log_access(request: HttpRequest, answered: Mapping[str, Any]) -> None:
    """Log a request that was answered: by the path's template, because paths and queries hold what clients wrote."""
    line = "%(method)s %(route)s %(status)d in %(seconds).3f s"
    access_logger.info(line, answered, extra={"request": request, "access": answered})
