"""HTTP statuses of the service's errors. An error that is not listed has the status of its parent class."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from memory import errors
from memory_project.http import problems
from memory_project.http.problems import NOT_FOUND_DETAIL, ProblemDetails, problem_response

STATUS_OF: Mapping[type[errors.MemoryServiceError], int] = {
    errors.NotFound: 404,
    errors.Forbidden: 403,
    errors.Conflict: 409,
    errors.StaleVersion: 412,
    errors.Unprocessable: 422,
    errors.TooLarge: 413,
    errors.TooManyRuns: 429,
    errors.ProviderError: 503,
}


def handle_api_exception(exc: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """Handle an exception for DRF: the service's own errors first, then the general ones."""
    if isinstance(exc, errors.MemoryServiceError) and (details := describe_service_error(exc)):
        return problem_response(details)
    return problems.handle_exception(exc, context)


def describe_service_error(exc: errors.MemoryServiceError) -> ProblemDetails | None:
    status = next((STATUS_OF[kind] for kind in type(exc).__mro__ if kind in STATUS_OF), None)
    if status is None:
        return None
    # one sentence for all rows: different ones would reveal what exists in other accounts
    is_hidden = status == 404 and not isinstance(exc, errors.UnknownName)
    detail = NOT_FOUND_DETAIL if is_hidden else format_sentence(str(exc))
    facts = exc.facts if isinstance(exc, errors.TooLarge) else {}
    return ProblemDetails(status=status, code=exc.code, detail=detail, facts=facts, headers=_retry_after(exc))


def format_sentence(text: str) -> str:
    """Return a text of the service with a capital, unless it begins with the name of a field, and with a full stop."""
    first = text.partition(" ")[0]
    capital = text[:1].upper() + text[1:] if first.isalpha() else text
    return capital if capital.endswith((".", "?", "!")) else f"{capital}."


def _retry_after(exc: errors.MemoryServiceError) -> dict[str, str]:
    seconds = getattr(exc, "retry_after_seconds", None)
    return {"Retry-After": str(int(seconds) + 1)} if seconds else {}
