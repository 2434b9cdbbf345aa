"""What the tests of sessions share."""

import pytest

from memory.owner import GLOBAL_CHANNEL
from memory.tiers.session import SessionMemory
from memory_project.ids import uuid7
from memory_project.redis import SessionPlace


@pytest.fixture
def place() -> SessionPlace:
    return SessionPlace(account_id=uuid7(), user_id="ana", channel=GLOBAL_CHANNEL, conversation_id="c1")


@pytest.fixture
def session(place: SessionPlace) -> SessionMemory:
    return SessionMemory(place)
