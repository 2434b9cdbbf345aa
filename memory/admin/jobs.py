"""Runs of jobs and what they did. Adding a run requests one, which a worker then performs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect

from memory.admin.base import adopt_row, staff_name, staff_owner
from memory.admin.bulk import CONFIRMED, ReasonForm, posted_selection
from memory.admin.columns import MINUTE, column, time_column
from memory.admin.exports import ListExportAdmin
from memory.admin.text import mark_invisible
from memory.maintenance import JOBS
from memory.models import JobRun
from memory.services.operations.jobs import cancel_installation_run, cancel_run, request_installation_run, request_run
from memory.tasks import notify_job_worker
from memory_project.admin_lists import AccountFilter
from memory_project.staff import StaffGroup, is_limited

MAX_CHOSEN_RUNS = 20
GONE = "There is no such run. Of scheduled runs that find nothing, only the latest one of each job is kept."


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


def format_state(run: JobRun) -> str:
    """Return a sentence on how far the run is. How many rows there are is known only at its end."""
    counts = f"{run.examined:,} examined, {run.changed:,} changed, {run.failed:,} failed"
    if run.status == JobRun.Status.QUEUED:
        return "Waits for a worker."
    return f"{run.get_status_display()!s}: {counts}."


def list_properties(run: JobRun) -> list[tuple[str, str]]:
    """Return what the page says about a run, by name."""
    times = {"Requested": run.created_at, "Began": run.started_at, "Ended": run.finished_at, "Runs as of": run.at}
    seconds = run.duration_seconds
    properties = {
        "Description": JOBS[run.job].description if run.job in JOBS else "This job does not exist any more.",
        "Account": str(run.account or "the whole installation"),
        "Requested by": run.requested_by,
        **{name: f"{time:{MINUTE}} UTC" for name, time in times.items() if time is not None},
        "Duration": "" if seconds is None else f"{seconds:,.1f} s",
        "Worker": run.leased_by,
        "Workers that began the current batch": str(run.attempts),
        "Error": run.error,
    }
    return [(name, mark_invisible(value)) for name, value in properties.items() if value]


@admin.register(JobRun)
class JobRunAdmin(ListExportAdmin):
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
    fields = ("job", "account", "dry_run", "at")
    actions = ("run_again", "cancel")
    allow_change = allow_delete = False

    only_counted = column("Dry run", lambda run: "yes" if run.dry_run else "")
    requested = time_column("Requested", "created_at")
    duration = column("Duration", lambda run: "" if run.duration_seconds is None else f"{run.duration_seconds:.1f} s")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show how far the run is instead of a form; with `?progress=1`, as JSON. Nothing is changed here.

        A run may have gone since a page linked to it (`runner.report_end`): then show the list, and say so.
        """
        try:
            run: JobRun = self.find_row(request, object_id)
        except Http404:
            # nobody who is limited to accounts sees runs of the schedule
            if is_limited(request):
                raise
            if request.GET.get("progress"):
                return JsonResponse({"state": GONE, "is_running": False})
            self.message_user(request, GONE, messages.INFO)
            return redirect("admin:memory_jobrun_changelist")
        is_running = run.status not in JobRun.FINISHED
        if request.GET.get("progress"):
            return JsonResponse({"state": format_state(run), "is_running": is_running})
        return self.render_page(
            request,
            "jobrun/run.html",
            f"{run.job}{' (dry run)' if run.dry_run else ''}",
            run=run,
            state=format_state(run),
            is_running=is_running,
            properties=list_properties(run),
            figures=sorted((name.replace("_", " "), count) for name, count in run.figures.items()),
            may_act=self.has_add_permission(request),
            may_repeat=not is_running and run.job in JOBS,
        )

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
