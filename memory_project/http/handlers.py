"""Django's error handlers: problems below /api, Django's own pages elsewhere."""

import sys

from django.http import HttpRequest, HttpResponseBase
from django.views import defaults

from memory_project.http.middleware import answer_store_error
from memory_project.http.paths import InvalidId, is_below_api
from memory_project.http.problems import NOT_FOUND_DETAIL, ProblemDetails, answer_details


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not is_below_api(request.path):
        return defaults.bad_request(request, exception)
    known = isinstance(exception, InvalidId)
    code, detail = ("invalid_id", str(exception)) if known else ("bad_request", "The request is malformed.")
    return answer_details(ProblemDetails(status=400, code=code, detail=detail))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not is_below_api(request.path):
        return defaults.page_not_found(request, exception)
    return answer_details(ProblemDetails(status=404, code="not_found", detail=NOT_FOUND_DETAIL))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not is_below_api(request.path):
        return defaults.permission_denied(request, exception)
    return answer_details(ProblemDetails(status=403, code="forbidden", detail="This is not allowed."))


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Django calls it inside its `except`: the exception is at hand, and may be a store's."""
    exception = sys.exc_info()[1]
    if exception and (answer := answer_store_error(request, exception)):
        return answer
    if not is_below_api(request.path):
        return defaults.server_error(request)
    return answer_details(ProblemDetails(status=500, code="internal_error", detail="Something here is broken."))
