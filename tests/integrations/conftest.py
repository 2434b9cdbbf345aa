"""Fixtures of the integrations: the address of a running service, and a client of it."""

from collections.abc import Iterator

import pytest
from agent_memory_client import Client

from tests.web_server import SharedServers


@pytest.fixture
def url(transactional_db: None, empty_redis: None, shared_server: SharedServers) -> str:
    return f"http://127.0.0.1:{shared_server({}).port}"


@pytest.fixture
def client(url: str, api_key: str) -> Iterator[Client]:
    with Client(url, api_key, agent_id="assistant", user_id="ana") as client:
        yield client
