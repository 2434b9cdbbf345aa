"""Job runs: what ran, what it did; adding one asks for a run, and a worker does it."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from memory.admin.base import BoundedAdmin, staff_name, staff_owner
from memory.maintenance import JOBS
from memory.models import JobRun
from memory.services.operations.jobs import request_installation_run, request_run
from memory.tasks import nudge_job
from memory_project.admin_lists import AccountFilter


class JobRunForm(forms.ModelForm):  # type: ignore[type-arg]
    """A run to be asked for. Without an account it is the installation's, over all accounts."""

    job = forms.ChoiceField(choices=[(job.name, f"{job.name}: {job.description}") for job in JOBS.values()])


@admin.register(JobRun)
class JobRunAdmin(BoundedAdmin):
    form = JobRunForm
    list_display = (
        "job", "status", "account", "requested_by", "dry_run", "examined", "changed", "failed", "figures", "created_at",
        "duration", "error",
    )  # fmt: skip
    list_filter = (AccountFilter, "status", "dry_run")
    list_select_related = ("account",)
    search_fields = ("job__exact", "requested_by__exact")
    search_help_text = "A job, or who asked for the run, in full."
    autocomplete_fields = ("account",)
    actions = ("run_again",)

    @admin.display(description="Took")
    def duration(self, run: JobRun) -> str:
        return "" if run.duration_seconds is None else f"{run.duration_seconds:.1f} s"

    def get_fields(self, request: HttpRequest, obj: Any | None = None) -> Any:
        return ("job", "account", "dry_run", "at") if obj is None else [field.name for field in JobRun._meta.fields]

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: JobRun, form: Any, change: bool) -> None:
        run = self.ask(request, obj)
        # what follows in this request speaks of the row that the service made
        obj.__dict__.update(run.__dict__)

    @admin.action(description="Run again", permissions=["add"])
    def run_again(self, request: HttpRequest, queryset: QuerySet[JobRun]) -> None:
        known = [run for run in queryset if run.job in JOBS]
        for run in known:
            self.ask(request, run)
        self.message_user(request, f"Runs asked for: {len(known)}. A worker takes them up.", messages.SUCCESS)

    def ask(self, request: HttpRequest, like: JobRun) -> JobRun:
        """Queue a run of the same job for the same account, and tell a worker once that is committed."""
        transaction.on_commit(partial(nudge_job, like.job))
        if like.account_id is None:
            return request_installation_run(staff_name(request), job=like.job, dry_run=like.dry_run, at=like.at)
        return request_run(staff_owner(request, like.account_id), job=like.job, dry_run=like.dry_run, at=like.at)
