"""The exceptions of the service.

    MemoryServiceError
    ├── NotFound                      the owner sees no such object; other accounts' objects are no different
    │   └── UnknownName               the service itself has nothing of this name; the message says which names it has
    ├── Forbidden                     the key may not do this, or not for this agent
    ├── Conflict                      another request is doing, or has done, the same
    ├── StaleVersion                  the caller has seen an older version
    ├── Unprocessable                 a well-formed request that contradicts itself or what is stored
    │   └── WrongVectorWidth          a vector whose width is not that of its model
    ├── TooLarge (and ValueError)     over a limit; says which one, and if the value was stored all the same
    ├── TooManyRuns                   the account has requested too many runs of jobs within an hour
    └── ProviderError                 an external model gave no usable answer; the request continues without it
        ├── ProviderUnavailable       a retry may help: 5xx, 429, timeout, connection, deadline
        │   └── ProviderTooSlow       the time ran out; a smaller request may help
        ├── ProviderRefused           a retry will not help: key, model or request refused
        └── ProviderReplyInvalid      an unusable answer: no JSON, wrong count or width, NaN, zeros

`api.problems` maps them to HTTP statuses. Messages hold no memory texts, no keys and nothing that a provider wrote.
"""

# the names say what happened and need no suffix
# ruff: noqa: N818

from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class MemoryServiceError(Exception):
    """The root of the tree. `code` is the stable name that clients see."""

    code: ClassVar[str] = "memory_service_error"


class NotFound(MemoryServiceError):
    code = "not_found"


class UnknownName(NotFound):
    """The service itself has nothing of this name, such as a job. Clients see the message: it tells of no account."""


def require_found(found: T | None, what: str) -> T:
    """Return what was found. Raises NotFound, which says what there is none of, for None."""
    if found is None:
        raise NotFound(f"no such {what}")
    return found


class Forbidden(MemoryServiceError):
    code = "forbidden"


class Conflict(MemoryServiceError):
    code = "conflict"


class StaleVersion(MemoryServiceError):
    code = "stale_version"


class Unprocessable(MemoryServiceError):
    code = "unprocessable"


class WrongVectorWidth(Unprocessable):
    code = "wrong_vector_width"

    def __init__(self, *, given: int, wanted: int, model: str) -> None:
        super().__init__(f"The vector has {given} dimensions; vectors of {model} have {wanted}.")


class TooLarge(MemoryServiceError, ValueError):
    """A value over a limit. `facts` are further fields of the answer: sizes in bytes, and `stored`.

    It is a ValueError, as documented.
    """

    code = "too_large"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


class TooManyRuns(MemoryServiceError):
    code = "too_many_runs"

    def __init__(self, message: str, *, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ProviderError(MemoryServiceError):
    code = "provider_error"


class ProviderUnavailable(ProviderError):
    """A provider that may answer later. `retry_after_seconds` is what it asked for, if anything."""

    code = "provider_unavailable"

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ProviderTooSlow(ProviderUnavailable):
    """A provider that ran out of time. It has the code of ProviderUnavailable."""


class ProviderRefused(ProviderError):
    """A refusal. `status` 400 or 422 may be due to one text of a batch, 401 to the settings; 0 if nothing was sent."""

    code = "provider_refused"

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class ProviderReplyInvalid(ProviderError):
    code = "provider_reply_invalid"
