"""Runs of jobs and what they did. Adding a run requests one, which a worker then performs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from memory.admin.base import BoundedAdmin, adopt_row, staff_name, staff_owner
from memory.admin.bulk import CONFIRMED, ReasonForm, posted_selection
from memory.admin.columns import column, time_column
from memory.maintenance import JOBS
from memory.models import JobRun
from memory.services.operations.jobs import cancel_installation_run, cancel_run, request_installation_run, request_run
from memory.tasks import notify_job_worker
from memory_project.admin_lists import AccountFilter
from memory_project.staff import StaffGroup

MAX_CHOSEN_RUNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuestion:
    """A change of runs: the question asked before, the service that changes one of them, and the report of it."""

    label: str
    explanation: str
    done: str
    act: Callable[[JobRun], object]


class JobRunForm(forms.ModelForm):  # type: ignore[type-arg]
    """The run to request. Without an account it covers all accounts of the installation."""

    job = forms.ChoiceField(choices=[(job.name, f"{job.name}: {job.description}") for job in JOBS.values()])


@admin.register(JobRun)
class JobRunAdmin(BoundedAdmin):
    form = JobRunForm
    changed_by = StaffGroup.OPERATOR
    list_display = (
        "job", "status", "account", "requested_by", "only_counted", "examined", "changed", "failed", "requested",
        "duration", "error",
    )  # fmt: skip
    list_filter = (AccountFilter, "status", "dry_run")
    list_select_related = ("account",)
    search_fields = ("job__exact", "requested_by__exact")
    search_help_text = "Search for a complete job or requester."
    autocomplete_fields = ("account",)
    actions = ("run_again", "cancel")
    allow_change = allow_delete = False

    only_counted = column("Dry run", lambda run: "yes" if run.dry_run else "")
    requested = time_column("Requested", "created_at")
    duration = column("Duration", lambda run: "" if run.duration_seconds is None else f"{run.duration_seconds:.1f} s")

    def get_fields(self, request: HttpRequest, obj: Any | None = None) -> Any:
        return ("job", "account", "dry_run", "at") if obj is None else [field.name for field in JobRun._meta.fields]

    def save_model(self, request: HttpRequest, obj: JobRun, form: Any, change: bool) -> None:
        adopt_row(obj, self.request_like(request, obj))

    @admin.action(description="Run again", permissions=["add"])
    def run_again(self, request: HttpRequest, queryset: QuerySet[JobRun]) -> HttpResponse | None:
        """Ask for confirmation and a reason, then request the runs once more. They may be of all accounts."""
        again = partial(self.request_like, request)
        explanation = "Each is requested once more, for the same account or for the whole installation."
        question = RunQuestion(label="Run again", explanation=explanation, done="Requested", act=again)
        return self.act_on_runs(request, queryset.filter(job__in=JOBS), question)

    @admin.action(description="Cancel", permissions=["add"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[JobRun]) -> HttpResponse | None:
        """Ask for confirmation and a reason, then cancel those of the runs that have not ended."""
        explanation = (
            "What they did until now stays. A worker stops after the batch that it is at. A scheduled run is queued "
            "again when it is due."
        )
        end = partial(self.cancel_one, request)
        question = RunQuestion(label="Cancel", explanation=explanation, done="Cancelled", act=end)
        return self.act_on_runs(request, queryset.exclude(status__in=JobRun.FINISHED), question)

    def act_on_runs(
        self, request: HttpRequest, queryset: QuerySet[JobRun], question: "RunQuestion"
    ) -> HttpResponse | None:
        """Ask the question with a form for the reason; once that is sent, act on each of the runs."""
        runs = list(queryset.select_related("account").order_by("-pk")[: MAX_CHOSEN_RUNS + 1])
        if not runs or len(runs) > MAX_CHOSEN_RUNS:
            message = f"Nothing was done. Choose 1 to {MAX_CHOSEN_RUNS} runs for which this is possible."
            self.message_user(request, message, messages.ERROR)
            return None
        form = ReasonForm(request.POST if request.POST.get("post") == CONFIRMED else None)
        if not form.is_valid():
            return self.render_page(
                request,
                "bulk/confirmation.html",
                question.label,
                label=question.label,
                counted=self.count_rows(len(runs)),
                explanation=question.explanation,
                examples=[f"{run.job}: {run.account or 'the whole installation'}" for run in runs],
                posted=posted_selection(request),
                form=form,
            )
        for run in runs:
            question.act(run)
            self.log_change(request, run, f"{question.label}. {form.cleaned_data['reason']}")
        self.message_user(request, f"{question.done} {self.count_rows(len(runs))}.", messages.SUCCESS)
        return None

    def cancel_one(self, request: HttpRequest, run: JobRun) -> None:
        if run.account_id is None:
            cancel_installation_run(staff_name(request), run.pk)
        else:
            cancel_run(staff_owner(request, run.account_id), run.pk)

    def request_like(self, request: HttpRequest, run: JobRun) -> JobRun:
        """Queue a run of the same job for the same account, and notify a worker once that is committed."""
        transaction.on_commit(partial(notify_job_worker, run.job))
        if run.account_id is None:
            return request_installation_run(staff_name(request), job=run.job, dry_run=run.dry_run, at=run.at)
        return request_run(staff_owner(request, run.account_id), job=run.job, dry_run=run.dry_run, at=run.at)
