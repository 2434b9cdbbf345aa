"""Slots of structured turns and work episodes, corrected, hidden, deleted: nothing beside them goes on as before."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memory.errors import Unprocessable
from memory.extraction.turn_slots import Action, Call, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, AuditEntry, Memory, ReasoningTrace, TurnRecord, TurnSlot, WorkEpisode
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from memory.services.records.record import Recorded, slots_at
from tests.memory.episodes import NOW
from tests.memory.records import put_record
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
def staff(account: Account) -> Owner:
    return Owner(account_id=account.id, actor="staff:chief")


@pytest.fixture
def recorded(owner: Owner) -> Recorded:
    """A structured turn with a secret in it, in an account that keeps raw traces."""
    Account.objects.filter(id=owner.account_id).update(reasoning_tier=ReasoningTier.RAW_TRACE.value)
    return put_record(owner, slots=SLOTS)


def correct(staff: Owner, row: Memory, text: str = "(taken out)") -> None:
    version = Memory.objects.values_list("version", flat=True).get(id=row.pk)
    correct_memory(staff, row.pk, changes={"text": text}, version=version, now=LATER)


def slot_of(recorded: Recorded, slot: str) -> TurnSlot:
    return next(row for row in recorded.slots if row.slot == slot)


def record_of(recorded: Recorded) -> TurnRecord:
    return TurnRecord.objects.get(id=recorded.record.id)


def test_a_corrected_slot_says_nowhere_what_it_said(staff: Owner, owner: Owner, recorded: Recorded) -> None:
    short = shorten(owner, recorded)["action"]
    rows: Any = TurnSlot.objects
    rows.filter(pk=short.pk).update(data={"calls": [{"tool": "login", "arguments": SECRET}]})

    correct(staff, short)

    left: Any = TurnSlot.objects.filter(record=recorded.record, slot="action")
    assert [(row.text, row.data) for row in left] == [("(taken out)", {})]


def test_other_corrections_of_a_slot_leave_its_data_and_levels(staff: Owner, owner: Owner, recorded: Recorded) -> None:
    action = slot_of(recorded, "action")

    correct_memory(staff, action.id, changes={"salience": 0.9}, version=1, now=LATER)

    assert TurnSlot.objects.get(pk=action.pk).data["calls"]


def test_a_corrected_reasoning_leaves_no_raw_trace(staff: Owner, recorded: Recorded) -> None:
    correct(staff, slot_of(recorded, "reasoning"))

    assert not ReasoningTrace.objects.exists()
    assert record_of(recorded).reasoning_tier == ReasoningTier.STRUCTURED_RATIONALE


def test_a_corrected_action_leaves_the_raw_trace(staff: Owner, recorded: Recorded) -> None:
    correct(staff, slot_of(recorded, "action"))

    assert ReasoningTrace.objects.exists()
    assert record_of(recorded).reasoning_tier == ReasoningTier.RAW_TRACE


def test_a_record_counts_the_tokens_that_its_slots_have_by_now(staff: Owner, recorded: Recorded) -> None:
    correct(staff, slot_of(recorded, "outcome"), text="Well. " * 50)

    rows = TurnSlot.objects.filter(record=recorded.record)
    assert record_of(recorded).tokens == sum(row.token_count for row in rows)
    assert record_of(recorded).version == recorded.record.version + 1


def test_a_corrected_work_episode_says_nowhere_what_it_said(staff: Owner, owner: Owner, recorded: Recorded) -> None:
    merged = merge(owner, recorded.record, list(shorten(owner, recorded).values()))
    archived = reduce(owner, recorded.record, merged)

    correct(staff, archived)

    assert texts_left() == {"(taken out)"}
    assert WorkEpisode.objects.get(pk=archived.pk).data == {}
    assert not ReasoningTrace.objects.exists()


def test_an_archived_level_is_not_corrected_behind_the_one_that_stands_for_it(
    staff: Owner, owner: Owner, recorded: Recorded
) -> None:
    shorten(owner, recorded)

    with pytest.raises(Unprocessable, match="another level"):
        correct(staff, slot_of(recorded, "action"))


@pytest.mark.parametrize("column", ["user_id", "channel"])
def test_whose_a_slot_is_stays_as_its_record_says(staff: Owner, recorded: Recorded, column: str) -> None:
    with pytest.raises(Unprocessable, match="turn slot"):
        correct_memory(staff, recorded.slots[0].id, changes={column: "other"}, version=1, now=LATER)


@pytest.mark.parametrize("level", [0, 1])
def test_a_quarantined_slot_is_told_at_no_level(staff: Owner, owner: Owner, recorded: Recorded, level: int) -> None:
    levels = [slot_of(recorded, "action"), shorten(owner, recorded)["action"]]

    mark_memories(staff, [levels[level].id], mark="quarantine", now=LATER)

    assert ids_where(quarantined=True) == {row.id for row in levels}
    assert all("action" not in {row.slot for row in slots_at(record_of(recorded), each)} for each in (0, 1))


def test_what_tells_of_a_quarantined_slot_is_hidden_and_stays_so(
    staff: Owner, owner: Owner, recorded: Recorded
) -> None:
    merged = merge(owner, recorded.record, list(shorten(owner, recorded).values()))
    archived = reduce(owner, recorded.record, merged)
    action = slot_of(recorded, "action")

    mark_memories(staff, [action.id], mark="quarantine", now=LATER)
    assert {merged.id, archived.id} <= ids_where(quarantined=True)

    mark_memories(staff, [action.id], mark="release", now=LATER)
    assert ids_where(quarantined=True) == {merged.id, archived.id}


def test_a_quarantined_episode_is_told_at_no_level_and_leaves_its_slots(
    staff: Owner, owner: Owner, recorded: Recorded
) -> None:
    merged = merge(owner, recorded.record, list(recorded.slots))
    archived = reduce(owner, recorded.record, merged)

    mark_memories(staff, [archived.id], mark="quarantine", now=LATER)

    assert ids_where(quarantined=True) == {merged.id, archived.id}


def level_of_slots(owner: Owner, recorded: Recorded) -> None:
    shorten(owner, recorded)


def level_of_episodes(owner: Owner, recorded: Recorded) -> None:
    reduce(owner, recorded.record, merge(owner, recorded.record, list(recorded.slots)))


@pytest.mark.parametrize(
    "compress", [pytest.param(level_of_slots, id="slots"), pytest.param(level_of_episodes, id="episodes")]
)
def test_what_another_level_stands_for_comes_back_by_no_mark(
    staff: Owner, owner: Owner, recorded: Recorded, compress: Callable[[Owner, Recorded], None]
) -> None:
    compress(owner, recorded)
    archived = ids_where(archived=True)

    mark_memories(staff, sorted(archived), mark="unarchive", now=LATER)

    assert ids_where(archived=True) == archived


def test_a_slot_that_staff_archived_comes_back(staff: Owner, recorded: Recorded) -> None:
    for mark, is_archived in (("archive", True), ("unarchive", False)):
        mark_memories(staff, [recorded.slots[0].id], mark=mark, now=LATER)

        assert Memory.objects.get(id=recorded.slots[0].id).archived == is_archived


def test_a_deleted_slot_goes_with_its_other_levels_and_its_raw_trace(
    staff: Owner, owner: Owner, recorded: Recorded
) -> None:
    short = shorten(owner, recorded)["reasoning"]

    assert delete_memories(staff, [short.id], now=NOW) == 2

    assert not TurnSlot.objects.filter(slot="reasoning").exists()
    assert not ReasoningTrace.objects.exists()
    assert record_of(recorded).reasoning_tier == ReasoningTier.NONE


def test_a_deleted_episode_goes_with_all_that_it_was_made_of(staff: Owner, owner: Owner, recorded: Recorded) -> None:
    other = put_record(owner, slots=SLOTS)
    episode = merge(owner, recorded.record, list(shorten(owner, recorded).values()))

    delete_memories(staff, [episode.id], now=NOW)

    assert texts_left() == {row.text for row in other.slots}
    assert record_of(recorded).episode_id is None


def test_a_correction_names_what_it_erased_and_no_text(
    staff: Owner, owner: Owner, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.conf.AUDIT_LEVEL", "verbose")
    raw = slot_of(recorded, "action")
    correct(staff, shorten(owner, recorded)["action"])

    entries = AuditEntry.objects.filter(actor="staff:chief").order_by("id")

    assert [(entry.operation, entry.result_count) for entry in entries] == [("delete", 1), ("update", 1)]
    assert entries[0].affected_ids == [str(raw.id)]
    assert SECRET not in str(list(entries.values()))
