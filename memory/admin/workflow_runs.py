"""Workflow runs: the agents that take part, the pools that they share, and how runs end."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.base import ServiceForm, adopt_row, staff_owner
from memory.admin.columns import agent_column, column, list_link, row_link, text_column
from memory.admin.exports import ListExportAdmin
from memory.admin.fields import ExternalIdField, IdListField, JSONObjectField
from memory.admin.text import excerpt_of, mark_invisible
from memory.models import MemoryPool, WorkflowRun
from memory.owner import Owner
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.pools.workflow_runs import RunDraft, change_run, start_run
from memory_project.admin_lists import AccountFilter

Status = WorkflowRun.Status
ENDS = [status for status in Status if status != Status.RUNNING]
MAX_POOLS_SHOWN = 50


class WorkflowRunForm(ServiceForm):
    workflow_run_id = ExternalIdField(required=False, help_text="If it is empty, an id is generated.")
    agent_id = ExternalIdField(
        required=False, label="Started by", help_text="An agent. If it is empty, the account started the run."
    )
    agents = IdListField(
        required=False, help_text="One agent per line. Agents that are removed lose access to the run's pools."
    )
    metadata = JSONObjectField(required=False)
    status = forms.ChoiceField(
        choices=Status.choices, help_text="A run ends once. Its pools are read-only from then on."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            del self.fields["status"]


def render_pools(run: WorkflowRun) -> SafeString:
    pools = MemoryPool.objects.filter(account_id=run.account_id, workflow_run=run).order_by("id")
    found = pools.values_list("id", "pool_id", "pool_type", "entry_count")[:MAX_POOLS_SHOWN]
    rows = [(row_link("memorypool", pk, mark_invisible(pool_id)), *details) for pk, pool_id, *details in found]
    every = list_link("memorypool", "All pools of this run", account=run.account_id, workflow_run__id__exact=run.pk)
    return format_html("{}{}", format_html_join("", "<div>{} ({}, {} entries)</div>", rows), every)


def end_rows(status: WorkflowRun.Status, owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    """End runs with a status. Those that have it already do not count."""

    def end(run: WorkflowRun) -> bool:
        change_run(owner, run.workflow_run_id, changes={"status": status.value}, now=now)
        return run.status != status

    rows = WorkflowRun.objects.filter(account_id=owner.account_id, pk__in=row_ids)
    return change_each(rows.order_by("-pk"), end)


@admin.register(WorkflowRun)
class WorkflowRunAdmin(ListExportAdmin):
    """The pages of workflow runs. Deleting one would delete everything that was shared in it, so it is not offered."""

    form = WorkflowRunForm
    list_display = (
        "named",
        "workflow_name",
        "account",
        "started_by",
        "agent_names",
        "status",
        "started_at",
        "ended_at",
    )
    list_filter = (AccountFilter, "status")
    search_fields = ("workflow_run_id",)
    search_help_text = "Search for a complete run, workflow, or agent that takes part."
    autocomplete_fields = ("account",)
    editable_fields = ("status", "agents", "metadata")
    detail_fields = (
        "account", "named", "workflow_name", "started_by", "pools", "started_at", "ended_at", "created_at",
        "updated_at", "id",
    )  # fmt: skip
    allow_delete = False
    bulk_actions = tuple(
        BulkAction(
            name=status.value,
            label=f"End selected runs as {status.label.lower()}",
            done="Ended",
            apply=partial(end_rows, status),
        )
        for status in ENDS
    )

    named = text_column("Run", "workflow_run_id", empty="")
    workflow_name = text_column("Workflow", "workflow", empty="")
    started_by = agent_column("Started by")
    agent_names = column("Agents", lambda run: excerpt_of(", ".join(run.agents)))
    pools = column("Pools", render_pools)

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            fields = ("account", "workflow_run_id", "workflow", "agent_id", "agents", "metadata")
            return ((None, {"fields": fields}),)
        return (("Content", {"fields": self.editable_fields}), ("Details", {"fields": self.detail_fields}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        if obj is None:
            return ()
        return self.detail_fields if obj.status == Status.RUNNING else ("status", *self.detail_fields)

    def search_condition(self, request: HttpRequest, search_term: str) -> Any:
        takes_part = Q(agent_id=search_term) | Q(agents__contains=[search_term])
        return takes_part | Q(workflow_run_id=search_term) | Q(workflow=search_term)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        now, given = datetime.now(UTC), form.cleaned_data
        if change:
            changes = {name: given[name] for name in self.editable_fields if name in form.changed_data}
            if changes:
                change_run(staff_owner(request, obj.account_id), obj.workflow_run_id, changes=changes, now=now)
            return
        owner = staff_owner(request, given["account"].pk, agent_id=given["agent_id"])
        draft = RunDraft(**{name: given[name] for name in ("workflow_run_id", "workflow", "agents", "metadata")})
        adopt_row(obj, start_run(owner, draft, now=now))
