"""Fixtures for tests of sessions."""

import pytest

from memory.owner import GLOBAL_CHANNEL
from memory_project.ids import uuid7
from memory_project.redis import SessionRef
from tests.memory.tiers.sessions import SessionWithTurns


@pytest.fixture
def ref() -> SessionRef:
    return SessionRef(account_id=uuid7(), user_id="ana", channel=GLOBAL_CHANNEL, conversation_id="c1")


@pytest.fixture
def session(ref: SessionRef) -> SessionWithTurns:
    return SessionWithTurns(ref)
