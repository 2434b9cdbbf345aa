"""Request ids: one id in a request's answer, in its problem and in every line that it logs (`logs.IdFilter`)."""

import re
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponseBase

from memory_project.ids import uuid7

META_KEY = "memory_project.request_id"
VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")

current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")


class RequestIdMiddleware:
    """Middleware that takes the client's `X-Request-Id` if it is well-formed, and makes an id otherwise."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if VALID_REQUEST_ID.fullmatch(given) else str(uuid7())
        request.META[META_KEY] = request_id
        token = current_request_id.set(request_id)
        try:
            response = self.get_response(request)
        finally:
            current_request_id.reset(token)
        response["X-Request-Id"] = request_id
        return response
