"""Actions on many rows: previewed, with a reason, within one account, resumable and undoable."""

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import DataError, IntegrityError
from django.test import Client
from django.utils import timezone

from memory.errors import Unprocessable
from memory.maintenance import find_job, runner
from memory.models import Account, Agent, AuditEntry, BulkChange, BulkChangePage, JobRun, Memory, StaffLimit
from memory.owner import Owner
from memory.services.bulk.actions import ACTIONS, find_action
from memory.services.bulk.run import continue_bulk_change
from memory.services.facts.supersede import retract_fact
from memory_project import admin_lists
from memory_project.ids import uuid7
from tests.memory.admin.pages import choose, list_url, page_url, shown
from tests.memory.episodes import draft, store
from tests.memory.facts import know
from tests.memory.turns import talk

pytestmark = pytest.mark.django_db

LIST = "episodicmemory"


def remember(account: Account, count: int, *, say: str = "memory") -> list[Any]:
    owner = Owner(account_id=account.id, agent_id="assistant")
    return list(store(owner, *[draft(f"{say} {number}", angle=0.01 * number) for number in range(count)]))


def choose_all(client: Client, action: str, row: Any, **more: Any) -> Any:
    """Choose what the whole list finds, beyond the page."""
    return choose(client, list_url(LIST), action, row.id, select_across="1", index="0", **more)


def work() -> None:
    """Run the job as a worker does."""
    JobRun.objects.create(job="change_in_bulk", requested_by="tests")
    runner.run_waiting(find_job("change_in_bulk"), clock=timezone.now)


def archived() -> int:
    return Memory.objects.filter(archived=True).count()


def test_an_action_says_what_it_concerns_before_it_changes_anything(staff: Client, account: Account) -> None:
    rows = remember(account, 12)

    page = shown(choose_all(staff, "archive", rows[0], post=""))

    assert "<strong>12 episodic memories</strong>" in page
    assert "workshop" in page
    assert "memory 11" in page
    assert "… and 2 more" in page
    assert "It can be undone" in page
    assert archived() == BulkChange.objects.count() == 0


def test_the_rows_of_an_action_say_how_they_stand_and_whose_they_are(staff: Client, owner: Owner) -> None:
    ana = replace(owner, user_id="ana")
    kept, wrong = know(ana, "The pump leaks.", angle=0.1), know(owner, "The pump is dry.", angle=0.2)
    retract_fact(owner, wrong.pk, now=timezone.now())

    page = choose(staff, list_url("fact"), "retract_selected", kept.pk, wrong.pk, post="")

    assert page.context["examples"] == [
        "The pump is dry. (retracted, agent assistant)",
        "The pump leaks. (user ana, agent assistant)",
    ]


def test_an_action_needs_a_reason(staff: Client, account: Account) -> None:
    (row,) = remember(account, 1)

    page = choose(staff, list_url(LIST), "archive", row.id, reason="")

    assert "This field is required." in shown(page)
    assert archived() == 0


def test_the_reason_is_in_the_audit_log_and_in_the_history(staff: Client, account: Account) -> None:
    (row,) = remember(account, 1)

    choose(staff, list_url(LIST), "archive", row.id, reason="They are from a test.")

    entry = AuditEntry.objects.get(operation="bulk_change")
    assert (entry.actor, entry.config_snapshot["reason"]) == ("staff:chief", "They are from a test.")
    assert LogEntry.objects.get().change_message == "Changed. Reason: They are from a test."


def test_rows_of_several_accounts_are_narrowed_to_one(staff: Client, account: Account, stranger: Account) -> None:
    mine, theirs = remember(account, 2), remember(stranger, 3)

    question = shown(choose_all(staff, "archive", mine[0]))
    unchanged = archived()
    choose_all(staff, "archive", mine[0], bulk_account=str(stranger.id))

    assert "belong to 2 accounts" in question
    assert unchanged == 0
    assert {row.id for row in theirs} == set(Memory.objects.filter(archived=True).values_list("id", flat=True))


