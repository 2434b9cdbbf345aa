"""Who takes part in which conversation, and may therefore read what was said in it."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from memory.admin.base import AuditedAdmin
from memory.admin.fields import ExternalIdField
from memory.models import Participant
from memory_project.admin_lists import AccountFilter


class ParticipantForm(forms.ModelForm):  # type: ignore[type-arg]
    conversation_id = ExternalIdField()
    agent_id = ExternalIdField()


@admin.register(Participant)
class ParticipantAdmin(AuditedAdmin):
    """Added to let an agent read, deleted to stop it; there is nothing to change."""

    memory_type = "participant"
    form = ParticipantForm
    list_display = ("conversation_id", "agent_id", "account", "created_at")
    list_filter = (AccountFilter,)
    list_select_related = ("account",)
    search_fields = ("conversation_id__exact", "agent_id__exact")
    search_help_text = "A conversation or an agent, in full."
    autocomplete_fields = ("account",)
    fields = ("account", "conversation_id", "agent_id")

    def has_change_permission(self, request: HttpRequest, obj: Any | None = None) -> bool:
        return False
