"""The pages of the audit log, and the account's level."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from memory.models import Account, AuditEntry
from tests.memory.admin.pages import form_values, list_url, page_url, shown
from tests.memory.audits import entered

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
