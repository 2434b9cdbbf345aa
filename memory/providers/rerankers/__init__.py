"""Rerankers: models that read a question and a text together, and score how well the text answers the question.

None by default. To add another kind: a module next to `http.py` with a class that implements `Reranker`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.providers.connections import Deadline
from memory.providers.endpoints import check_api_key, check_base_url
from memory.providers.rerankers.http import SHAPES, HttpReranker, RerankEndpoint

SHAPES_WITHOUT_MODEL = frozenset({"tei"})
ATTEMPTS = 2
"""Attempts per request. There are few, because a caller waits for results that only get a better order."""

__all__ = ["Reranker", "reranking_provider"]


class Reranker(Protocol):
    """Scores how well texts answer a question. Thread-safe."""

    @property
    def model(self) -> str:
        """The name of the model."""

    def score(self, question: str, texts: Sequence[str], *, deadline: Deadline) -> list[float]:
        """Score how well each text answers the question, in the order of the texts; the greater, the better.

        Raises ProviderUnavailable, ProviderRefused or ProviderReplyInvalid, whose messages hold nothing of the texts.
        """


@lru_cache(maxsize=1)
def reranking_provider() -> Reranker | None:
    """Return the configured provider, or None.

    Made once per process, without a connection; call `.cache_clear()` after changing settings. Raises
    ImproperlyConfigured for settings that cannot work.
    """
    if not settings.RERANK_URL:
        if settings.RERANK_MODEL or settings.RERANK_API_KEY:
            raise ImproperlyConfigured("RERANK_MODEL and RERANK_API_KEY are of a reranker, and RERANK_URL names none")
        return None
    check_rerank_settings()
    return HttpReranker(
        RerankEndpoint(
            model=settings.RERANK_MODEL,
            api_key=settings.RERANK_API_KEY,
            base_url=settings.RERANK_URL,
            timeout_seconds=settings.RERANK_TIMEOUT_SECONDS,
            max_attempts=ATTEMPTS,
            shape=SHAPES[settings.RERANK_SHAPE],
        )
    )


def check_rerank_settings() -> None:
    check_base_url(settings.RERANK_URL, setting="RERANK_URL")
    check_api_key(settings.RERANK_API_KEY, setting="RERANK_API_KEY")
    parts = urlsplit(settings.RERANK_URL)
    if not parts.path.strip("/"):
        raise ImproperlyConfigured("RERANK_URL must be the whole address, such as https://host.example/v2/rerank")
    if parts.username and settings.RERANK_API_KEY:
        raise ImproperlyConfigured("RERANK_URL holds a name and a password, which take the place of RERANK_API_KEY")
    if settings.RERANK_SHAPE not in SHAPES:
        raise ImproperlyConfigured(f"RERANK_SHAPE must be one of {', '.join(SHAPES)}")
    if not settings.RERANK_MODEL and settings.RERANK_SHAPE not in SHAPES_WITHOUT_MODEL:
        raise ImproperlyConfigured(f"RERANK_MODEL must name a model: RERANK_SHAPE {settings.RERANK_SHAPE} asks for one")
