"""Contexts for tests: what they are asked with."""

from typing import Any

from memory import conf
from memory.retrieval.queries import Query
from memory.services.memories.store import OwnVector
from memory.services.prompt_context.build import ContextRequest
from memory.services.recall.recall import RecallRequest


def request_for(
    *,
    query: str = "",
    own: OwnVector | None = None,
    suppress: bool = False,
    mark: bool = False,
    max_tokens: int = conf.CONTEXT_TOKENS,
    deadline_ms: int | None = None,
    **asked: Any,
) -> ContextRequest:
    """For the conversation `c1` unless told otherwise; `asked` are further fields of the question."""
    question = Query(text=query, **{"conversation_id": "c1", **asked})
    return ContextRequest(
        asked=RecallRequest(query=question, own=own, suppress_injected=suppress, deadline_ms=deadline_ms),
        max_tokens=max_tokens,
        mark_injected=mark,
    )
