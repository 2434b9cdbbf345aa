"""Django's error handlers: problem documents below /api, Django's own pages elsewhere."""

import sys

from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404
from django.views import defaults

from memory_project.http.middleware import store_error_response
from memory_project.http.paths import InvalidId, is_below_api
from memory_project.http.problems import FORBIDDEN_DETAIL, NOT_FOUND_DETAIL, ProblemDetails, problem_response
from memory_project.http.routes import describe_unknown_route


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not is_below_api(request.path):
        return defaults.bad_request(request, exception)
    known = isinstance(exception, InvalidId)
    code, detail = ("invalid_id", str(exception)) if known else ("bad_request", "The request is malformed.")
    return problem_response(ProblemDetails(status=400, code=code, detail=detail))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    # people see a page; programs that forgot the prefix are told the path
    if not is_below_api(request.path) and "text/html" in request.headers.get("Accept", ""):
        return defaults.page_not_found(request, exception)
    if isinstance(exception, Resolver404):
        detail = describe_unknown_route(request.path)
        return problem_response(ProblemDetails(status=404, code="unknown_route", detail=detail))
    return problem_response(ProblemDetails(status=404, code="not_found", detail=NOT_FOUND_DETAIL))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not is_below_api(request.path):
        return defaults.permission_denied(request, exception)
    return problem_response(ProblemDetails(status=403, code="forbidden", detail=FORBIDDEN_DETAIL))


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer 503 for an error of a store, else 500. Django calls this inside its `except`, so `sys.exc_info` is set."""
    exception = sys.exc_info()[1]
    if exception and (answer := store_error_response(request, exception)):
        return answer
    if not is_below_api(request.path):
        return defaults.server_error(request)
    detail = "The service failed on this request because of a bug. Report the request_id to its operator."
    return problem_response(ProblemDetails(status=500, code="internal_error", detail=detail))
