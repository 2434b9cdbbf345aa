"""Workflow runs are started, given agents and ended from the admin."""

from typing import Any

import pytest
from django.test import Client

from memory.models import Account, AuditEntry, MemoryPool, WorkflowRun
from memory.owner import Owner
from memory.services.pools.workflow_runs import RunDraft, start_run
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import add_url, choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.pools import NOW


@pytest.fixture
def run(owner: Owner) -> WorkflowRun:
    draft = RunDraft(workflow_run_id="harvest", workflow="autumn", agents=["ana", "ben"], metadata={"n": 1})
    return start_run(owner, draft, now=NOW)


def save(client: Client, run: WorkflowRun, **edits: Any) -> Any:
    url = page_url("workflowrun", run.id)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def test_saving_a_page_without_edits_changes_nothing(staff: Client, run: WorkflowRun) -> None:
    entries = AuditEntry.objects.count()

    save(staff, run)

    assert AuditEntry.objects.count() == entries


def test_agents_are_edited_one_per_line_and_audited(staff: Client, run: WorkflowRun) -> None:
    save(staff, run, agents="ana\r\n\r\nce ci\r\nana", metadata='{"n": 2}')

    run.refresh_from_db()
    assert (run.agents, run.metadata) == (["ana", "ce ci"], {"n": 2})
    assert (last_entry().actor, last_entry().memory_type) == ("staff:chief", "workflow_run")


@pytest.mark.parametrize("agents", ["ana\nb\tb", "x" * 101, "a\x00"])
def test_an_invalid_agent_is_refused(staff: Client, run: WorkflowRun, agents: str) -> None:
    page = save(staff, run, agents=agents)

    assert page.context["adminform"].form.errors["agents"]
    assert WorkflowRun.objects.get().agents == ["ana", "ben"]


def test_a_run_is_ended_on_its_page_once(staff: Client, run: WorkflowRun) -> None:
    save(staff, run, status="failed")

    run.refresh_from_db()
    assert (run.status, run.ended_at is not None) == ("failed", True)
    assert "status" not in form_values(staff.get(page_url("workflowrun", run.id)))


def test_selected_runs_are_ended(staff: Client, owner: Owner, run: WorkflowRun) -> None:
    over = start_run(owner, RunDraft(workflow_run_id="over"), now=NOW)
    WorkflowRun.objects.filter(id=over.id).update(status="failed", ended_at=NOW)

    page = choose(staff, list_url("workflowrun"), "completed", run.id, over.id)

    run.refresh_from_db()
    assert run.status == "completed"
    assert "Ended 1 workflow run." in shown(page)
    assert "Some rows were not changed. The run has ended: its status cannot be changed any more." in shown(page)


def test_a_run_is_started_for_an_agent(staff: Client, account: Account) -> None:
    values = {"account": account.id, "workflow_run_id": "a/b", "agent_id": "ana", "agents": "ben", "metadata": "{}"}

    staff.post(add_url("workflowrun"), values)

    run = WorkflowRun.objects.get()
    assert (run.workflow_run_id, run.agent_id, run.agents) == ("a/b", "ana", ["ben"])
    assert (last_entry().operation, last_entry().actor) == ("create", "staff:chief")


def test_adding_an_existing_run_is_refused_with_a_message(staff: Client, account: Account, run: WorkflowRun) -> None:
    page = staff.post(add_url("workflowrun"), {"account": account.id, "workflow_run_id": "harvest", "agents": "dan"})

    assert "The account already has a workflow run with this id" in shown(page)
    assert page.context["adminform"].form["agents"].value() == "dan"


def test_the_page_of_a_run_links_to_its_pools(staff: Client, account: Account, run: WorkflowRun) -> None:
    pool = MemoryPool.objects.create(account=account, pool_id="board", pool_type="blackboard", workflow_run=run)

    page = shown(staff.get(page_url("workflowrun", run.id)))
    listed = staff.get(list_url("memorypool", account=account.id, workflow_run__id__exact=run.id))

    assert page_url("memorypool", pool.id) in page
    assert listed.context["cl"].result_count == 1


def test_a_page_costs_as_many_queries_for_many_pools_as_for_few(
    staff: Client, account: Account, run: WorkflowRun
) -> None:
    few = queries_of(staff, page_url("workflowrun", run.id))

    MemoryPool.objects.bulk_create(
        MemoryPool(account=account, pool_id=f"p{n}", pool_type="blackboard", workflow_run=run) for n in range(60)
    )

    assert queries_of(staff, page_url("workflowrun", run.id)) == few <= 6


@pytest.mark.parametrize(("words", "found"), [("harvest", 1), ("ben", 1), ("assistant", 1), ("autumn", 1), ("har", 0)])
def test_runs_are_found_by_id_workflow_or_agent(staff: Client, run: WorkflowRun, words: str, found: int) -> None:
    assert staff.get(list_url("workflowrun", q=words)).context["cl"].result_count == found


def test_whatever_a_run_says_is_shown_as_text(staff: Client, newcomer: Client, owner: Owner) -> None:
    names = HOSTILE[:90]
    draft = RunDraft(workflow_run_id=names, workflow=names, agents=[names], metadata={names: names})
    run = start_run(owner, draft, now=NOW)
    allow("newcomer", "view_workflowrun")

    for client in (staff, newcomer):
        for url in (list_url("workflowrun"), page_url("workflowrun", run.id)):
            assert "<script>alert" not in shown(client.get(url))


def test_the_view_permission_alone_does_not_allow_ending_a_run(newcomer: Client, run: WorkflowRun) -> None:
    allow("newcomer", "view_workflowrun")

    choose(newcomer, list_url("workflowrun"), "completed", run.id)

    assert newcomer.post(page_url("workflowrun", run.id), {"status": "failed"}).status_code == 403
    assert WorkflowRun.objects.get().status == "running"


def test_a_run_cannot_be_deleted_in_the_admin(staff: Client, run: WorkflowRun) -> None:
    assert staff.post(page_url("workflowrun", run.id, "delete"), {"post": "yes"}).status_code == 403
