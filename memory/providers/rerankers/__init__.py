"""Rerankers: models that read a question and a text together, and say how well the one answers the other."""

from memory.providers.rerankers.base import Reranker

__all__ = ["Reranker", "reranking_provider"]


def reranking_provider() -> Reranker | None:
    """The one that the settings name, or None where they name none."""
    return None
