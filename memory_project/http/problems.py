"""Problem documents (RFC 9457): the one shape of every error below /api."""

import errno
import json
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import psycopg
import redis
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DataError, IntegrityError, InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from psycopg_pool import PoolTimeout
from rest_framework import exceptions

from memory_project.http.error_codes import type_of
from memory_project.logs import current_request_id
from memory_project.postgresql.base import OutcomeUnknownError
from memory_project.postgresql.constraints import broken_constraint
from memory_project.redis_cluster import ClusterUnavailable

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
REDIS_ERRORS = (
    redis.ConnectionError,
    redis.TimeoutError,
    # it answers but cannot serve: out of memory, a replica, or its disk is full (MISCONF is a ResponseError)
    redis.ResponseError,
)
POSTGRESQL_ERRORS = (OperationalError, InterfaceError, PoolTimeout)
NO_SPACE = os.strerror(errno.ENOSPC)
WRONG_TYPE = "WRONGTYPE"
WRONG_TYPE_DETAIL = (
    "What is stored here has another type than this service stores, and cannot be read. Delete it, and store it again."
)
NOT_FOUND_DETAIL = "Not found: it does not exist, or this key may not see it."
FORBIDDEN_DETAIL = "This key may not do this."
NO_CONTEXT: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDetails:
    """The content of a problem. `facts` become members next to the standard ones; `errors` are by field name."""

    status: int
    code: str
    detail: str
    errors: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


class Problem(exceptions.APIException):
    """An exception that a view raises to answer with these details."""

    def __init__(self, status: int, code: str, detail: str, **facts: Any) -> None:
        super().__init__(detail, code)
        self.details = ProblemDetails(status=status, code=code, detail=detail, facts=facts)


