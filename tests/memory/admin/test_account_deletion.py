"""Deleting accounts and keys in the admin: a preview, the name typed again, a reason, a job, and the receipt."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from memory.models import Account, ApiKey, AuditEntry, Erasure, JobRun, Memory
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE, issue_key
from memory.services.custody.subjects import continue_erasure
from tests.memory.admin.chats import allow
from tests.memory.admin.pages import choose, list_url, page_url, shown
from tests.memory.custody import later
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def url(account: Account) -> str:
    return page_url("account", account.pk, "delete-all")


def confirm(browser: Client, url: str, **fields: str) -> Any:
    return browser.post(url, {"name": "workshop", "reason": "the contract ended", **fields})


def test_the_page_of_an_account_leads_to_a_preview(staff: Client, owner: Owner, url: str) -> None:
    know(owner, "Likes tea.")

    page = staff.get(url)

    assert url in shown(staff.get(page_url("account", owner.account_id)))
    assert ("memories", "1") in page.context["counts"]
    assert not Erasure.objects.exists()


@pytest.mark.parametrize("fields", [{"name": "work"}, {"reason": " "}], ids=str)
def test_nothing_is_deleted_without_the_name_and_a_reason(staff: Client, url: str, fields: dict[str, str]) -> None:
    page = confirm(staff, url, **fields)

    assert page.status_code == 200
    assert not Erasure.objects.exists()


def test_a_deletion_shows_its_progress_and_then_its_receipt(staff: Client, owner: Owner, url: str) -> None:
    know(owner, "Likes tea.")

    confirm(staff, url)
    erasure = Erasure.objects.get()
    progress = page_url("erasure", erasure.pk)
    running = staff.get(progress, {"progress": 1}).json()
    while erasure.status != Erasure.Status.COMPLETED:
        erasure = continue_erasure(owner.account_id, erasure.pk, now=later())
    ended = staff.get(progress, {"progress": 1}).json()
    entry = staff.get(progress, follow=True)

    assert (running["is_running"], ended["is_running"]) == (True, False)
    assert JobRun.objects.filter(job="erase", account=None, requested_by="staff:chief").exists()
    assert "the contract ended" in shown(entry)
    assert not Memory.objects.exists()
    assert not Account.objects.exists()


def test_an_account_under_a_legal_hold_is_not_deleted(staff: Client, account: Account, url: str) -> None:
    Account.objects.update(legal_hold=True)

    assert "legal hold" in shown(confirm(staff, url))
    assert not Erasure.objects.exists()


def test_staff_who_are_limited_or_lack_the_permission_delete_no_account(
    limited: Client, newcomer: Client, account: Account, url: str
) -> None:
    allow("newcomer", "view_account", "change_account")

    assert [browser.get(url).status_code for browser in (limited, newcomer)] == [403, 403]
    assert url not in shown(limited.get(page_url("account", account.pk)))


def test_keys_that_have_ended_are_deleted_and_valid_ones_are_refused(staff: Client, account: Account) -> None:
    valid, ended = (issue_key(account, scopes=READ_WRITE).key for _ in range(2))
    ApiKey.objects.filter(pk=ended.pk).update(revoked_at=datetime.now(UTC))

    page = shown(choose(staff, list_url("apikey"), "delete_selected", valid.pk, ended.pk))

    assert list(ApiKey.objects.values_list("pk", flat=True)) == [valid.pk]
    assert "still valid" in page
    assert AuditEntry.objects.filter(operation="delete", memory_type="api_key").count() == 1


def test_a_valid_key_has_no_page_that_deletes_it(staff: Client, account: Account) -> None:
    key = issue_key(account, scopes=READ_WRITE).key

    assert staff.get(page_url("apikey", key.pk, "delete")).status_code == 403
    ApiKey.objects.update(revoked_at=datetime.now(UTC))
    assert staff.post(page_url("apikey", key.pk, "delete"), {"post": "yes"}).status_code == 302
    assert not ApiKey.objects.exists()
