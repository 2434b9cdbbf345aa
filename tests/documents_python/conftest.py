"""Fixtures of the documents' calls: an account named `default`, and an event loop for asynchronous ones."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from memory.agent_memory import AgentMemory
from memory.models import Account
from memory.owner import Owner
from memory_project.async_calls import close_async_client

T = TypeVar("T")
Await = Callable[[Callable[[], Awaitable[T]]], T]


@pytest.fixture
def default_account(db: None) -> Account:
    return Account.objects.create(name="default")


@pytest.fixture
def memory(default_account: Account) -> AgentMemory:
    return AgentMemory.open(agent_id="assistant", user_id="ana")


@pytest.fixture
def owner(memory: AgentMemory) -> Owner:
    return memory.owner


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run asynchronous work on an event loop of its own, and close what it opened."""

    async def closing() -> T:
        try:
            return await work()
        finally:
            await close_async_client()

    return asyncio.run(closing())
