"""Which status each error of the service has. An error that is not named has its parent's."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from memory import errors
from memory_project.http import problems
from memory_project.http.problems import NOT_FOUND_DETAIL, ProblemDetails, answer_details

STATUS_OF: Mapping[type[errors.MemoryServiceError], int] = {
    errors.NotFound: 404,
    errors.Forbidden: 403,
    errors.Conflict: 409,
    errors.StaleVersion: 412,
    errors.Unprocessable: 422,
    errors.TooLarge: 413,
    errors.ProviderError: 503,
}


def answer_problem(exc: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """DRF's exception handler: the service's own errors, then everybody's."""
    if isinstance(exc, errors.MemoryServiceError) and (details := describe_service_error(exc)):
        return answer_details(details)
    return problems.answer_problem(exc, context)


def describe_service_error(exc: errors.MemoryServiceError) -> ProblemDetails | None:
    status = next((STATUS_OF[kind] for kind in type(exc).__mro__ if kind in STATUS_OF), None)
    if status is None:
        return None
    # one sentence for everything that is not there: a different one would tell strangers apart
    detail = NOT_FOUND_DETAIL if status == 404 else str(exc)
    facts = exc.facts if isinstance(exc, errors.TooLarge) else {}
    return ProblemDetails(status=status, code=exc.code, detail=detail, facts=facts, headers=_retry_after(exc))


def _retry_after(exc: errors.MemoryServiceError) -> dict[str, str]:
    seconds = getattr(exc, "retry_after_seconds", None)
    return {"Retry-After": str(int(seconds) + 1)} if seconds else {}
