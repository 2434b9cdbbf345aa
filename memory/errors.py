"""Everything that the service raises on purpose.

    MemoryServiceError
    ├── NotFound                      no such thing for this owner; another account's is no different
    ├── Forbidden                     the key may not do this, or not for this agent
    ├── Conflict                      somebody else is doing, or has done, the same
    ├── StaleVersion                  the caller has seen an older version
    ├── Unprocessable                 well-formed, but what is stored refuses it
    │   └── WrongVectorWidth
    ├── TooLarge                      over a limit; says which, and whether it was stored all the same
    └── ProviderError                 a model outside gave no usable answer; the rest goes on without it
        ├── ProviderUnavailable       later may be better: 5xx, 429, timeout, connection, deadline
        │   └── ProviderTooSlow       the time ran out: less at once may be better
        ├── ProviderRefused           asking again will not help: key, model or request refused
        └── ProviderReplyInvalid      it answered nonsense: no JSON, wrong count or width, NaN, zeros

Messages hold no texts, no keys and nothing that a provider wrote.
"""

# the names say what happened, as the rest of the tree does: none needs the suffix
# ruff: noqa: N818

from typing import Any, ClassVar


class MemoryServiceError(Exception):
    """Root of the tree; `code` is the stable name that clients see."""

    code: ClassVar[str] = "memory_service_error"


class NotFound(MemoryServiceError):
    code = "not_found"


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
        super().__init__(f"the vector has {given} dimensions, vectors of {model} have {wanted}")


class TooLarge(MemoryServiceError):
    """`facts` go into the answer beside the sentence: sizes in bytes, and `stored`."""

    code = "too_large"

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


class ProviderError(MemoryServiceError):
    code = "provider_error"


class ProviderUnavailable(ProviderError):
    """`retry_after_seconds` is the provider's own wish, where it gave one."""

    code = "provider_unavailable"

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ProviderTooSlow(ProviderUnavailable):
    """Told as unavailable; who asked for much may ask for less."""


class ProviderRefused(ProviderError):
    """`status` is the HTTP status: 400 and 422 may lie in one text of a batch, 401 in the settings; 0: never sent."""

    code = "provider_refused"

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class ProviderReplyInvalid(ProviderError):
    code = "provider_reply_invalid"
