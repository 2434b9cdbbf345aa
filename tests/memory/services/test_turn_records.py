"""Structured turns: recorded whole or slot by slot, each slot a memory of its own."""

import pytest

from memory.models import TurnSlot
from memory.owner import Owner
from tests.memory.records import put_record

pytestmark = pytest.mark.django_db


def test_each_slot_is_a_memory_of_its_own(owner: Owner) -> None:
    recorded = put_record(owner)
    assert [slot.slot for slot in recorded.slots] == ["observation", "action", "outcome"]
    assert TurnSlot.objects.filter(record=recorded.record).count() == 3
    assert (recorded.record.number, recorded.record.status) == (0, "succeeded")