def test_rows_that_are_added_after_the_preview_are_left_alone(staff: Client, account: Account) -> None:
    rows = remember(account, 2)
    newest = max(row.id for row in rows)
    remember(account, 1, say="later")

    choose_all(staff, "archive", rows[0], until=str(newest))

    assert archived() == 2


def test_more_than_a_page_of_rows_is_left_to_the_job(staff: Client, account: Account) -> None:
    rows = remember(account, 101)

    page = choose_all(staff, "archive", rows[0])
    waiting = archived()
    work()

    assert "Waits for a worker: 101 rows." in shown(page)
    assert (waiting, archived()) == (0, 101)
    change = BulkChange.objects.get()
    assert (change.status, change.examined, change.changed) == ("completed", 101, 101)
    progress = staff.get(page_url("bulkchange", change.id), {"progress": 1}).json()
    assert progress["is_running"] is False
    assert progress["examined"] == 101


def test_a_bulk_change_goes_on_where_a_killed_worker_left_it(staff: Client, account: Account) -> None:
    rows = remember(account, 101)
    choose_all(staff, "archive", rows[0])
    change = BulkChange.objects.get()

    continue_bulk_change(account.id, change.id, now=timezone.now())
    work()

    change.refresh_from_db()
    assert (change.status, change.examined) == ("completed", 101)
    assert not BulkChangePage.objects.filter(done_at=None).exists()


def test_a_bulk_change_is_undone_for_what_it_changed_alone(staff: Client, account: Account) -> None:
    rows = remember(account, 3)
    choose(staff, list_url(LIST), "archive", rows[0].id)
    choose(staff, list_url(LIST), "archive", *[row.id for row in rows])
    change = BulkChange.objects.order_by("-id")[0]

    staff.post(page_url("bulkchange", change.id), {"action": "undo", "reason": "It was wrong."})
    work()

    assert list(Memory.objects.filter(archived=True).values_list("id", flat=True)) == [rows[0].id]
    again = staff.post(page_url("bulkchange", change.id), {"action": "undo", "reason": "Again."}, follow=True)
    assert "undone already" in shown(again)


def test_a_running_bulk_change_is_stopped(staff: Client, account: Account) -> None:
    rows = remember(account, 101)
    choose_all(staff, "archive", rows[0])
    change = BulkChange.objects.get()
    continue_bulk_change(account.id, change.id, now=timezone.now())

    staff.post(page_url("bulkchange", change.id), {"action": "stop"})
    work()

    change.refresh_from_db()
    assert (change.status, change.examined, archived()) == ("stopped", 100, 100)


@pytest.fixture
def curator(staff: Client, account: Account) -> User:
    """A curator who has asked for the change of more rows than a page has."""
    user = User.objects.create_user("cora", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__endswith="_episodicmemory"))
    client = Client()
    client.force_login(user)
    rows = remember(account, 101)
    choose_all(client, "archive", rows[0])
    continue_bulk_change(account.id, BulkChange.objects.get().id, now=timezone.now())
    return user


@pytest.mark.parametrize(
    ("revoke", "said"),
    [
        (lambda user: StaffLimit.objects.create(user=user, account_ids=[uuid7()]), "may not see this account"),
        (lambda user: user.user_permissions.clear(), "may not do this to such rows any more"),
        (lambda user: User.objects.filter(pk=user.pk).update(is_active=False), "not an active member of staff"),
        (lambda user: User.objects.filter(pk=user.pk).update(is_staff=False), "not an active member of staff"),
        (lambda user: user.delete(), "not an active member of staff"),
    ],
)
def test_a_bulk_change_stops_when_who_asked_for_it_may_no_longer_make_it(
    staff: Client, curator: User, revoke: Any, said: str
) -> None:
    revoke(curator)
    work()

    change = BulkChange.objects.get()
    assert (change.status, change.examined, archived()) == ("stopped", 100, 100)
    assert said in shown(staff.get(page_url("bulkchange", change.id)))
    assert AuditEntry.objects.filter(operation="bulk_change_stopped", affected_ids=[str(change.id)]).exists()


