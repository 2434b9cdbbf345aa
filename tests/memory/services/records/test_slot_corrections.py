"""Slots and work episodes that are corrected, hidden or deleted, with everything that repeats them."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from memory.errors import Unprocessable
from memory.extraction.turn_slots import Action, Call, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, AuditEntry, Memory, MemoryRow, ReasoningTrace, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from memory.services.records.read import read_slots_at_level
from memory.services.records.record import RecordedTurn
from tests.memory.episodes import NOW
from tests.memory.records import add_record
from tests.memory.works import ids_where, merge, reduce, shorten, texts_left

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)
SECRET = "hunter2"
SLOTS = Slots(
    reasoning=Reasoning(
        tier=ReasoningTier.RAW_TRACE,
        trace=f"The password is {SECRET}.",
        rationale=Rationale(decisions=[Point(what=f"log in with {SECRET}")]),
    ),
    action=Action(text="Logged in.", calls=[Call(tool="login", arguments={"password": SECRET})]),
    outcome=Outcome(status="succeeded", text="The roses stand upright."),
)


@pytest.fixture
def recorded(owner: Owner) -> RecordedTurn:
    """Return a structured turn with a secret in it, in an account that keeps raw traces."""
    Account.objects.filter(id=owner.account_id).update(reasoning_tier=ReasoningTier.RAW_TRACE.value)
    return add_record(owner, slots=SLOTS)


def correct(staff: Owner, row: MemoryRow, text: str = "(taken out)") -> None:
    version = Memory.objects.values_list("version", flat=True).get(id=row.pk)
    correct_memory(staff, row.pk, changes={"text": text}, version=version, now=LATER)


def slot_of(recorded: RecordedTurn, slot: str) -> TurnSlot:
    return next(row for row in recorded.slots if row.slot == slot)


def record_of(recorded: RecordedTurn) -> TurnRecord:
    return TurnRecord.objects.get(id=recorded.record.id)


def test_a_corrected_slot_leaves_its_former_text_nowhere(staff: Owner, owner: Owner, recorded: RecordedTurn) -> None:
    short = shorten(owner, recorded)["action"]
    rows = TurnSlot.objects
    rows.filter(pk=short.pk).update(data={"calls": [{"tool": "login", "arguments": SECRET}]})

    correct(staff, short)

    left = TurnSlot.objects.filter(record=recorded.record, slot="action")
    assert [(row.text, row.data) for row in left] == [("(taken out)", {})]


def test_correcting_other_columns_keeps_data_and_levels_of_a_slot(
    staff: Owner, owner: Owner, recorded: RecordedTurn
) -> None:
    action = slot_of(recorded, "action")

    correct_memory(staff, action.id, changes={"salience": 0.9}, version=1, now=LATER)

    assert TurnSlot.objects.get(pk=action.pk).data["calls"]


def test_a_corrected_reasoning_leaves_no_raw_trace(staff: Owner, recorded: RecordedTurn) -> None:
    correct(staff, slot_of(recorded, "reasoning"))

    assert not ReasoningTrace.objects.exists()
    assert record_of(recorded).reasoning_tier == ReasoningTier.STRUCTURED_RATIONALE


def test_a_corrected_action_leaves_the_raw_trace(staff: Owner, recorded: RecordedTurn) -> None:
    correct(staff, slot_of(recorded, "action"))

    assert ReasoningTrace.objects.exists()
    assert record_of(recorded).reasoning_tier == ReasoningTier.RAW_TRACE


def test_a_correction_recomputes_the_records_tokens(staff: Owner, recorded: RecordedTurn) -> None:
    correct(staff, slot_of(recorded, "outcome"), text="Well. " * 50)

    rows = TurnSlot.objects.filter(record=recorded.record)
    assert record_of(recorded).tokens == sum(row.token_count for row in rows)
    assert record_of(recorded).version == recorded.record.version + 1


def test_a_corrected_work_episode_leaves_its_former_text_nowhere(
    staff: Owner, owner: Owner, recorded: RecordedTurn
) -> None:
    merged = merge(owner, recorded.record, list(shorten(owner, recorded).values()))
    archived = reduce(owner, recorded.record, merged)

    correct(staff, archived)

    assert texts_left() == {"(taken out)"}
    assert WorkEpisode.objects.get(pk=archived.pk).data == {}
    assert not ReasoningTrace.objects.exists()


def test_a_replaced_level_cannot_be_corrected(staff: Owner, owner: Owner, recorded: RecordedTurn) -> None:
    shorten(owner, recorded)

    with pytest.raises(Unprocessable, match="another level"):
        correct(staff, slot_of(recorded, "action"))


@pytest.mark.parametrize("column", ["user_id", "channel"])
def test_a_slot_keeps_the_user_and_channel_of_its_record(staff: Owner, recorded: RecordedTurn, column: str) -> None:
    with pytest.raises(Unprocessable, match="turn slot"):
        correct_memory(staff, recorded.slots[0].id, changes={column: "other"}, version=1, now=LATER)


@pytest.mark.parametrize("level", [0, 1])
def test_a_quarantined_slot_is_shown_at_no_level(
    staff: Owner, owner: Owner, recorded: RecordedTurn, level: int
) -> None:
    levels = [slot_of(recorded, "action"), shorten(owner, recorded)["action"]]

    mark_memories(staff, [levels[level].id], mark="quarantine", now=LATER)

    assert ids_where(quarantined=True) == {row.id for row in levels}
    record_id = recorded.record.id
    slots = [slot for each in (0, 1) for slot in read_slots_at_level(owner.account_id, [record_id], each)[record_id]]
    assert "action" not in {slot.slot for slot in slots}


def test_episodes_that_repeat_a_quarantined_slot_are_hidden_and_stay_hidden(
    staff: Owner, owner: Owner, recorded: RecordedTurn
) -> None:
    merged = merge(owner, recorded.record, list(shorten(owner, recorded).values()))
    archived = reduce(owner, recorded.record, merged)
    action = slot_of(recorded, "action")

    mark_memories(staff, [action.id], mark="quarantine", now=LATER)
    assert {merged.id, archived.id} <= ids_where(quarantined=True)

    mark_memories(staff, [action.id], mark="release", now=LATER)
    assert ids_where(quarantined=True) == {merged.id, archived.id}


def test_a_quarantined_episode_is_shown_at_no_level_and_leaves_its_slots(
    staff: Owner, owner: Owner, recorded: RecordedTurn
) -> None:
    merged = merge(owner, recorded.record, list(recorded.slots))
    archived = reduce(owner, recorded.record, merged)

    mark_memories(staff, [archived.id], mark="quarantine", now=LATER)

    assert ids_where(quarantined=True) == {merged.id, archived.id}


def level_of_slots(owner: Owner, recorded: RecordedTurn) -> None:
    shorten(owner, recorded)


def level_of_episodes(owner: Owner, recorded: RecordedTurn) -> None:
    reduce(owner, recorded.record, merge(owner, recorded.record, list(recorded.slots)))


@pytest.mark.parametrize(
    "compress", [pytest.param(level_of_slots, id="slots"), pytest.param(level_of_episodes, id="episodes")]
)
def test_no_mark_brings_a_replaced_level_back(
    staff: Owner, owner: Owner, recorded: RecordedTurn, compress: Callable[[Owner, RecordedTurn], None]
) -> None:
    compress(owner, recorded)
    archived = ids_where(archived=True)

    mark_memories(staff, sorted(archived), mark="unarchive", now=LATER)

    assert ids_where(archived=True) == archived


def test_a_slot_that_staff_archived_comes_back(staff: Owner, recorded: RecordedTurn) -> None:
    for mark, is_archived in (("archive", True), ("unarchive", False)):
        mark_memories(staff, [recorded.slots[0].id], mark=mark, now=LATER)

        assert Memory.objects.get(id=recorded.slots[0].id).archived == is_archived


def test_a_deleted_slot_goes_with_its_other_levels_and_its_raw_trace(
    staff: Owner, owner: Owner, recorded: RecordedTurn
) -> None:
    short = shorten(owner, recorded)["reasoning"]

    assert delete_memories(staff, [short.id], now=NOW) == 2

    assert not TurnSlot.objects.filter(slot="reasoning").exists()
    assert not ReasoningTrace.objects.exists()
    assert record_of(recorded).reasoning_tier == ReasoningTier.NONE


def test_a_deleted_episode_goes_with_its_sources(staff: Owner, owner: Owner, recorded: RecordedTurn) -> None:
    other = add_record(owner, slots=SLOTS)
    episode = merge(owner, recorded.record, list(shorten(owner, recorded).values()))

    delete_memories(staff, [episode.id], now=NOW)

    assert texts_left() == {row.text for row in other.slots}
    assert record_of(recorded).episode_id is None


def test_the_audit_of_a_correction_names_the_erased_memories_but_no_text(
    staff: Owner, owner: Owner, recorded: RecordedTurn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.conf.AUDIT_LEVEL", "verbose")
    raw = slot_of(recorded, "action")
    correct(staff, shorten(owner, recorded)["action"])

    entries = AuditEntry.objects.filter(actor="staff:chief").order_by("id")

    assert [(entry.operation, entry.result_count) for entry in entries] == [("delete", 1), ("update", 1)]
    assert entries[0].affected_ids == [str(raw.id)]
    assert SECRET not in str(list(entries.values()))
