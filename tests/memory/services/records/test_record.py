"""Structured turns: recorded whole or slot by slot, each slot a memory of its own."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, Forbidden, NotFound, TooLarge, Unprocessable
from memory.extraction.turn_slots import Action, Call, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import AuditEntry, Conversation, Link, ReasoningTrace, TurnRecord, TurnSlot
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.records.read import read_current_slots, read_slots_at_level
from memory.services.records.record import RecordDraft, RecordedTurn, add_slots, delete_record, prepare_record
from memory.services.records.slots import MAX_SLOT_CHARACTERS, latest_texts
from memory.services.tools import MAX_VALUE_BYTES
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim
from tests.memory.records import add_record
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)
DONE = Action(text="Watered the roses.")
OPEN = Slots(action=DONE, outcome=Outcome(status="open", text="Not dry yet."))
RATIONALE = Reasoning(
    tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=Rationale(decisions=[Point(what="water at dawn")])
)
TRACE = Reasoning(tier=ReasoningTier.RAW_TRACE, trace="Hm, noon? No.")


def add(owner: Owner, record: TurnRecord, slots: Slots, **fields: Any) -> RecordedTurn:
    prepared = prepare_record(owner, RecordDraft(slots=slots, **fields), now=LATER)
    return add_slots(owner, record.id, prepared, embedded=NOTHING, now=LATER)


def outcome(status: str, text: str = "") -> Slots:
    return Slots(outcome=Outcome(status=status, text=text))


def links() -> list[tuple[UUID, str, UUID]]:
    return list(Link.objects.values_list("source_id", "type", "target_id"))


def compress(slot: TurnSlot, text: str) -> TurnSlot:
    """Shorten a slot as the maintenance job does: a new row, and the former one archived."""
    TurnSlot.objects.filter(id=slot.id).update(archived=True)
    fresh = TurnSlot.objects.get(id=slot.id)
    fresh.pk = fresh.id = RecordDraft(slots=Slots()).id
    fresh.level, fresh.text, fresh.archived, fresh.identity = 1, text, False, f"{slot.record_id}:{slot.slot}:1"
    fresh._state.adding = True
    fresh.save()
    return fresh


@pytest.fixture
def gardener(owner: Owner) -> Owner:
    """Another agent that takes part in the conversation."""
    say(owner, turn("Hello."), conversation_id="chat-1")
    other = replace(owner, agent_id="gardener")
    insert_participants(other, conversation_ids=["chat-1"])
    return other


def test_each_slot_is_a_memory_of_its_own(owner: Owner) -> None:
    recorded = add_record(owner)

    assert [slot.slot for slot in recorded.slots] == ["observation", "action", "outcome"]
    assert TurnSlot.objects.filter(record=recorded.record).count() == 3
    assert (recorded.record.number, recorded.record.status) == (0, "succeeded")


def test_slots_have_the_time_of_their_turn(owner: Owner) -> None:
    recorded = add_record(owner, event_time=NOW - timedelta(days=3))

    assert {slot.event_time for slot in recorded.slots} == {NOW - timedelta(days=3)}


def test_records_are_numbered_and_erased_numbers_are_not_reused(owner: Owner) -> None:
    first, last = add_record(owner).record, add_record(owner).record
    delete_record(owner, last.id)

    assert [first.number, last.number, add_record(owner).record.number] == [0, 1, 2]
    assert Conversation.objects.get().record_count == 3


def test_a_repeated_slot_changes_nothing(owner: Owner) -> None:
    recorded = add_record(owner, client_id="t1")

    again = add_record(owner, client_id="t1")

    assert (again.is_new, again.record.id, again.record.version) == (False, recorded.record.id, 1)
    assert [slot.id for slot in again.slots] == [slot.id for slot in recorded.slots]


def test_repeated_data_that_json_spells_differently_changes_nothing(owner: Owner) -> None:
    action = Action(calls=[Call(tool="dig", arguments=(1, 2.0))], data={1: ("deep",)})  # type: ignore[dict-item]

    first, again = (add_record(owner, slots=Slots(action=action), client_id="t1") for _ in range(2))

    assert (first.record.id, first.slots[0].data) == (again.record.id, again.slots[0].data)


def test_a_slot_with_another_content_is_refused(owner: Owner) -> None:
    record = add_record(owner).record

    with pytest.raises(Conflict):
        add(owner, record, Slots(observation=Observation(text="It rains.")))
    with pytest.raises(Conflict):
        add(owner, record, outcome("failed"))


def test_an_open_outcome_is_replaced_and_keeps_its_former_text(owner: Owner) -> None:
    record = add_record(owner, slots=OPEN).record

    add(owner, record, outcome("open", "Nearly dry."))
    done = add(owner, record, outcome("succeeded", "Dry."))

    said = done.slots[-1].data["reconciled"]
    assert (done.record.status, done.slots[-1].text) == ("succeeded", "Dry.")
    assert [before["text"] for before in said] == ["Not dry yet.", "Nearly dry."]
    assert done.record.tokens == done.record.raw_tokens == sum(slot.token_count for slot in done.slots)


@pytest.mark.parametrize("given", [None, NOW + timedelta(minutes=20)], ids=["no time", "a time"])
def test_a_replaced_outcome_has_the_time_of_its_report(owner: Owner, given: datetime | None) -> None:
    record = add_record(owner, slots=OPEN).record

    done = add(owner, record, outcome("succeeded", "Dry."), event_time=given)

    assert [slot.event_time for slot in done.slots] == [NOW, given or LATER]
    assert TurnSlot.objects.get(slot="outcome").event_time == (given or LATER)


def test_of_former_texts_of_an_open_outcome_the_latest_are_kept(owner: Owner) -> None:
    record = add_record(owner, slots=OPEN).record

    for number in range(22):
        done = add(owner, record, outcome("open", f"Dry by {number} %."))

    said = [before["text"] for before in done.slots[-1].data["reconciled"]]
    assert said == [f"Dry by {number} %." for number in range(1, 21)]
    long = [{"text": "x" * 600_000}, {"text": "y" * 600_000}]
    assert latest_texts(long) == long[1:]


def test_a_reconciled_outcome_names_its_agents(owner: Owner, gardener: Owner) -> None:
    done = add(gardener, add_record(owner, slots=Slots(action=DONE)).record, outcome("succeeded")).slots[-1]
    dry = add(gardener, add_record(owner, slots=OPEN).record, outcome("succeeded", "Dry.")).slots[-1]

    assert (done.slot, done.agent_id) == ("outcome", "gardener")
    assert (dry.agent_id, [said["by"] for said in dry.data["reconciled"]]) == ("assistant", ["gardener"])


def test_a_participant_cannot_erase_the_record_of_another_agent(owner: Owner, gardener: Owner) -> None:
    account = replace(owner, agent_id="")
    records = [add_record(each).record for each in (owner, account)]

    for record in records:
        with pytest.raises(Forbidden):
            delete_record(gardener, record.id)
        delete_record(account, record.id)

    assert not TurnRecord.objects.exists()


def test_a_former_text_of_an_open_outcome_may_arrive_late(owner: Owner) -> None:
    record = add_record(owner, slots=OPEN, client_id="t1").record
    add(owner, record, outcome("succeeded", "Dry."))

    again = add_record(owner, slots=OPEN, client_id="t1")

    assert (again.record.status, again.slots[-1].text) == ("succeeded", "Dry.")


def test_an_outcome_needs_an_action(owner: Owner) -> None:
    record = add_record(owner, slots=Slots(observation=Observation(text="Dry."))).record

    with pytest.raises(Unprocessable):
        add(owner, record, outcome("failed"))
    assert add(owner, record, Slots(action=DONE, outcome=Outcome(status="failed"))).record.status == "failed"


def test_a_compressed_slot_is_compared_with_its_source(owner: Owner) -> None:
    recorded = add_record(owner, client_id="t1")
    compress(recorded.slots[0], "Roses hang.")

    assert add_record(owner, client_id="t1").slots[0].text == "Roses hang."
    with pytest.raises(Conflict):
        add(owner, recorded.record, Slots(observation=Observation(text="It rains.")))
    record_id = recorded.record.id
    assert read_slots_at_level(owner.account_id, [record_id], 0)[record_id][0].text == "The roses hang their heads."


def test_a_compressed_open_outcome_is_replaced_at_each_level(owner: Owner) -> None:
    recorded = add_record(owner, slots=OPEN)
    compress(recorded.slots[-1], "Wet.")

    add(owner, recorded.record, outcome("succeeded", "Dry."))

    record_id = recorded.record.id
    assert read_slots_at_level(owner.account_id, [record_id], 0)[record_id][-1].text == "Dry."
    assert read_current_slots(owner.account_id, [record_id])[-1].text == "Dry."


def test_a_quarantined_slot_is_neither_shown_nor_replaced(owner: Owner) -> None:
    recorded = add_record(owner, client_id="t1")
    TurnSlot.objects.filter(slot="observation").update(quarantined=True)

    assert [slot.slot for slot in add_record(owner, client_id="t1").slots] == ["action", "outcome"]
    with pytest.raises(Conflict):
        add(owner, recorded.record, Slots(observation=Observation(text="It rains.")))


def test_a_merged_record_takes_no_more_slots(owner: Owner) -> None:
    record = add_record(owner, slots=OPEN, client_id="t1").record
    TurnRecord.objects.update(level=2)
    TurnSlot.objects.update(archived=True)

    assert add_record(owner, slots=OPEN, client_id="t1").slots == []
    for change in (lambda: add(owner, record, outcome("failed")), lambda: delete_record(owner, record.id)):
        with pytest.raises(Conflict):
            change()


def test_slots_work_on_the_goal_of_their_record(owner: Owner) -> None:
    goal = aim(owner)
    record = add_record(owner, slots=Slots(action=DONE), goal_id=goal.id).record
    late = add(owner, record, outcome("succeeded"))

    assert sorted(links()) == sorted((slot.id, "WORKS_ON", goal.id) for slot in late.slots)
    with pytest.raises(Conflict):
        add(owner, record, outcome("succeeded"), goal_id=aim(owner, "another").id)


def test_a_goal_that_is_sent_later_is_linked_to_all_slots(owner: Owner) -> None:
    record, goal = add_record(owner).record, aim(owner)

    added = add(owner, record, outcome("succeeded", "The roses stand upright."), goal_id=goal.id)

    assert sorted(links()) == sorted((slot.id, "WORKS_ON", goal.id) for slot in added.slots)
    assert (added.record.version, AuditEntry.objects.filter(memory_type="turn_record").count()) == (2, 1)


def test_a_record_is_about_existing_messages(owner: Owner) -> None:
    say(owner, turn("hello"), turn("hi"), conversation_id="chat-1")

    assert add_record(owner, first_index=0, last_index=1).record.last_index == 1
    with pytest.raises(Unprocessable):
        add_record(owner, first_index=1, last_index=2)


REFUSED: dict[str, Callable[[Owner], dict[str, Any]]] = {
    "half of a range": lambda owner: {"first_index": 0},
    "a range backwards": lambda owner: {"first_index": 1, "last_index": 0},
    "a time without a zone": lambda owner: {"event_time": NOW.replace(tzinfo=None)},
    "a time to come": lambda owner: {"event_time": NOW + timedelta(hours=1)},
    "an unknown outcome": lambda owner: {"slots": Slots(action=DONE, outcome=Outcome(status="fine"))},
    "a NUL": lambda owner: {"slots": Slots(observation=Observation(text="a\0b"))},
    "half of a pair": lambda owner: {"slots": Slots(observation=Observation(text="\ud800"))},
    "nothing but blanks": lambda owner: {"slots": Slots(action=Action(text=" "))},
    "calls in data": lambda owner: {"slots": Slots(action=Action(text="x", data={"calls": [1]}))},
    "evidence of no slot": lambda owner: {"slots": Slots(), "evidence": [aim(owner).id]},
    "no such goal": lambda owner: {"goal_id": add_record(owner).record.id},
    "a slot as a goal": lambda owner: {"goal_id": add_record(owner).slots[0].id},
    "a goal as an artifact": lambda owner: {"produced": [aim(owner).id]},
    "a goal of another user": lambda owner: {"goal_id": aim(replace(owner, agent_id="other", user_id="bob")).id},
    "no such use of a tool": lambda owner: {"invocations": [add_record(owner).record.id]},
    "much evidence": lambda owner: {"evidence": [owner.account_id] * 201},
    "a long client_id": lambda owner: {"client_id": "x" * 101},
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_an_invalid_draft_is_refused_completely(owner: Owner, case: str) -> None:
    fields = REFUSED[case](owner)
    before = TurnRecord.objects.count()

    with pytest.raises(Unprocessable):
        add_record(owner, **fields)
    assert TurnRecord.objects.count() == before


def test_a_record_is_no_evidence_of_itself(owner: Owner) -> None:
    recorded = add_record(owner)

    with pytest.raises(Unprocessable):
        add(owner, recorded.record, outcome("succeeded", "The roses stand upright."), evidence=[recorded.slots[0].id])


@pytest.mark.parametrize(
    "slots",
    [
        Slots(observation=Observation(text="x" * (MAX_SLOT_CHARACTERS + 1))),
        Slots(action=Action(calls=[Call(tool="read", result="x" * MAX_VALUE_BYTES)])),
        Slots(observation=Observation(text="x", data={"x": "x" * MAX_VALUE_BYTES})),
    ],
    ids=["text", "calls", "data"],
)
def test_a_text_that_is_too_large_is_refused_completely(owner: Owner, slots: Slots) -> None:
    with pytest.raises(TooLarge):
        add_record(owner, slots=slots)
    assert not Conversation.objects.exists()


def test_the_largest_text_is_kept(owner: Owner) -> None:
    text = "rose " * (MAX_SLOT_CHARACTERS // 5)

    assert add_record(owner, slots=Slots(observation=Observation(text=text))).slots[0].text == text


def test_a_conversation_of_others_takes_no_records(owner: Owner) -> None:
    say(owner, turn("hello"), conversation_id="chat-1")
    add_record(owner)

    with pytest.raises(NotFound):
        add_record(replace(owner, agent_id="other"))
    assert add_record(replace(owner, agent_id="")).record.number == 1


def test_a_reasoning_that_is_not_kept_leaves_a_record_without_a_slot(owner: Owner) -> None:
    recorded = add_record(owner, slots=Slots(reasoning=TRACE), evidence=[aim(owner).id])

    assert (recorded.slots, recorded.record.reasoning_tier) == ([], "none")
    assert recorded.kept is not None
    assert recorded.kept.reason == "policy"
    assert not ReasoningTrace.objects.exists()


def test_reasoning_that_is_sent_later_raises_the_records_tier(owner: Owner) -> None:
    record = add_record(owner).record

    assert add(owner, record, Slots(reasoning=RATIONALE)).record.reasoning_tier == "structured_rationale"


def test_a_new_record_takes_a_fixed_number_of_statements(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    add_record(owner)
    goal = aim(owner)
    prepare = Slots(observation=Observation(text="Dry."), reasoning=RATIONALE, action=DONE)

    # the policy; savepoint, conversation, client_id, goal; record, slots (2), agent, audit, links, conversation; end
    with django_assert_num_queries(12):
        add_record(owner, slots=prepare, goal_id=goal.id, client_id="t9")


def test_an_outcome_takes_a_fixed_number_of_statements(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    record = add_record(owner, slots=OPEN).record
    late = add_record(owner, slots=Slots(action=DONE)).record

    # the policy; savepoint, conversation, record, its slots; slot (2), agent, audit; record, conversation, release
    with django_assert_num_queries(11):
        add(owner, late, outcome("failed"))
    # the policy; savepoint, conversation, record, its slots; text, vectors, data, audit; record, conversation, release
    with django_assert_num_queries(12):
        add(owner, record, outcome("failed"))


def test_a_repeated_record_takes_a_fixed_number_of_statements(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    add_record(owner, client_id="t1")

    # the policy; savepoint, conversation, client_id, its slots; release
    with django_assert_num_queries(6):
        add_record(owner, client_id="t1")
