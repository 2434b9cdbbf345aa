"""Requests of conversations that several test modules send."""

from typing import Any

from tests.api_client import ServiceClient


def create(api: ServiceClient, conversation_id: str, **fields: Any) -> Any:
    return api.post("/conversations", {"agent_id": "assistant", "conversation_id": conversation_id, **fields})
