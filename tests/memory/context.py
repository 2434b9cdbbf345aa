"""Requests for prompt contexts in tests."""

from typing import Any

from memory import conf
from memory.retrieval.queries import Query
from memory.services.memories.store import ClientVector
from memory.services.prompt_context.build import PromptContextRequest
from memory.services.recall.recall import RecallRequest


def request_for(
    *,
    query: str = "",
    own: ClientVector | None = None,
    suppress: bool = False,
    mark: bool = False,
    max_tokens: int = conf.CONTEXT_TOKENS,
    deadline_ms: int | None = None,
    **asked: Any,
) -> PromptContextRequest:
    """Return a request for the conversation `c1` by default; `asked` are further fields of the query."""
    question = Query(text=query, **{"conversation_id": "c1", **asked})
    return PromptContextRequest(
        recall_request=RecallRequest(query=question, own=own, suppress_injected=suppress, deadline_ms=deadline_ms),
        max_tokens=max_tokens,
        mark_injected=mark,
    )
