"""Counts and latencies of requests by route template, summed over the web server's processes.

Each process writes its figures into files of one folder (`share_counters`), and any of them reads all at a scrape.
"""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Counter, Histogram

LABELS = ("method", "route", "status")
REQUESTS = Counter("http_requests", "Requests answered.", LABELS, registry=None)
LATENCY = Histogram(
    "http_request_seconds",
    "Seconds from the first middleware to the answer.",
    ("method", "route"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=None,
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


class RequestMetrics:
    """Middleware: the outermost, so that it counts what the others refuse."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        response = self.get_response(request)
        route = route_of(request)
        # a client may invent methods, and each would be a series of its own
        method = request.method if request.method in METHODS else "other"
        LATENCY.labels(method, route).observe(time.perf_counter() - started)
        REQUESTS.labels(method, route, response.status_code).inc()
        return response


def route_of(request: HttpRequest) -> str:
    """The template of the path: as many series as routes, whatever ids clients send."""
    match = request.resolver_match
    return f"/{match.route}" if match else "unknown"
