"""The pages of bulk changes: their progress, their reason, and the buttons that stop or undo them."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.utils import timezone

from memory.admin.bulk import ReasonForm, change_page
from memory.admin.columns import MINUTE, column, text_column, time_column
from memory.admin.object_actions import ObjectAction, ObjectActionAdmin
from memory.admin.text import error_sentence, mark_invisible
from memory.errors import MemoryServiceError, NotFound
from memory.maintenance.bulk_jobs import change_in_bulk
from memory.models import BulkChange
from memory.owner import Owner
from memory.services.bulk.actions import find_action
from memory.services.bulk.run import request_undo, stop_bulk_change
from memory.tasks import run_soon
from memory_project.admin_lists import AccountFilter


def stop(owner: Owner, change: BulkChange, data: dict[str, Any]) -> str:
    stopped = stop_bulk_change(owner, change.pk, now=timezone.now())
    return f"The bulk change is stopped after {stopped.examined:,} of {stopped.total:,} rows."


def undo(owner: Owner, change: BulkChange, data: dict[str, Any]) -> str:
    undoing = request_undo(owner, change.pk, reason=data["reason"])
    run_soon(change_in_bulk.__name__)
    return f"Undoing it for {undoing.total:,} rows is queued."


def format_progress(change: BulkChange) -> str:
    """Return a sentence on how far the change is."""
    if change.status == BulkChange.Status.QUEUED:
        return f"Waits for a worker: {change.total:,} rows."
    counts = f"{change.changed:,} changed, {change.refused:,} refused"
    if change.status == BulkChange.Status.RUNNING:
        share = 100 * change.examined // max(change.total, 1)
        return f"Running: {change.examined:,} of {change.total:,} rows ({share}%), {counts}."
    return f"{change.get_status_display()!s}: {change.examined:,} of {change.total:,} rows, {counts}."


def is_undoable(change: BulkChange) -> bool:
    """Return True if the rows of the change can be changed back."""
    try:
        action = find_action(change.model, change.action)
    except NotFound:
        return False
    is_done = change.status not in BulkChange.UNFINISHED and change.changed > 0
    return action.undo is not None and is_done and change.undoes is None and change.undone_by is None


@admin.register(BulkChange)
class BulkChangeAdmin(ObjectActionAdmin):
    """Bulk changes are started on the lists of what they change. Here they are followed, stopped and undone."""

    list_display = ("named", "account", "progress", "reason_text", "requested", "created")
    list_filter = (AccountFilter, "status")
    search_fields = ("id__exact", "model__exact", "requested_by__exact")
    search_help_text = "Search for a complete id, a model such as fact, or who requested it, such as staff:ana."
    object_actions = {"stop": ObjectAction(run=stop), "undo": ObjectAction(run=undo, form=ReasonForm)}
    allow_add = allow_delete = False

    def may_act(self, request: HttpRequest, row: Any) -> bool:
        return super().may_act(request, row) and request.user.has_perm(f"memory.change_{row.model}")

    named = column("Bulk change", lambda change: describe_change(change))
    progress = column("Progress", format_progress)
    reason_text = text_column("Reason", "reason")
    requested = text_column("Requested by", "requested_by")
    created = time_column("Requested", "created_at")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the progress instead of a form; with `?progress=1`, as JSON."""
        change: BulkChange = self.find_row(request, object_id)
        is_running = change.status in BulkChange.UNFINISHED
        if request.GET.get("progress"):
            state = format_progress(change)
            return JsonResponse({"examined": change.examined, "state": state, "is_running": is_running})
        failed: forms.Form | None = None
        if request.method == "POST":
            failed = self.perform_action(request, change)
            if failed is None:
                change.refresh_from_db()
                return HttpResponseRedirect(change_page(BulkChange(pk=change.undone_by or change.pk)))
        return self.render_page(
            request,
            "bulkchange/change_form.html",
            describe_change(change),
            change=change,
            state=format_progress(change),
            is_running=is_running,
            properties=list_properties(change),
            refusals=[error_sentence(MemoryServiceError(refusal)) for refusal in change.refusals],
            undoes_url=change_page(BulkChange(pk=change.undoes)) if change.undoes else "",
            undone_url=change_page(BulkChange(pk=change.undone_by)) if change.undone_by else "",
            may_act=self.may_act(request, change),
            may_undo=is_undoable(change),
            action_forms=self.action_forms(failed),
            failed_form=failed,
        )


def describe_change(change: BulkChange) -> str:
    model = next((each for each in admin.site._registry if each._meta.model_name == change.model), None)
    rows = change.model if model is None else model._meta.verbose_name_plural
    what = f"{change.action.removesuffix('_selected').replace('_', ' ')} {rows}"
    return f"Undo: {what}" if change.undoes else what[:1].upper() + what[1:]


def list_properties(change: BulkChange) -> list[tuple[str, str]]:
    """Return what the page says about a change, by name."""
    finished = change.finished_at
    return [
        ("Account", mark_invisible(change.account.name)),
        ("Reason", mark_invisible(change.reason)),
        ("Requested by", mark_invisible(change.requested_by)),
        ("Requested", f"{change.created_at:{MINUTE}} UTC"),
        ("Ended", f"{finished:{MINUTE}} UTC" if finished else "not yet"),
        ("Changed", f"{change.changed:,} of {change.total:,}"),
        ("Refused", f"{change.refused:,}"),
    ]