def problem_response(details: ProblemDetails) -> HttpResponse:
    """Return the response that carries these details."""
    body: dict[str, Any] = {
        "type": type_of(details.code),
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


def handle_exception(exc: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """Handle an exception for DRF. Returns None, and so a 500, for one that nobody foresaw."""
    details = describe_problem(exc, context)
    return problem_response(details) if details else None


def describe_problem(exc: BaseException, context: Mapping[str, Any] = NO_CONTEXT) -> ProblemDetails | None:
    """Return the details of an exception caused by the client or a store; None for a bug of ours."""
    if isinstance(exc, Problem):
        return exc.details
    if isinstance(exc, exceptions.APIException):
        return _describe_api_exception(exc, context)
    if isinstance(exc, Http404):
        return ProblemDetails(status=404, code="not_found", detail=NOT_FOUND_DETAIL)
    if isinstance(exc, PermissionDenied):
        return ProblemDetails(status=403, code="forbidden", detail=FORBIDDEN_DETAIL)
    return describe_refused_user(exc) or describe_store_error(exc) or _describe_bad_request(exc)


def describe_store_error(exc: BaseException) -> ProblemDetails | None:
    """Return a 503 that names the store if the exception says that a store cannot serve, else None."""
    if isinstance(exc, ClusterUnavailable):
        logger.warning("%s", exc)
        return _unavailable("redis_unavailable", f"{exc}. Try again later.")
    if isinstance(exc, redis.ResponseError) and WRONG_TYPE in str(exc):
        # the script that failed may stand before it
        logger.error("A key of Redis has a value of another type than the service stores there")
        return ProblemDetails(status=409, code="conflict", detail=WRONG_TYPE_DETAIL)
    if isinstance(exc, REDIS_ERRORS):
        # the first word of an error is its kind; the rest may quote values
        logger.warning("Redis cannot serve: %s %s", type(exc).__name__, str(exc).partition(" ")[0])
        if NO_SPACE in str(exc):
            return replace(FULL_DISK, detail="Redis has no disk space left. Nothing was stored. Try again later.")
        return _unavailable("redis_unavailable", "Redis is not reachable, or cannot serve. Try again later.")
    if isinstance(exc, OutcomeUnknownError):
        logger.warning("PostgreSQL was lost during a commit: %s", type(exc.__cause__).__name__)
        return _unavailable(
            "outcome_unknown",
            "PostgreSQL was lost while it stored this: it may be stored, or not. Send it again with the same "
            "Idempotency-Key or client_id, or look whether it is there.",
        )
    cause = type(exc.__cause__)
    if isinstance(exc, OperationalError) and (details := STATEMENT_ERRORS.get(cause)):
        logger.warning("PostgreSQL ended a statement: %s", cause.__name__)
        return details
    if isinstance(exc, POSTGRESQL_ERRORS):
        logger.warning("PostgreSQL is not reachable: %s", type(exc).__name__)
        return _unavailable("postgresql_unavailable", "PostgreSQL is not reachable. Try again later.")
    return None


def describe_refused_user(exc: BaseException) -> ProblemDetails | None:
    """Return a 409 if the database refused a row of an erased user, else None."""
    if getattr(exc.__cause__, "sqlstate", None) != ERASED_USER:
        return None
    return ProblemDetails(status=409, code="conflict", detail=str(exc.__cause__).splitlines()[0])


def _unavailable(code: str, detail: str) -> ProblemDetails:
    return ProblemDetails(status=503, code=code, detail=detail, headers={"Retry-After": "1"})


ERASED_USER = "MS409"
"""SQLSTATE of the trigger that refuses rows of an erased user."""
FULL_DISK = ProblemDetails(
    status=507, code="no_space", detail="The database has no disk space left. Nothing was stored. Try again later."
)
STATEMENT_ERRORS: Mapping[type, ProblemDetails] = {
    psycopg.errors.LockNotAvailable: _unavailable(
        "row_locked", "Another request works on what this one would change. Try again."
    ),
    psycopg.errors.DeadlockDetected: _unavailable(
        "row_locked", "Another request and this one waited for each other, and this one was ended. Try again."
    ),
    psycopg.errors.QueryCanceled: _unavailable("statement_timeout", "The database took too long. Ask for less."),
    psycopg.errors.DiskFull: FULL_DISK,
}
"""Problems of statements that PostgreSQL ended though it serves others."""


def _describe_bad_request(exc: BaseException) -> ProblemDetails | None:
    if isinstance(exc, RequestDataTooBig):
        return ProblemDetails(status=413, code="body_too_large", detail="The request body is too large.")
    if isinstance(exc, IntegrityError):
        constraint = broken_constraint(exc)
        logger.error("a write broke a constraint: %s", constraint or type(exc).__name__)
        detail = "Another write came first. Read the present state and try again."
        return ProblemDetails(status=409, code="conflict", detail=detail)
    if isinstance(exc, (DataError, SuspiciousOperation)):
        return ProblemDetails(status=400, code="invalid", detail="The request holds a value that cannot be stored.")
    return None


def _describe_api_exception(exc: exceptions.APIException, context: Mapping[str, Any]) -> ProblemDetails:
    if isinstance(exc, exceptions.ValidationError):
        return ProblemDetails(
            status=400, code="invalid", detail=summarize_errors(exc.detail), errors=errors_by_field(exc.detail)
        )
    if isinstance(exc, exceptions.NotFound):
        return ProblemDetails(status=404, code="not_found", detail=NOT_FOUND_DETAIL)
    headers: dict[str, str] = {}
    if authenticate := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = authenticate
    if wait := getattr(exc, "wait", None):
        headers["Retry-After"] = str(math.ceil(wait))
    code = exc.get_codes()
    return ProblemDetails(
        status=exc.status_code,
        code=code if isinstance(code, str) else exc.default_code,
        detail=describe_remedy(exc, context),
        headers=headers,
    )


def describe_remedy(exc: exceptions.APIException, context: Mapping[str, Any]) -> str:
    """Return the detail of an exception of DRF, with what to do about it where DRF does not say."""
    if isinstance(exc, exceptions.NotAuthenticated):
        return "This path needs an API key. Send the header `Authorization: Bearer <key>`."
    if isinstance(exc, exceptions.UnsupportedMediaType):
        return f"{exc.detail} Send JSON, with the header `Content-Type: application/json`."
    view = context.get("view")
    if isinstance(exc, exceptions.MethodNotAllowed) and view is not None:
        return f"{exc.detail} Allowed here: {', '.join(view.allowed_methods)}."
    return str(exc.detail)


def errors_by_field(detail: Any) -> dict[str, Any]:
    """Return DRF's nested details as plain JSON, always an object."""
    plain = _plain_detail(detail)
    return plain if isinstance(plain, dict) else {"non_field_errors": plain}


def _plain_detail(detail: Any) -> Any:
    if isinstance(detail, Mapping):
        return {str(name): _plain_detail(value) for name, value in detail.items()}
    if isinstance(detail, (list, tuple)):
        return [_plain_detail(value) for value in detail]
    return str(detail)


def summarize_errors(detail: Any) -> str:
    """Return one sentence that names the invalid fields, at most 20 of them."""
    if isinstance(detail, Mapping):
        return "Not valid: " + ", ".join(sorted(map(str, detail))[:20]) + ". See `errors`."
    return "Not valid. See `errors`."
