"""Requests of goals that several test modules send."""

from typing import Any
from uuid import UUID

import pytest

from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer

NOBODY = UUID(int=7)
"""The id of nothing, the same in every process that collects these tests."""


ACTING = {"agent_id": "planner"}


TEXT = "Plant the roses."


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


def add(api: ServiceClient, description: str = TEXT, **fields: Any) -> Any:
    return api.post("/goals", {**ACTING, "description": description, **fields})


def added(api: ServiceClient, description: str = TEXT, **fields: Any) -> str:
    return str(add(api, description, **fields).json()["id"])


def act(api: ServiceClient, goal: str, what: str, **fields: Any) -> Any:
    headers = {name: fields.pop(name) for name in tuple(fields) if name.startswith("HTTP_")}
    return api.post(f"/goals/{goal}/{what}", {**ACTING, **fields}, **headers)
