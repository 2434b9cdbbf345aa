"""Records are read-only, links are edited, jobs are run again."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from memory.models import Account, AuditEntry, IdempotentRequest, JobRun, Link, Memory, Participant, Vector
from memory.models.links import STRUCTURAL_TYPES
from memory.owner import Owner
from tests.memory.admin.pages import add_url, choose, list_url, page_url, shown
from tests.memory.episodes import NOW, draft, store
from tests.memory.graphs import link as link_between


@pytest.fixture
def ends(owner: Owner) -> list[Any]:
    return list(store(owner, draft("one", angle=0.1), draft("two", angle=0.2)))


@pytest.mark.parametrize("model", [AuditEntry, IdempotentRequest, Vector])
def test_a_record_is_not_edited(staff: Client, chief: Any, model: Any) -> None:
    pages = admin.site._registry[model]
    request = staff.get(list_url(model._meta.model_name)).wsgi_request

    assert not pages.has_add_permission(request)
    assert not pages.has_change_permission(request)
    assert not pages.has_delete_permission(request)


def test_an_audit_entry_has_a_page(staff: Client, ends: list[Any]) -> None:
    entry = AuditEntry.objects.get(operation="store")

    assert str(ends[0].id) in shown(staff.get(page_url("auditentry", entry.id)))


def test_an_answer_is_shown_without_its_body(staff: Client, account: Account) -> None:
    key = account.api_keys.create(prefix="mem_x", secret_hash="x")
    row = IdempotentRequest.objects.create(
        account=account, api_key=key, request_hash="h", body_hash="b", status=200, body="a text", expires_at=NOW
    )

    assert "a text" not in shown(staff.get(page_url("idempotentrequest", row.id)))


def test_a_link_is_added_between_two_memories_of_one_account(staff: Client, ends: list[Any]) -> None:
    values = {"source_memory": ends[0].id, "target_memory": ends[1].id, "type": "KNOWS", "weight": "1"}

    staff.post(add_url("link"), values)

    link = Link.objects.get()
    assert (link.source_id, link.target_id, link.account_id) == (ends[0].id, ends[1].id, ends[0].account_id)
    assert AuditEntry.objects.order_by("-id")[0].memory_type == "link"
    assert staff.post(add_url("link"), values, follow=True).status_code == 200
    assert Link.objects.count() == 1


def test_a_link_never_crosses_accounts(staff: Client, stranger: Account, ends: list[Any]) -> None:
    (other,) = store(Owner(account_id=stranger.id), draft("elsewhere"))

    response = staff.post(add_url("link"), {"source_memory": ends[0].id, "target_memory": other.id, "type": "KNOWS"})

    assert response.status_code == 200
    assert not Link.objects.exists()


@pytest.mark.parametrize("type_", sorted(STRUCTURAL_TYPES))
def test_links_of_system_types_cannot_be_made_by_hand(staff: Client, ends: list[Any], type_: str) -> None:
    given = {"type": type_, "weight": 1, "properties": "{}"}

    added = staff.post(add_url("link"), {"source_memory": ends[0].id, "target_memory": ends[1].id, **given})
    link = link_between(ends[0], ends[1], "KNOWS")
    edited = staff.post(page_url("link", link.id), given)

    assert list(Link.objects.values_list("type", flat=True)) == ["KNOWS"]
    for response in (added, edited):
        assert f"Links of the type {type_} are made by the service" in response.content.decode()


def test_the_type_of_a_system_link_cannot_be_changed(staff: Client, ends: list[Any]) -> None:
    link = link_between(ends[0], ends[1], "SUPERSEDES")

    staff.post(page_url("link", link.id), {"type": "KNOWS", "weight": 1, "properties": "{}"})

    link.refresh_from_db()
    assert link.type == "SUPERSEDES"


@pytest.mark.parametrize("weight", ["2.5", "nan", "x"])
def test_the_weight_of_a_link_is_edited_and_the_link_deleted(staff: Client, ends: list[Any], weight: str) -> None:
    link = link_between(ends[0], ends[1], "ABOUT")

    staff.post(page_url("link", link.id), {"type": "ABOUT", "weight": weight, "properties": "{}"})
    link.refresh_from_db()
    staff.post(page_url("link", link.id, "delete"), {"post": "yes"})

    assert link.weight == (2.5 if weight == "2.5" else 1.0)
    assert not Link.objects.exists()
    assert Memory.objects.count() == 2


def test_links_of_a_memory_are_found_from_its_page(staff: Client, ends: list[Any]) -> None:
    link_between(ends[0], ends[1], "ABOUT")

    assert [staff.get(list_url("link", q=end.id)).context["cl"].result_count for end in ends] == [1, 1]


def test_a_participant_is_added_and_removed(staff: Client, account: Account) -> None:
    staff.post(add_url("participant"), {"account": account.id, "conversation_id": "a/b", "agent_id": "ana"})
    part = Participant.objects.get()

    staff.post(page_url("participant", part.id, "delete"), {"post": "yes"})

    assert not Participant.objects.exists()
    assert [entry.operation for entry in AuditEntry.objects.order_by("id")] == ["create", "delete"]


def test_adding_a_run_asks_for_one(staff: Client, account: Account) -> None:
    staff.post(add_url("jobrun"), {"job": "expire", "account": account.id, "dry_run": "on"})

    run = JobRun.objects.get()
    assert (run.status, run.requested_by, run.dry_run) == ("queued", "staff:chief", True)
    assert AuditEntry.objects.get().operation == "run_job"


def test_a_job_can_be_run_again(staff: Client) -> None:
    run = JobRun.objects.create(job="expire", status="completed")

    choose(staff, list_url("jobrun"), "run_again", run.id)

    again = JobRun.objects.exclude(id=run.id).get()
    assert (again.job, again.status, again.requested_by) == ("expire", "queued", "staff:chief")
    assert staff.get(page_url("jobrun", again.id)).status_code == 200


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_run_that_has_not_ended_is_cancelled(staff: Client, account: Account, status: str) -> None:
    lease = timezone.now() + timedelta(minutes=1) if status == "running" else None
    run = JobRun.objects.create(job="expire", account=account, status=status, lease_until=lease, leased_by="w1")

    choose(staff, list_url("jobrun"), "cancel", run.id)

    cancelled = JobRun.objects.get()
    assert (cancelled.status, cancelled.error) == ("failed", "cancelled by staff:chief")
    assert not JobRun.objects.held_by(run).exists()
    assert AuditEntry.objects.get(operation="cancel_job").metadata["reason"] == "a test"


def test_the_page_of_a_run_follows_it_until_its_end(staff: Client, account: Account) -> None:
    lease = timezone.now() + timedelta(minutes=1)
    run = JobRun.objects.create(job="expire", account=account, status="running", lease_until=lease)
    JobRun.objects.update(examined=1_200, changed=30, figures={"too_long": 2})
    address = page_url("jobrun", run.id)

    page, progress = shown(staff.get(address)), staff.get(address, {"progress": 1}).json()

    assert progress == {"state": "Running: 1,200 examined, 30 changed, 0 failed.", "is_running": True}
    assert progress["state"] in page
    assert "memory/progress.js" in page
    assert 'value="cancel"' in page

    JobRun.objects.update(status="failed", lease_until=None, finished_at=timezone.now(), error="<b>no</b>")
    page = shown(staff.get(address))
    assert staff.get(address, {"progress": 1}).json()["is_running"] is False
    assert "&lt;b&gt;no" in page
    assert "memory/progress.js" not in page
    assert 'value="run_again"' in page


def test_the_link_to_a_run_that_found_nothing_and_is_gone_leads_to_the_list(staff: Client) -> None:
    run = JobRun.objects.create(job="expire", status="completed")
    address = page_url("jobrun", run.id)
    run.delete()

    answer = staff.get(address, follow=True)

    assert answer.redirect_chain == [(list_url("jobrun"), 302)]
    assert "There is no such run." in shown(answer)
    assert staff.get(address, {"progress": 1}).json()["is_running"] is False


def test_a_viewer_follows_a_run_but_gets_no_buttons(staff: Client, account: Account) -> None:
    run = JobRun.objects.create(job="expire", account=account)
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_jobrun"))
    client = Client()
    client.force_login(viewer)

    page = shown(client.get(page_url("jobrun", run.id)))

    assert "Waits for a worker." in page
    assert 'name="_selected_action"' not in page


def test_a_run_that_has_ended_is_not_cancelled(staff: Client) -> None:
    run = JobRun.objects.create(job="expire", status="completed")

    page = shown(choose(staff, list_url("jobrun"), "cancel", run.id))

    assert "Nothing was done." in page
    assert JobRun.objects.get().status == "completed"


def test_an_unknown_job_is_not_run(staff: Client) -> None:
    staff.post(add_url("jobrun"), {"job": "rm -rf"})

    assert not JobRun.objects.exists()
