"""Erasing a user from the admin: preview, reason, progress, and a receipt that can be verified."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memory.models import Account, Erasure, JobRun, Memory, StaffLimit
from memory.owner import Owner
from memory.services.custody.subjects import continue_erasure, verify_receipt
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import list_url, page_url, shown
from tests.memory.admin.test_lists import INLINE
from tests.memory.custody import later
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

URL = "/admin/memory/erasure/erase/"


@pytest.fixture
def ana(account: Account) -> Owner:
    owner = Owner(account_id=account.pk, agent_id="assistant", user_id="ana")
    know(owner, "Likes tea.")
    return owner


def post(browser: Client, account: Account, **fields: str) -> Any:
    return browser.post(URL, {"account": str(account.pk), "user": "ana", **fields})


def confirm(browser: Client, account: Account, **fields: str) -> Any:
    """Confirm what a preview of the same account and user has shown."""
    previewed = post(browser, account).context["previewed"]
    return post(browser, account, post="yes", **{"previewed": previewed, **fields})


def finish(erasure: Erasure) -> Erasure:
    for _ in range(500):
        erasure = continue_erasure(erasure.account_id, erasure.pk, now=later())
        if erasure.status == Erasure.Status.COMPLETED:
            break
    return erasure


def test_a_preview_counts_and_erases_nothing(staff: Client, account: Account, ana: Owner) -> None:
    page = post(staff, account)

    assert ("memories", 1) in page.context["counts"]
    named = {name for name, _ in page.context["counts"]}
    assert ("audit entries" in named, "memory audit log" in named) == (True, False)
    assert "Erase for good" in shown(page)
    assert not Erasure.objects.exists()
    assert Memory.objects.count() == 1


def test_without_a_reason_nothing_is_erased(staff: Client, account: Account, ana: Owner) -> None:
    page = confirm(staff, account, reason=" ")

    assert page.context["form"].errors == {"reason": ["Say why the user is erased."]}
    assert not Erasure.objects.exists()


def test_a_reason_that_names_the_user_is_refused(staff: Client, account: Account, ana: Owner) -> None:
    page = confirm(staff, account, reason="ana asked for it")

    assert "must not name the user" in shown(page)
    assert not Erasure.objects.exists()


@pytest.mark.parametrize("changed", [{"user": "ben"}, {"previewed": ""}, {"previewed": "odd:signed:value"}])
def test_a_user_who_was_not_previewed_is_previewed_instead_of_erased(
    staff: Client, account: Account, ana: Owner, changed: dict[str, str]
) -> None:
    page = confirm(staff, account, reason="request 4711", **changed)

    assert "is another one than was previewed" in shown(page)
    assert not Erasure.objects.exists()
    again = post(staff, account, post="yes", reason="r", **{**changed, "previewed": page.context["previewed"]})
    assert again.status_code == 302


def test_a_preview_of_another_account_confirms_nothing(
    staff: Client, account: Account, stranger: Account, ana: Owner
) -> None:
    previewed = post(staff, stranger).context["previewed"]

    post(staff, account, post="yes", reason="request 4711", previewed=previewed)

    assert not Erasure.objects.exists()


def test_the_preview_reads_no_rows_for_names_in_their_texts(staff: Client, account: Account) -> None:
    know(Owner(account_id=account.pk, agent_id="assistant"), "ana@example.org likes tea.")

    page = post(staff, account, user="ana@example.org")

    assert page.context["counts"] == []
    assert "rewrites rows that name it" in shown(page)


def test_a_confirmed_erasure_runs_as_a_job_and_shows_its_progress(staff: Client, account: Account, ana: Owner) -> None:
    answer = confirm(staff, account, reason="request 4711")

    erasure = Erasure.objects.get()
    url = page_url("erasure", erasure.pk)
    assert answer.headers["Location"] == url
    assert (erasure.requested_by, erasure.reason) == ("staff:chief", "request 4711")
    assert JobRun.objects.filter(job="erase").exists()
    assert "memory/progress.js" in shown(staff.get(url))
    assert staff.get(url, {"progress": 1}).json() == {"examined": 0, "state": "queued", "is_running": True}


def test_a_completed_erasure_shows_a_receipt_that_can_be_verified(staff: Client, account: Account, ana: Owner) -> None:
    confirm(staff, account, reason="request 4711")
    erasure = finish(Erasure.objects.get())

    page = shown(staff.get(page_url("erasure", erasure.pk)))
    receipt = staff.get(page_url("erasure", erasure.pk, "receipt"))

    assert not Memory.objects.exists()
    assert "Download the receipt" in page
    assert '<progress id="bulk-progress"' in page
    assert "progress.js" not in page
    content = json.loads(receipt.content)
    assert receipt.headers["Content-Disposition"] == f'attachment; filename="erasure-{erasure.pk}.json"'
    assert verify_receipt(ana, content["receipt"], content["signature"])


def test_an_unfinished_erasure_has_no_receipt(staff: Client, account: Account, ana: Owner) -> None:
    confirm(staff, account, reason="request 4711")

    assert staff.get(page_url("erasure", Erasure.objects.get().pk, "receipt")).status_code == 404


def test_an_unknown_user_is_said_to_have_no_rows(staff: Client, account: Account) -> None:
    assert "No row belongs to this user." in shown(post(staff, account))


def test_only_those_who_may_erase_reach_the_page(newcomer: Client, account: Account, ana: Owner) -> None:
    allow("newcomer", "view_erasure")

    assert newcomer.get(URL).status_code == 403
    assert post(newcomer, account, post="yes", reason="r").status_code == 403
    assert URL not in shown(newcomer.get(list_url("erasure")))
    assert not Erasure.objects.exists()


def test_users_of_other_accounts_cannot_be_erased(
    newcomer: Client, account: Account, stranger: Account, ana: Owner
) -> None:
    allow("newcomer", "view_erasure", "add_erasure")
    StaffLimit.objects.create(user=User.objects.get(username="newcomer"), account_ids=[stranger.pk])

    page = post(newcomer, account, post="yes", reason="r")

    assert list(page.context["form"].errors) == ["account"]
    assert "workshop" not in shown(newcomer.get(URL))
    assert not Erasure.objects.exists()


def test_the_list_leads_to_the_page(staff: Client) -> None:
    assert URL in shown(staff.get(list_url("erasure")))


def test_hostile_ids_are_escaped(staff: Client, account: Account) -> None:
    page = shown(post(staff, account, user=HOSTILE[:30]))

    assert "<script>alert" not in page
    assert INLINE.findall(page) == []
