"""One id for a request, in its answer, its problem and every line it logs."""

import logging
import re
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponseBase

from memory_project.ids import uuid7

IN_META = "memory_project.request_id"
SANE = re.compile(r"[A-Za-z0-9._-]{1,100}")

current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")


class RequestIds:
    """Middleware: takes the client's `X-Request-Id` where it is sane, makes one where it is not."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if SANE.fullmatch(given) else str(uuid7())
        request.META[IN_META] = request_id
        token = current_request_id.set(request_id)
        try:
            response = self.get_response(request)
        finally:
            current_request_id.reset(token)
        response["X-Request-Id"] = request_id
        return response


class RequestIdFilter(logging.Filter):
    """Gives every log record the `request_id` it was logged for; a dash outside of requests."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = current_request_id.get() or _id_of_request(record) or "-"
        return True


def _id_of_request(record: logging.LogRecord) -> str:
    """Django logs a failed answer when all middleware is behind it, and hands the request over."""
    return str(getattr(getattr(record, "request", None), "META", {}).get(IN_META, ""))
