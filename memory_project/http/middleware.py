"""Middleware around every page and answer, including those of the admin."""

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from memory_project.http.paths import is_below_api
from memory_project.http.problems import describe_store_error, problem_response
from memory_project.ids import uuid7
from memory_project.logs import META_KEY, current_request_id

VALID_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


class RequestIdMiddleware:
    """Gives a request one id, for its answer, its problem and every line that it logs: the client's, if well-formed."""

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


class StoreErrorMiddleware(MiddlewareMixin):
    """Answers 503 instead of 500 for a page whose store is down. The API's exception handler does this for the API."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return store_error_response(request, exception)


def store_error_response(request: HttpRequest, exception: BaseException) -> HttpResponse | None:
    """Return a problem below /api, one line of text elsewhere; None if the exception is not a store's."""
    details = describe_store_error(exception)
    if details is None:
        return None
    if is_below_api(request.path):
        return problem_response(details)
    return HttpResponse(details.detail, status=details.status, content_type="text/plain", headers=dict(details.headers))


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """Allows only resources of this host, because the admin shows text written by strangers."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response
