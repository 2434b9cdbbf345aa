"""Episodes: memories that staff may also add and that are found by meaning."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from memory.admin.base import holder_owner
from memory.admin.fields import ExternalIdField, JSONListField
from memory.admin.memories import LONG_COLUMNS, NOT_YET_EMBEDDED, MeaningSearchAdmin, MemoryForm, MemoryKindAdmin
from memory.models import EpisodicMemory
from memory.retrieval.search import search_episodes
from memory.services.summaries.store import EpisodeDraft, store_episodes

DETAILS = ("key_decisions", "entities_mentioned", "tools_called")


class EpisodeForm(MemoryForm):
    agent_id = ExternalIdField(required=False, label="Agent")
    conversation_id = ExternalIdField(label="Conversation")
    key_decisions = JSONListField(required=False)
    entities_mentioned = JSONListField(required=False)
    tools_called = JSONListField(required=False)


@admin.register(EpisodicMemory)
class EpisodicMemoryAdmin(MeaningSearchAdmin):
    """The pages of episodes. A new one is stored without its vector and waits for the job that embeds."""

    form = EpisodeForm
    meaning_search = staticmethod(search_episodes)
    autocomplete_fields = ("account",)
    long_columns = (*LONG_COLUMNS, *DETAILS)
    editable_fields = (*MemoryKindAdmin.editable_fields, *DETAILS)
    added_fields = (
        "account", "agent_id", "user_id", "channel", "conversation_id", "text", "event_time", *DETAILS, "metadata",
    )  # fmt: skip

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        draft = EpisodeDraft(
            id=obj.id,
            conversation_id=obj.conversation_id,
            summary=obj.text,
            event_time=obj.event_time,
            source="staff",
            metadata=obj.metadata,
            **{name: form.cleaned_data[name] for name in DETAILS},
        )
        store_episodes(holder_owner(request, obj), drafts=[draft], embedded=NOT_YET_EMBEDDED, now=datetime.now(UTC))
