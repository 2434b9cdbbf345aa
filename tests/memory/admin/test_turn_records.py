"""Structured turns and their slots in the admin: found by words, opened as cards, corrected, marked, erased."""

from typing import Any

import pytest
from django.test import Client

from memory.models import Account, AuditEntry, Memory, TurnRecord, TurnSlot
from memory.owner import Owner
from tests.memory.admin.chats import allow
from tests.memory.admin.pages import choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.goals import aim
from tests.memory.records import add_record
from tests.memory.stories import merge, whole_slots


@pytest.fixture
def record(owner: Owner) -> TurnRecord:
    return add_record(owner, slots=whole_slots(), goal_id=aim(owner).pk, metadata={"run": 7}).record


def slot_of(record: TurnRecord, slot: str) -> Any:
    objects = TurnSlot.objects
    return objects.get(record=record, slot=slot)


def listed(client: Client, model: str = "turnrecord", **query: Any) -> list[Any]:
    return [row.pk for row in client.get(list_url(model, **query)).context["cl"].result_list]


def test_a_records_page_shows_its_slots_and_links_to_goal_and_conversation(staff: Client, record: TurnRecord) -> None:
    page = shown(staff.get(page_url("turnrecord", record.pk)))

    for text in ("Turn 0", "Somebody asks for the pump.", "Decided: replace the pump", "no. 7", "&quot;run&quot;: 7",
                 page_url("goal", record.goal_id), page_url("conversation", record.log_id)):  # fmt: skip
        assert text in page


@pytest.mark.parametrize("words", ["leaks", "somebody pump", "chat-1", "assistant"])
def test_a_record_is_found_by_the_words_of_its_slots(
    staff: Client, account: Account, owner: Owner, record: TurnRecord, words: str
) -> None:
    add_record(Owner(account_id=account.id, agent_id="critic"), "elsewhere")

    assert listed(staff, q=words) == [record.pk]
    assert listed(staff, q=f"{words} nowhere") == []


def test_the_list_is_filtered_by_conversation_status_and_level(staff: Client, owner: Owner, record: TurnRecord) -> None:
    failed = add_record(owner, "chat-2", slots=whole_slots(status="failed")).record

    assert listed(staff, log=record.log_id) == [record.pk]
    assert listed(staff, status__exact="failed") == [failed.pk]
    assert listed(staff, level__exact=1) == []
    assert listed(staff) == [failed.pk, record.pk]


def test_a_record_cannot_be_edited(staff: Client, record: TurnRecord) -> None:
    assert staff.post(page_url("turnrecord", record.pk), {"status": "failed"}).status_code == 403


def test_a_record_is_erased_with_its_slots_and_audited(staff: Client, record: TurnRecord) -> None:
    staff.post(page_url("turnrecord", record.pk, "delete"), {"post": "yes"})

    assert not TurnRecord.objects.exists()
    assert not Memory.objects.filter(kind="turn_slot").exists()
    assert AuditEntry.objects.filter(actor="staff:chief", operation="delete", memory_type="turn_record").exists()


def test_erasing_a_merged_record_is_refused_with_a_message(staff: Client, owner: Owner, record: TurnRecord) -> None:
    merge(owner, None, [record])

    for response in (
        staff.post(page_url("turnrecord", record.pk, "delete"), {"post": "yes"}, follow=True),
        choose(staff, list_url("turnrecord"), "delete_selected", record.pk, post="yes"),
    ):
        assert "merged into a work episode" in shown(response)
    assert TurnRecord.objects.exists()


def test_pages_cost_few_queries(staff: Client, record: TurnRecord) -> None:
    slot = slot_of(record, "action")

    costs = [queries_of(staff, page_url(*page)) for page in (("turnrecord", record.pk), ("turnslot", slot.pk))]

    assert max(costs) <= 12


def test_correcting_the_text_of_a_slot_clears_its_data(staff: Client, record: TurnRecord) -> None:
    slot = slot_of(record, "action")
    url = page_url("turnslot", slot.pk)
    before = shown(staff.get(url))

    staff.post(url, form_values(staff.get(url)) | {"text": "Ordered a valve."})

    slot.refresh_from_db()
    assert (slot.text, slot.data) == ("Ordered a valve.", {})
    assert "no. 7" in before
    assert "no. 7" not in shown(staff.get(url))


def test_a_slot_is_marked_like_any_memory(staff: Client, record: TurnRecord) -> None:
    slot = slot_of(record, "outcome")

    choose(staff, list_url("turnslot"), "quarantine", slot.pk)

    slot.refresh_from_db()
    assert slot.quarantined
    assert "quarantined" in shown(staff.get(page_url("turnrecord", record.pk)))


def test_slots_are_listed_by_slot_and_tier(staff: Client, record: TurnRecord) -> None:
    reasoning = slot_of(record, "reasoning")

    assert listed(staff, "turnslot", slot__exact="reasoning") == [reasoning.pk]
    assert listed(staff, "turnslot", tier__exact="structured_rationale") == [reasoning.pk]
    assert listed(staff, "turnslot", q="valve") == []


def test_raw_traces_have_no_pages(staff: Client) -> None:
    assert "reasoningtrace" not in shown(staff.get("/admin/"))
    assert staff.get("/admin/memory/reasoningtrace/").status_code == 404


def test_the_view_permission_alone_allows_no_correcting_or_erasing(newcomer: Client, record: TurnRecord) -> None:
    slot = slot_of(record, "action")
    allow("newcomer", "view_turnrecord", "view_turnslot")

    assert "Ordered the pump." in shown(newcomer.get(page_url("turnrecord", record.pk)))
    assert newcomer.post(page_url("turnslot", slot.pk), {"text": "x"}).status_code == 403
    assert newcomer.post(page_url("turnrecord", record.pk, "delete"), {"post": "yes"}).status_code == 403
