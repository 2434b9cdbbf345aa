"""What surrounds every page and answer, the admin's included."""

import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from memory_project.http.paths import is_below_api
from memory_project.http.problems import answer_details, describe_store_error

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


class UnavailableStores:
    """503 instead of 500 for a page whose store is down; answers of the API see to it themselves."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return answer_store_error(request, exception)


def answer_store_error(request: HttpRequest, exception: BaseException) -> HttpResponse | None:
    """A problem below /api, one line of text elsewhere; None for what no store did."""
    details = describe_store_error(exception)
    if details is None:
        return None
    if is_below_api(request.path):
        return answer_details(details)
    return HttpResponse(details.detail, status=details.status, content_type="text/plain", headers=dict(details.headers))


class ContentSecurityPolicy:
    """Only what we serve ourselves: the admin shows text written by strangers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response
