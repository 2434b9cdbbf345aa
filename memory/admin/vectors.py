"""Vectors of memories: owner, model and width, but never the numbers. "Embed again" is an action of memories."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from memory.admin.base import ReadOnlyAdmin
from memory.admin.columns import link_column
from memory.models import Vector
from memory_project.admin_lists import AccountFilter


@admin.register(Vector)
class VectorAdmin(ReadOnlyAdmin):
    list_display = (
        "memory_page",
        "account",
        "kind",
        "agent_id",
        "channel",
        "model",
        "width",
        "passage",
        "live",
        "created_at",
    )
    # the first column leads to the memory
    list_display_links = ("model",)
    list_filter = (AccountFilter, "kind", "live")
    search_fields = ("model__exact", "agent_id__exact", "user_id__exact", "conversation_id__exact")
    search_help_text = "Search for a complete model, agent, user or conversation."
    fields = (
        "memory_page", "account", "kind", "agent_id", "user_id", "channel", "conversation_id", "model", "width",
        "passage", "passage_start", "passage_end", "is_given", "live", "expires_at", "created_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Vector]:
        return super().get_queryset(request).defer("vector")

    memory_page = link_column("Memory", "memory", "memory_id")
