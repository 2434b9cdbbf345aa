"""Request counts and latencies by route template, summed over the web server's processes.

Each process writes its figures to files in a shared folder (`share_counters`); the process that is scraped reads all.
"""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Counter, Histogram

REQUEST_LABELS = ("method", "route", "status")
REQUESTS = Counter("http_requests", "Requests answered.", REQUEST_LABELS, registry=None)
LATENCY = Histogram(
    "http_request_seconds",
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
        LATENCY.labels(method, route).observe(time.perf_counter() - started)
        REQUESTS.labels(method, route, response.status_code).inc()
        return response
