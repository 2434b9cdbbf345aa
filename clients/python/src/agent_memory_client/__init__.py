"""Client of the agent memory service.

`Client` and `AsyncClient` have the same methods: verbs for what agents do all day (`remember`, `recall`, `context`,
`resume`, `add_turns`, …), and one method per operation of the service's OpenAPI document under its operationId. Answers
are objects of `models`, whose fields are attributes; exceptions are in `errors`.
"""

from agent_memory_client import models
from agent_memory_client.async_client import AsyncClient
from agent_memory_client.client import Client
from agent_memory_client.errors import (
    AgentMemoryError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    NotFoundError,
    PayloadTooLargeError,
    PermissionDeniedError,
    PreconditionFailedError,
    RateLimitError,
    ServerError,
    ServiceConnectionError,
    ServiceTimeoutError,
    StatusError,
    TransferFailedError,
    UnavailableError,
    UnprocessableError,
    UnsupportedMediaTypeError,
)
from agent_memory_client.results import Page, RawResponse, Result

__all__ = [
    "AgentMemoryError",
    "AsyncClient",
    "AuthenticationError",
    "BadRequestError",
    "Client",
    "ConflictError",
    "NotFoundError",
    "Page",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "PreconditionFailedError",
    "RateLimitError",
    "RawResponse",
    "Result",
    "ServerError",
    "ServiceConnectionError",
    "ServiceTimeoutError",
    "StatusError",
    "TransferFailedError",
    "UnavailableError",
    "UnprocessableError",
    "UnsupportedMediaTypeError",
    "models",
]
