"""Structured turns of the in-process API."""

import doctest
from types import SimpleNamespace

import pytest

from memory import agent_work
from memory.agent_memory import AgentMemory
from memory.errors import NotFound
from memory.extraction.turn_slots import Action, Observation, Slots
from memory.owner import Owner
from memory.services.records.record import RecordDraft
from tests.memory.episodes import NOW
from tests.memory.goals import aim

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]


@pytest.fixture
def memory(owner: Owner) -> AgentMemory:
    return AgentMemory(owner, clock=lambda: NOW)


def test_the_examples_of_the_module_run(memory: AgentMemory) -> None:
    names = {"memory": SimpleNamespace(records=memory.records), "RecordDraft": RecordDraft}
    ran = doctest.testmod(agent_work, extraglobs=names)

    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_a_turn_is_recorded_added_to_read_and_erased(memory: AgentMemory, owner: Owner) -> None:
    records, goal = memory.records, aim(owner)
    began = records.record_turn("chat-1", RecordDraft(slots=Slots(observation=Observation(text="Dry."))))
    draft = RecordDraft(slots=Slots(action=Action(text="Watered.")), goal_id=goal.id)

    added = records.add_to(began.record.id, draft)

    view, named = records.get_record(began.record.id)
    assert [told.text for told in view.slots] == ["Dry.", "Watered."]
    assert (view.record.goal_id, named.truncated) == (goal.id, False)
    assert list(records.list_records("chat-1")) == [added.record]
    assert all(slot.embed_after is None for slot in added.slots)
    records.delete_record(began.record.id)
    with pytest.raises(NotFound):
        records.get_record(began.record.id)
