"""Errors as clients see them: RFC 9457 problems, one shape for everything that goes wrong below /api."""

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import redis
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpResponse, UnreadablePostError
from psycopg_pool import PoolTimeout
from rest_framework import exceptions

from memory_project.http.request_ids import current_request_id

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
REDIS_ERRORS = (
    redis.ConnectionError,
    redis.TimeoutError,
    # it answers, but cannot do it: no memory left, a replica, its disk full (MISCONF comes as a ResponseError)
    redis.ResponseError,
)
POSTGRESQL_ERRORS = (OperationalError, InterfaceError, PoolTimeout)
STORE_ERRORS = (*REDIS_ERRORS, *POSTGRESQL_ERRORS)
NOT_FOUND_DETAIL = "There is no such thing, or not for this key."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDetails:
    """What a problem says. `facts` stand beside the standard members; `errors` are by field."""

    status: int
    code: str
    detail: str
    errors: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


class Problem(exceptions.APIException):
    """Raise it in a view to answer with these details."""

    def __init__(self, status: int, code: str, detail: str, **facts: Any) -> None:
        super().__init__(detail, code)
        self.details = ProblemDetails(status=status, code=code, detail=detail, facts=facts)


def answer_details(details: ProblemDetails) -> HttpResponse:
    """The response for these details."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(details.status).phrase,
        "status": details.status,
        "detail": details.detail,
        "code": details.code,
        "request_id": current_request_id.get(),
        **details.facts,
    }
    if details.errors is not None:
        body["errors"] = details.errors
    return HttpResponse(
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
        status=details.status,
        content_type=CONTENT_TYPE,
        headers=dict(details.headers),
    )


def answer_problem(exc: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """DRF's exception handler. None, and so a 500, for what nobody foresaw."""
    details = describe_problem(exc)
    return answer_details(details) if details else None


def describe_problem(exc: BaseException) -> ProblemDetails | None:
    """The details of any exception that is the client's doing or a store's; None for a mistake of ours."""
    if isinstance(exc, Problem):
        return exc.details
    if isinstance(exc, exceptions.APIException):
        return _describe_api_exception(exc)
    if isinstance(exc, Http404):
        return ProblemDetails(status=404, code="not_found", detail=NOT_FOUND_DETAIL)
    if isinstance(exc, PermissionDenied):
        return ProblemDetails(status=403, code="forbidden", detail="This is not allowed.")
    return describe_store_error(exc) or _describe_bad_request(exc)


def describe_store_error(exc: BaseException) -> ProblemDetails | None:
    """503 naming the store, when a store could not be reached."""
    if isinstance(exc, REDIS_ERRORS):
        # the first word of a refusal is its kind; the rest may quote
        logger.warning("Redis cannot serve: %s %s", type(exc).__name__, str(exc).partition(" ")[0])
        return _unavailable("redis_unavailable", "Redis cannot be reached, or cannot serve.")
    if isinstance(exc, POSTGRESQL_ERRORS):
        logger.warning("PostgreSQL is not reachable: %s", type(exc).__name__)
        return _unavailable("postgresql_unavailable", "PostgreSQL is not reachable.")
    return None


def _unavailable(code: str, detail: str) -> ProblemDetails:
    return ProblemDetails(status=503, code=code, detail=detail, headers={"Retry-After": "1"})


def _describe_bad_request(exc: BaseException) -> ProblemDetails | None:
    if isinstance(exc, RequestDataTooBig):
        return ProblemDetails(status=413, code="body_too_large", detail="The request body is too large.")
    if isinstance(exc, IntegrityError):
        logger.error("a write broke a constraint: %s", _constraint_of(exc))
        return ProblemDetails(status=409, code="conflict", detail="Another write came first; look and try again.")
    if isinstance(exc, UnreadablePostError):
        return ProblemDetails(status=400, code="body_cut_short", detail="The body ended before its length.")
    if isinstance(exc, (DataError, SuspiciousOperation)):
        return ProblemDetails(status=400, code="invalid", detail="The request holds a value that cannot be stored.")
    return None


def _constraint_of(exc: DatabaseError) -> str:
    return getattr(getattr(exc.__cause__, "diag", None), "constraint_name", None) or type(exc).__name__


def _describe_api_exception(exc: exceptions.APIException) -> ProblemDetails:
    if isinstance(exc, exceptions.ValidationError):
        return ProblemDetails(
            status=400, code="invalid", detail=summarize_errors(exc.detail), errors=errors_by_field(exc.detail)
        )
    if isinstance(exc, exceptions.NotFound):
        return ProblemDetails(status=404, code="not_found", detail=NOT_FOUND_DETAIL)
    return ProblemDetails(
        status=exc.status_code,
        code=str(exc.get_codes() if isinstance(exc.get_codes(), str) else exc.default_code),
        detail=str(exc.detail),
        headers=_headers_of(exc),
    )


def _headers_of(exc: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if authenticate := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = authenticate
    if wait := getattr(exc, "wait", None):
        headers["Retry-After"] = str(math.ceil(wait))
    return headers


def errors_by_field(detail: Any) -> dict[str, Any]:
    """DRF's nested details as plain JSON, always an object."""
    if isinstance(detail, Mapping):
        return {str(name): _plain(value) for name, value in detail.items()}
    return {"non_field_errors": _plain(detail)}


def _plain(detail: Any) -> Any:
    if isinstance(detail, Mapping):
        return {str(name): _plain(value) for name, value in detail.items()}
    if isinstance(detail, (list, tuple)):
        return [_plain(value) for value in detail]
    return str(detail)


def summarize_errors(detail: Any) -> str:
    """One sentence: which fields."""
    if isinstance(detail, Mapping):
        return "Not valid: " + ", ".join(sorted(map(str, detail))[:20]) + "."
    return "Not valid."
