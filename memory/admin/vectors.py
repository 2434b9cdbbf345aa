"""Vectors, to look at: whose, of which model, how wide. Never the numbers; "embed again" is an action of memories."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.base import ReadOnlyAdmin
from memory.models import Vector
from memory_project.admin_lists import AccountFilter


@admin.register(Vector)
class VectorAdmin(ReadOnlyAdmin):
    list_display = ("memory_page", "account", "kind", "agent_id", "channel", "model", "width", "live", "created_at")
    list_filter = (AccountFilter, "kind", "live")
    list_select_related = ("account",)
    search_fields = ("model__exact", "agent_id__exact", "user_id__exact", "conversation_id__exact")
    search_help_text = "A model, agent, user or conversation, in full."
    fields = (
        "memory_page", "account", "kind", "agent_id", "user_id", "channel", "conversation_id", "model", "width",
        "live", "expires_at", "created_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Vector]:
        return super().get_queryset(request).defer("vector")

    @admin.display(description="Memory")
    def memory_page(self, vector: Vector) -> SafeString:
        return link_to_memory(vector.memory_id)


def link_to_memory(memory_id: object) -> SafeString:
    """By its id alone: naming its kind would load it, text and all."""
    return format_html('<a href="{}">{}</a>', reverse("admin:memory_memory_change", args=[memory_id]), memory_id)
