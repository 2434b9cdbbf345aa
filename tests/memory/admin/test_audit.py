"""The pages of the audit log, and the account's level."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from memory.models import Account, AuditEntry, Fact
from memory.owner import Owner
from memory.services.custody.memories import erase_derived
from tests.memory.admin.pages import choose, form_values, list_url, page_url, shown
from tests.memory.audits import entered
from tests.memory.facts import know

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def entry(account: Account) -> AuditEntry:
    return entered(
        account,
        timezone.now() - timedelta(hours=1),
        query_text=HOSTILE,
        metadata={HOSTILE: HOSTILE},
        config_snapshot={"promote_confidence": 0.85},
        affected_ids=[HOSTILE],
        conversation_id="c1",
    )


def erase(client: Client, entry: AuditEntry) -> None:
    client.post(
        list_url("auditentry"),
        {"action": "erase", "_selected_action": [str(entry.id)], "post": "yes", "reason": "asked for"},
        follow=True,
    )


def test_an_entry_is_shown_with_its_thresholds_and_its_payload_as_text(staff: Client, entry: AuditEntry) -> None:
    page = staff.get(page_url("auditentry", entry.id))

    assert page.status_code == 200
    assert "promote_confidence" in shown(page)
    assert HOSTILE.encode() not in page.content
    assert page.content.count(b"&lt;script&gt;") >= 3


@pytest.mark.parametrize(("query", "count"), [({"memory_type": "episodic"}, 1), ({"memory_type": "pool"}, 0)], ids=str)
def test_the_list_is_filtered_by_type(staff: Client, entry: AuditEntry, query: dict[str, str], count: int) -> None:
    assert staff.get(list_url("auditentry", **query)).context["cl"].result_count == count


def test_staff_erase_payloads_and_are_named_for_it(staff: Client, entry: AuditEntry) -> None:
    erase(staff, entry)

    entry.refresh_from_db()
    assert (entry.query_text, list(entry.metadata)) == ("", ["payload_erased_at"])
    assert AuditEntry.objects.get(operation="erase_audit").actor == "staff:chief"


def test_the_view_permission_alone_does_not_allow_erasing_payloads(newcomer: Client, entry: AuditEntry) -> None:
    user = User.objects.get(username="newcomer")
    user.user_permissions.add(Permission.objects.get(codename="view_auditentry"))

    erase(newcomer, entry)

    entry.refresh_from_db()
    assert entry.query_text == HOSTILE


def test_setting_an_accounts_audit_level_is_audited_and_in_its_history(staff: Client, account: Account) -> None:
    values = form_values(staff.get(page_url("account", account.id)))

    staff.post(page_url("account", account.id), values | {"audit_level": "off"})

    account.refresh_from_db()
    audited = AuditEntry.objects.get(operation="set_audit_level")
    assert (account.audit_level, audited.actor, audited.affected_ids) == ("off", "staff:chief", [str(account.id)])
    history = staff.get(page_url("account", account.id, "history"))
    assert "udit" in shown(history)


def test_staff_chooses_what_an_account_does_about_contradictions(staff: Client, account: Account) -> None:
    values = form_values(staff.get(page_url("account", account.id)))

    staff.post(page_url("account", account.id), values | {"contradictions": "flag_review"})

    account.refresh_from_db()
    assert account.contradictions == "flag_review"


def correct(staff: Client, fact: Fact, reason: str, **edits: str) -> AuditEntry:
    """Correct a fact on its page and return the audit entry of that."""
    url = page_url("fact", fact.pk)
    staff.post(url, form_values(staff.get(url)) | edits | {"_reason": reason})
    return AuditEntry.objects.order_by("-id")[0]


def test_a_correction_keeps_its_reason_and_the_values_before_and_after(staff: Client, owner: Owner) -> None:
    fact = know(owner)

    entry = correct(staff, fact, "She told us.", text="Ana lives in Bern.", confidence="0.5")

    changes = entry.metadata["changes"][str(fact.pk)]
    assert entry.metadata["reason"] == "She told us."
    assert changes["text"] == [fact.text, "Ana lives in Bern."]
    assert changes["confidence"] == [fact.confidence, 0.5]
    assert "salience" not in changes


def test_an_entry_shows_what_changed_as_text(staff: Client, owner: Owner) -> None:
    entry = correct(staff, know(owner), HOSTILE, text=HOSTILE)

    page = staff.get(page_url("auditentry", entry.id))

    assert HOSTILE.encode() not in page.content
    assert "Before" in shown(page)
    assert page.content.count(b"&lt;script&gt;") >= 2


def test_a_bulk_change_keeps_the_values_of_each_row(staff: Client, owner: Owner) -> None:
    fact = know(owner)

    choose(staff, list_url("fact"), "pin", fact.pk)

    entry = AuditEntry.objects.get(operation="pin")
    assert entry.metadata["reason"] == "a test"
    assert entry.metadata["changes"] == {str(fact.pk): {"pinned": [False, True]}}


def test_a_deletion_keeps_its_reason_and_no_value(staff: Client, owner: Owner) -> None:
    fact = know(owner)

    staff.post(page_url("fact", fact.pk, "delete"), {"post": "yes", "_reason": "She asked for it."})

    entry = AuditEntry.objects.get(operation="delete")
    assert entry.metadata["reason"] == "She asked for it."
    assert entry.metadata["changes"] == {str(fact.pk): "deleted"}


def test_a_change_of_an_account_keeps_its_values(staff: Client, account: Account) -> None:
    url = page_url("account", account.id)

    staff.post(url, form_values(staff.get(url)) | {"contradictions": "flag_review", "_reason": "Too many slips."})

    entry = AuditEntry.objects.order_by("-id")[0]
    assert entry.metadata["reason"] == "Too many slips."
    assert entry.metadata["changes"][str(account.id)]["contradictions"][1] == "flag_review"


def test_entries_of_one_request_are_found_together(staff: Client, owner: Owner) -> None:
    fact, other = know(owner), know(owner, claim="Rui is allergic to nuts.")
    entry = correct(staff, fact, "", text="Ana lives in Bern.", salience="0.9")
    correct(staff, other, "", salience="0.8")

    found = staff.get(list_url("auditentry", request=entry.metadata["request_id"])).context["cl"].queryset

    assert {each.metadata["request_id"] for each in found} == {entry.metadata["request_id"]}
    assert {each.operation for each in found} == {"update", "correct"}


@pytest.mark.parametrize("place", ["affected_ids", "request_id", "actor"])
def test_a_search_finds_entries_by_object_request_and_actor(staff: Client, owner: Owner, place: str) -> None:
    fact = know(owner)
    entry = correct(staff, fact, "", salience="0.9")
    wanted = {"affected_ids": str(fact.pk), "request_id": entry.metadata["request_id"], "actor": "staff:chief"}

    found = staff.get(list_url("auditentry", q=wanted[place])).context["cl"].queryset

    assert entry in list(found)


def test_erasing_a_memory_erases_the_values_that_a_correction_left(staff: Client, owner: Owner) -> None:
    fact = know(owner)
    entry = correct(staff, fact, "She told us.", text="Ana lives in Bern.")

    erase_derived(owner, [fact.pk], now=timezone.now())

    entry.refresh_from_db()
    assert list(entry.metadata) == ["payload_erased_at"]


def test_entries_of_one_request_are_listed_as_a_group(staff: Client, account: Account) -> None:
    now = timezone.now()
    for request_id in ("r1", "r2", "r2", "r2", ""):
        entered(account, now, metadata={"request_id": request_id})

    page = shown(staff.get(list_url("auditentry")))

    assert page.count("same request") == 2
    assert "(3 entries)" in page
    assert page.count("request=r2") == 1
