"""Django's error handlers: problem documents below /api, pages of the admin for staff, Django's own elsewhere."""

import sys
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import Resolver404, reverse
from django.views import defaults

from memory_project.admin_lists import read_uuid
from memory_project.http.middleware import store_error_response
from memory_project.http.paths import InvalidId, is_below_api
from memory_project.http.problems import FORBIDDEN_DETAIL, NOT_FOUND_DETAIL, ProblemDetails, problem_response
from memory_project.http.routes import describe_unknown_route

NOTHING_THERE = (
    "There is nothing at this address that you may see. What was here may have been deleted or erased, or belong to "
    "another account than the one that is chosen at the top of the page."
)
NOT_ALLOWED = "Your user may not open this page, or may not do what you asked for. A superuser can give you the right."


def is_staff_page(request: HttpRequest) -> bool:
    """Return True for pages of the admin that a member of staff opens."""
    return request.path_info.startswith("/admin/") and hasattr(request, "user") and admin.site.has_permission(request)


def render_refusal(
    request: HttpRequest, title: str, explanation: str, *, status: int, audit_url: str = ""
) -> HttpResponse:
    """Render why there is no such page within the frame of the admin, so that its menu leads on."""
    shared = admin.site.each_context(request)
    context = {**shared, "title": title, "explanation": explanation, "audit_url": audit_url}
    return render(request, "admin/memory/refused.html", context, status=status)


def find_audit_url(request: HttpRequest) -> str:
    """Return the address of the audit entries about the row whose page was asked for; "" for other pages."""
    user: Any = request.user
    match = request.resolver_match
    row_id = read_uuid(str(match.kwargs.get("object_id", ""))) if match else None
    if row_id is None or not user.has_perm("memory.view_auditentry"):
        return ""
    return f"{reverse('admin:memory_auditentry_changelist')}?affected={row_id}&since=month"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not is_below_api(request.path):
        return defaults.bad_request(request, exception)
    known = isinstance(exception, InvalidId)
    code, detail = ("invalid_id", str(exception)) if known else ("bad_request", "The request is malformed.")
    return problem_response(ProblemDetails(status=400, code=code, detail=detail))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    # people see a page; programs that forgot the prefix are told the path
    if not is_below_api(request.path) and "text/html" in request.headers.get("Accept", ""):
        if is_staff_page(request):
            return render_refusal(request, "Not found", NOTHING_THERE, audit_url=find_audit_url(request), status=404)
        return defaults.page_not_found(request, exception)
    if isinstance(exception, Resolver404):
        detail = describe_unknown_route(request.path)
        return problem_response(ProblemDetails(status=404, code="unknown_route", detail=detail))
    return problem_response(ProblemDetails(status=404, code="not_found", detail=NOT_FOUND_DETAIL))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if is_staff_page(request):
        return render_refusal(request, "Not allowed", NOT_ALLOWED, status=403)
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
