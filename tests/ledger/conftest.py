"""A Redis of its own for every test, new and empty as after a loss; `kept` is one that has every ledger."""

from uuid import uuid4

import pytest

from ledger.journal import EPOCH
from memory.models import Account
from memory_project.ids import uuid7
from memory_project.redis import Place, client


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    client().flushdb()


@pytest.fixture
def kept() -> None:
    client().set(EPOCH, str(uuid4()))


@pytest.fixture
def anywhere() -> Place:
    """A conversation of an account that PostgreSQL need not know: nothing here is flushed."""
    return Place(account_id=uuid7(), conversation_id="call 7/ü")


@pytest.fixture
def place(account: Account) -> Place:
    return Place(account_id=account.id, conversation_id="call 7/ü")
