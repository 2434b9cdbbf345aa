"""What can go wrong.

AgentMemoryError
├── ServiceConnectionError         no answer: refused, reset, unreachable
│   └── ServiceTimeoutError        no answer in time
├── TransferFailedError            an export or an import that the service gave up, with `transfer`
└── StatusError                    an answer with `status`, `code`, `detail`, `errors`, `request_id`
    ├── BadRequestError            400
    ├── AuthenticationError        401
    ├── PermissionDeniedError      403
    ├── NotFoundError              404
    ├── ConflictError              409
    ├── PreconditionFailedError    412: somebody else changed the object first
    ├── PayloadTooLargeError       413
    ├── UnsupportedMediaTypeError  415
    ├── UnprocessableError         422
    ├── RateLimitError             429
    └── ServerError                5xx
        └── UnavailableError       503
"""

from typing import Any

import httpx2

from agent_memory_client.results import Result


class AgentMemoryError(Exception):
    """Any failure of a call."""


class ServiceConnectionError(AgentMemoryError):
    """The service could not be reached, or hung up."""


class ServiceTimeoutError(ServiceConnectionError):
    """The service did not answer in time."""


class TransferFailedError(AgentMemoryError):
    """The service gave up an export, or refused an archive. `transfer` is what it answers of it."""

    def __init__(self, transfer: Result) -> None:
        self.transfer = transfer
        super().__init__(str(transfer["error"]))


class StatusError(AgentMemoryError):
    """The service refused the request. `code` is one of the documented error codes, `errors` the messages by field."""

    def __init__(self, response: httpx2.Response) -> None:
        problem = read_problem(response)
        self.response = response
        self.status = response.status_code
        self.code: str = problem.get("code", "")
        self.detail: str = problem.get("detail", "")
        self.errors: dict[str, Any] = problem.get("errors") or {}
        self.request_id: str = problem.get("request_id") or str(response.headers.get("X-Request-Id", ""))
        fields = "".join(f"; {name}: {messages}" for name, messages in self.errors.items())
        reason = self.detail or "The answer has no reason, and may be that of a proxy."
        super().__init__(f"{self.status} {self.code or response.reason_phrase}: {reason}{fields}")


class BadRequestError(StatusError):
    """400: the shape of the request. `errors` says what is wrong with which field."""


class AuthenticationError(StatusError):
    """401: there is no valid key."""


class PermissionDeniedError(StatusError):
    """403: the key may not do this."""


class NotFoundError(StatusError):
    """404: it does not exist, or belongs to somebody else."""


class ConflictError(StatusError):
    """409: it contradicts what is stored."""


class PreconditionFailedError(StatusError):
    """412: the object was changed since it was read. Read it again, and repeat the change."""


class PayloadTooLargeError(StatusError):
    """413: the body is too large."""


class UnsupportedMediaTypeError(StatusError):
    """415: the body is not of a type that the operation takes."""


class UnprocessableError(StatusError):
    """422: well-formed, but what is stored refuses it."""


class RateLimitError(StatusError):
    """429: too many requests, also after the retries."""


class ServerError(StatusError):
    """5xx: the service failed."""


class UnavailableError(ServerError):
    """503: something that the service needs is down, also after the retries."""


BY_STATUS: dict[int, type[StatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    412: PreconditionFailedError,
    413: PayloadTooLargeError,
    415: UnsupportedMediaTypeError,
    422: UnprocessableError,
    429: RateLimitError,
    503: UnavailableError,
}


def status_error(response: httpx2.Response) -> StatusError:
    """Return the exception for an answer that is no success."""
    fallback = ServerError if response.status_code >= 500 else StatusError
    return BY_STATUS.get(response.status_code, fallback)(response)


def connection_error(err: httpx2.TransportError) -> ServiceConnectionError:
    """Return the exception for a request that got no answer."""
    message = f"{type(err).__name__}: {err}"
    return ServiceTimeoutError(message) if isinstance(err, httpx2.TimeoutException) else ServiceConnectionError(message)


def read_problem(response: httpx2.Response) -> dict[str, Any]:
    """Return the problem document of an answer, empty if a proxy answered something else."""
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
