"""Snapshots of contexts: each with what restoring it would change, as things are, and the button that does it."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin, describe_deletion, staff_owner
from memory.admin.contexts import LONG_COLUMNS, ContextFilter, link_to_context
from memory.admin.restore_previews import show_preview
from memory.admin.text import mark_invisible, shorten
from memory.errors import MemoryServiceError
from memory.models import ContextSnapshot
from memory.services.contexts.snapshots import (
    Restored,
    create_snapshot,
    delete_snapshot,
    preview_restore,
    restore_snapshot,
    texts_to_restore,
)
from memory.services.embedding.embed import embed_texts
from memory_project.admin_lists import AccountFilter


@admin.register(ContextSnapshot)
class ContextSnapshotAdmin(BoundedAdmin):
    """Taken, looked at, restored, deleted; never changed. Restoring needs the permission to change entries as well."""

    list_display = ("named", "of_context", "account", "made_by", "entry_count", "created_at")
    list_filter = (AccountFilter, ContextFilter)
    list_select_related = ("account", "context")
    search_fields = ("name", "agent_id__exact")
    search_help_text = "Part of a name; or who made it, in full."
    raw_id_fields = ("context",)
    fields = ("context", "name")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer(*(f"context__{name}" for name in LONG_COLUMNS))

    @admin.display(description="Snapshot")
    def named(self, snapshot: ContextSnapshot) -> str:
        return shorten(snapshot.name) or "without a name"

    @admin.display(description="Context")
    def of_context(self, snapshot: ContextSnapshot) -> SafeString:
        return link_to_context(snapshot.context)

    @admin.display(description="Made by")
    def made_by(self, snapshot: ContextSnapshot) -> str:
        return mark_invisible(snapshot.agent_id) or "the account"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        context, name = form.cleaned_data["context"], form.cleaned_data["name"]
        owner = staff_owner(request, context.account_id)
        made = create_snapshot(owner, context.pk, name=name, now=datetime.now(UTC))
        # what follows in this request speaks of the row that the service made
        obj.__dict__.update(made.__dict__)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_snapshot(staff_owner(request, obj.account_id), obj.context_id, obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for snapshot in queryset:
            self.delete_model(request, snapshot)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return describe_deletion(objs, "and the way back to what the context held; its entries stay as they are")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Instead of a form: what restoring it would change; posted, restore it."""
        snapshot: ContextSnapshot | None = self.get_object(request, object_id)
        if not self.has_view_permission(request, snapshot):
            raise PermissionDenied
        if snapshot is None:
            raise Http404("no such snapshot")
        if request.method == "POST":
            self.restore(request, snapshot)
            return HttpResponseRedirect(request.path)
        template = "admin/memory/contextsnapshot/preview.html"
        return TemplateResponse(request, template, self.describe(request, snapshot))

    def describe(self, request: HttpRequest, snapshot: ContextSnapshot) -> dict[str, Any]:
        owner, now = staff_owner(request, snapshot.account_id), datetime.now(UTC)
        preview = preview_restore(owner, snapshot.context_id, snapshot.pk, now=now)
        may_read = any(request.user.has_perm(f"memory.{may}_contextentry") for may in ("view", "change"))
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Snapshot {self.named(snapshot)}",
            "snapshot": snapshot,
            "heading": self.named(snapshot),
            "made_by": self.made_by(snapshot),
            "context_link": self.of_context(snapshot),
            "preview": preview,
            "changes": len(preview.changed) + len(preview.returned) + len(preview.removed),
            "sections": show_preview(snapshot, preview) if may_read else [],
            "may_read": may_read,
            "may_restore": self.may_restore(request, snapshot),
            "may_delete": self.has_delete_permission(request, snapshot),
        }

    def may_restore(self, request: HttpRequest, snapshot: ContextSnapshot) -> bool:
        may_change_entries = request.user.has_perm("memory.change_contextentry")
        return may_change_entries and self.has_change_permission(request, snapshot)

    def restore(self, request: HttpRequest, snapshot: ContextSnapshot) -> None:
        if not self.may_restore(request, snapshot):
            raise PermissionDenied
        owner, now = staff_owner(request, snapshot.account_id), datetime.now(UTC)
        place = (snapshot.context_id, snapshot.pk)
        try:
            embedded = embed_texts(texts_to_restore(owner, *place, now=now))
            restored = restore_snapshot(owner, *place, editor=owner.actor, embedded=embedded, now=now)
        except MemoryServiceError as err:
            self.message_user(request, f"Not restored: {err}.", messages.ERROR)
            return
        told = tell_restored(restored)
        self.log_change(request, snapshot, f"Restored: {told}")
        self.message_user(request, f"Restored: {told}", messages.SUCCESS)


def tell_restored(restored: Restored) -> str:
    """What was done: it may be something else than the page said, which was of its time."""
    if not restored.changed + restored.returned + restored.removed:
        told = "nothing had to change"
    else:
        told = f"{restored.changed} changed, {restored.returned} brought back, {restored.removed} archived"
    missing = f"; {restored.missing} could not come back" if restored.missing else ""
    return f"{told}, {restored.unchanged} as they were{missing}."
