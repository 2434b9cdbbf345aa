"""Fixtures of the ledger: every test gets an empty Redis, as after a loss; `kept` is one that has every ledger."""

from uuid import uuid4

import pytest

from ledger.journal import EPOCH
from memory.models import Account
from memory_project.ids import uuid7
from memory_project.redis import ConversationRef, client


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    client().flushdb()


@pytest.fixture
def kept() -> None:
    client().set(EPOCH, str(uuid4()))


@pytest.fixture
def anywhere() -> ConversationRef:
    """A conversation of an account that PostgreSQL need not have, because nothing here is flushed."""
    return ConversationRef(account_id=uuid7(), conversation_id="call 7/ü")


@pytest.fixture
def conversation(account: Account) -> ConversationRef:
    return ConversationRef(account_id=account.id, conversation_id="call 7/ü")
