"""Middleware around every page and answer, including those of the admin."""

import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from memory_project.http.paths import is_below_api
from memory_project.http.problems import describe_store_error, problem_response

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

logger = logging.getLogger(__name__)


class StoreErrorMiddleware:
    """Answers 503 instead of 500 for a page whose store is down. The API's exception handler does this for the API."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

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


class ContentSecurityPolicyMiddleware:
    """Allows only resources of this host, because the admin shows text written by strangers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response
