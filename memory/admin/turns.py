"""Turns: found by their words, read as in the transcript, corrected, marked. Erasing one is correcting its text."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.base import staff_owner
from memory.admin.fields import ExternalIdField
from memory.admin.memories import LONG_COLUMNS, MemoryForm, MemoryPages
from memory.admin.text import mark_invisible
from memory.admin.transcripts import show_whole
from memory.models import Turn
from memory.services.memories.correct import MARKS, mark_memories


class TurnForm(MemoryForm):
    """User and channel are the conversation's."""

    user_id = None  # type: ignore[assignment]
    channel = None  # type: ignore[assignment]
    name = ExternalIdField(required=False, label="Speaker")


@admin.register(Turn)
class TurnAdmin(MemoryPages):
    """None is added or deleted here: they are numbered without gaps."""

    form = TurnForm
    change_form_template = "admin/memory/turn/change_form.html"
    list_display = ("excerpt", "role", "spoken_by", "index", *MemoryPages.list_display[1:])
    list_filter = (*MemoryPages.list_filter, "role")
    long_columns = (*LONG_COLUMNS, "payload")
    correctable = ("text", "name", "metadata")
    shown = ("transcript", "role", "index", "client_id", "model", *MemoryPages.shown)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False

    @admin.display(description="Speaker")
    def spoken_by(self, turn: Turn) -> str:
        return mark_invisible(turn.name)

    @admin.display(description="Transcript")
    def transcript(self, turn: Turn) -> SafeString:
        return format_html('<a href="{}">Read it in its conversation</a>', address_of(turn))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        turn: Turn | None = self.get_object(request, object_id)
        if turn is None or not self.has_view_permission(request, turn):
            return super().change_view(request, object_id, form_url, extra_context)
        if request.method == "POST" and "mark" in request.POST:
            return self.mark(request, turn)
        context = {
            "turn": show_whole(turn),
            "transcript_url": address_of(turn),
            "marks": [
                name for name, columns in MARKS.items() if any(getattr(turn, c) != v for c, v in columns.items())
            ],
            "is_summarized": turn.index < turn.log.summarized_count,
        }
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def mark(self, request: HttpRequest, turn: Turn) -> HttpResponse:
        if not self.has_change_permission(request, turn):
            raise PermissionDenied
        mark = request.POST["mark"]
        if mark not in MARKS:
            raise Http404
        owner = staff_owner(request, turn.account_id)
        mark_memories(owner, [turn.pk], mark=mark, now=datetime.now(UTC))
        self.log_change(request, turn, mark)
        self.message_user(request, f"Done: {mark}.", messages.SUCCESS)
        return HttpResponseRedirect(request.path)


def address_of(turn: Turn) -> str:
    """Where it stands in the transcript."""
    page = reverse("admin:memory_conversation_change", args=[turn.log_id])
    return f"{page}?turn={turn.index}#turn-{turn.index}"