def test_a_bulk_change_goes_on_for_staff_whose_name_the_log_cuts(curator: User) -> None:
    User.objects.filter(pk=curator.pk).update(username="c" * 150)
    BulkChange.objects.update(requested_by=f"staff:{'c' * 150}"[:150])

    work()

    assert BulkChange.objects.get().status == "completed"


def test_a_bulk_change_waits_for_a_worker_that_knows_its_action(curator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.delitem(ACTIONS, (LIST, "archive"))
        work()
    waiting = BulkChange.objects.get().status
    work()

    assert (waiting, BulkChange.objects.get().status) == ("running", "completed")


def test_a_bulk_change_goes_on_for_staff_who_are_limited_to_its_account(curator: User, account: Account) -> None:
    StaffLimit.objects.create(user=curator, account_ids=[account.id])

    work()

    assert (BulkChange.objects.get().status, archived()) == ("completed", 101)


@pytest.mark.parametrize("error", [Unprocessable("no rows today"), IntegrityError("memories_check"), DataError("x")])
def test_a_bulk_change_whose_page_is_refused_stops_and_says_why(
    staff: Client, account: Account, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    rows = remember(account, 101)
    choose_all(staff, "archive", rows[0])

    def refuse(*given: Any) -> Any:
        raise error

    monkeypatch.setitem(ACTIONS, (LIST, "archive"), replace(find_action(LIST, "archive"), apply=refuse))
    work()

    change = BulkChange.objects.get()
    assert (change.status, change.changed, archived()) == ("stopped", 0, 0)
    page = shown(staff.get(page_url("bulkchange", change.id)))
    assert "No rows today." in page or "The database refused" in page
    assert JobRun.objects.get(status="incomplete").failed == 1


def test_a_deletion_cannot_be_undone_and_says_so(staff: Client, account: Account) -> None:
    (row,) = remember(account, 1)

    question = shown(choose(staff, list_url(LIST), "delete_selected", row.id, post=""))
    choose(staff, list_url(LIST), "delete_selected", row.id)
    change = BulkChange.objects.get()

    assert "It cannot be undone." in question
    assert not Memory.objects.exists()
    page = staff.post(page_url("bulkchange", change.id), {"action": "undo", "reason": "Oh."}, follow=True)
    assert "cannot be undone" in shown(page)


def test_undoing_requires_permission_for_the_rows(newcomer: Client, staff: Client, account: Account) -> None:
    (row,) = remember(account, 1)
    choose(staff, list_url(LIST), "archive", row.id)
    for name in ("view_bulkchange", "change_bulkchange"):
        User.objects.get(username="newcomer").user_permissions.add(Permission.objects.get(codename=name))
    url = page_url("bulkchange", BulkChange.objects.get().id)

    assert newcomer.get(url).status_code == 200
    assert newcomer.post(url, {"action": "undo", "reason": "Mine."}).status_code == 403
    assert archived() == 1


def test_a_capped_count_is_not_shown_as_a_count(
    staff: Client, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_lists, "MAX_COUNTED", 60)
    monkeypatch.setattr(admin_lists.BoundedPaginator, "most_counted", 60)
    Agent.objects.bulk_create(Agent(account=account, agent_id=f"a{number}") for number in range(70))

    page = shown(staff.get(list_url("agent")))

    assert "Select all agents that the list finds (more than 60)" in page
    assert "61" not in page.partition('<div class="actions">')[2].partition("</div>")[0]


def test_the_list_of_conversations_offers_its_actions(staff: Client, account: Account) -> None:
    talk(Owner(account_id=account.id, agent_id="assistant"), 1)

    page = shown(staff.get(list_url("conversation")))

    assert "Extract knowledge from selected conversations now" in page
    assert "Retry what failed or is parked" in page


def test_history_says_who_wrote_a_row_and_leads_to_the_audit_log(staff: Client, account: Account) -> None:
    (row,) = remember(account, 1)

    page = shown(staff.get(page_url(LIST, row.id, "history")))

    assert "It belongs to the agent assistant" in page
    assert "probably" not in page
    assert f"affected={row.id}" in page
    assert staff.get(list_url("auditentry", affected=row.id)).context["cl"].result_count == 1
