"""Workflow runs: who works on them, the pools they share, and their end."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin, ServedForm, staff_owner
from memory.admin.fields import ExternalIdField, JSONObjectField, PlainTextField
from memory.admin.text import mark_invisible, shorten
from memory.errors import MemoryServiceError
from memory.models import MemoryPool, WorkflowRun
from memory.services.pools.workflow_runs import RunDraft, change_run, start_run
from memory_project.admin_lists import AccountFilter

Status = WorkflowRun.Status
ENDS = [status for status in Status if status != Status.RUNNING]
MOST_POOLS_NAMED = 50


class AgentIdsField(PlainTextField):
    """Ids of agents, a line each; they may be named before they ever wrote."""

    widget = forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        lines = [line for line in (super().clean(value) or "").split("\n") if line]
        for number, line in enumerate(lines, start=1):
            try:
                ExternalIdField().clean(line)
            except ValidationError as err:
                raise ValidationError([f"Agent {number}: {message}" for message in err.messages]) from err
        return lines

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial or []), data)


class WorkflowRunForm(ServedForm):
    workflow_run_id = ExternalIdField(required=False, help_text="Made up where you name none.")
    agent_id = ExternalIdField(required=False, label="Begun by", help_text="An agent. Empty: the account itself.")
    agents = AgentIdsField(required=False, help_text="A line each. Who is left out is shut out of the run's pools.")
    metadata = JSONObjectField(required=False)
    status = forms.ChoiceField(choices=Status.choices, help_text="A run ends once; its pools are read-only then.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            del self.fields["status"]


@admin.register(WorkflowRun)
class WorkflowRunAdmin(BoundedAdmin):
    """None is deleted here: it would take everything with it that was shared in it."""

    form = WorkflowRunForm
    list_display = ("named", "of_workflow", "account", "begun_by", "who", "status", "started_at", "ended_at")
    list_filter = (AccountFilter, "status")
    list_select_related = ("account",)
    search_fields = ("workflow_run_id",)
    search_help_text = "A run, a workflow, or an agent that has a part in it, in full."
    autocomplete_fields = ("account",)
    changeable = ("status", "agents", "metadata")
    shown = (
        "account", "named", "of_workflow", "begun_by", "pools", "started_at", "ended_at", "created_at", "updated_at",
        "id",
    )  # fmt: skip

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            fields = ("account", "workflow_run_id", "workflow", "agent_id", "agents", "metadata")
            return ((None, {"fields": fields}),)
        return (("What may be changed", {"fields": self.changeable}), ("What it is", {"fields": self.shown}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        if obj is None:
            return ()
        return self.shown if obj.status == Status.RUNNING else ("status", *self.shown)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term.strip():
            return queryset, False
        has_part = Q(agent_id=search_term) | Q(agents__contains=[search_term])
        return queryset.filter(has_part | Q(workflow_run_id=search_term) | Q(workflow=search_term)), False

    @admin.display(description="Run")
    def named(self, run: WorkflowRun) -> str:
        return mark_invisible(run.workflow_run_id)

    @admin.display(description="Workflow")
    def of_workflow(self, run: WorkflowRun) -> str:
        return mark_invisible(run.workflow)

    @admin.display(description="Begun by")
    def begun_by(self, run: WorkflowRun) -> str:
        return mark_invisible(run.agent_id) or "the account"

    @admin.display(description="Agents")
    def who(self, run: WorkflowRun) -> str:
        return shorten(", ".join(run.agents))

    @admin.display(description="Pools")
    def pools(self, run: WorkflowRun) -> SafeString:
        pools = MemoryPool.objects.filter(account_id=run.account_id, workflow_run=run).order_by("id")
        columns = ("id", "pool_id", "pool_type", "entry_count")
        named = [
            (reverse("admin:memory_memorypool_change", args=[pk]), mark_invisible(pool_id), pool_type, entry_count)
            for pk, pool_id, pool_type, entry_count in pools.values_list(*columns)[:MOST_POOLS_NAMED]
        ]
        query = urlencode({"account": str(run.account_id), "workflow_run__id__exact": str(run.pk)})
        url = reverse("admin:memory_memorypool_changelist")
        listed = format_html_join("", '<div><a href="{}">{}</a> ({}, {} entries)</div>', named)
        return format_html('{}<a href="{}?{}">All of them</a>', listed, url, query)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        now, given = datetime.now(UTC), form.cleaned_data
        if change:
            changes = {name: given[name] for name in self.changeable if name in form.changed_data}
            if changes:
                change_run(staff_owner(request, obj.account_id), obj.workflow_run_id, changes=changes, now=now)
            return
        owner = staff_owner(request, given["account"].pk, agent_id=given["agent_id"])
        draft = RunDraft(**{name: given[name] for name in ("workflow_run_id", "workflow", "agents", "metadata")})
        # what follows in this request speaks of the row that the service made
        obj.__dict__.update(start_run(owner, draft, now=now).__dict__)

    def get_actions(self, request: HttpRequest) -> Any:
        actions = super().get_actions(request)
        if self.has_change_permission(request):
            for status in ENDS:
                actions[status.value] = (end_action(status), status.value, f"End selected runs: {status.label.lower()}")
        return actions


def end_action(status: WorkflowRun.Status) -> Callable[..., Any]:
    """The action of the admin that ends what was selected with this status."""

    def run(pages: WorkflowRunAdmin, request: HttpRequest, queryset: QuerySet[WorkflowRun]) -> None:
        ended, refusals = 0, set()
        for row in queryset:
            owner, changes = staff_owner(request, row.account_id), {"status": status.value}
            try:
                change_run(owner, row.workflow_run_id, changes=changes, now=datetime.now(UTC))
                ended += row.status != status
            except MemoryServiceError as err:
                refusals.add(str(err))
        pages.message_user(request, f"Ended: {ended}.", messages.SUCCESS)
        for refusal in sorted(refusals):
            pages.message_user(request, f"Not all: {refusal}.", messages.WARNING)

    return run
