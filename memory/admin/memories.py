"""Memories of every kind: found by words, corrected and marked through services, deleted."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from memory.admin.base import BoundedAdmin, VersionedForm, ids_by_account, staff_owner
from memory.admin.columns import column, excerpt_column
from memory.admin.duplicates import MERGED_MODELS, render_merges
from memory.admin.fields import ExternalIdField, JSONObjectField, PlainTextField
from memory.admin.filters import VectorFilter
from memory.admin.page_links import list_link
from memory.admin.text import format_decayed, list_invisible, text_excerpt
from memory.models import Kind, Memory, Vector
from memory.owner import Owner
from memory.retrieval.words import has_words_or_ids
from memory.services.duplicates.merge import undo_merge
from memory.services.memories.correct import MARKS, correct_memory, delete_memories, mark_memories, queue_for_embedding
from memory_project.admin_lists import AccountFilter, chosen_account, read_uuid

MARK_COLUMNS = ("archived", "quarantined", "pinned", "buried")
"""Columns that the marks of `memory.services.memories.correct` set."""

LONG_COLUMNS = ("text", "metadata")
MAX_VECTORS_SHOWN = 20


class MemoryForm(VersionedForm):
    """The fields of a memory that staff may correct."""

    text = PlainTextField()
    user_id = ExternalIdField(required=False, label="User")
    channel = ExternalIdField(initial="_global")
    metadata = JSONObjectField(required=False, initial=dict)

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if not text.strip():
            raise forms.ValidationError("A memory must have a text.")
        return text


class OwnedMemoryForm(MemoryForm):
    """The form of a memory whose user and channel cannot be changed."""

    user_id = None  # type: ignore[assignment]
    channel = None  # type: ignore[assignment]


class MemoryKindAdmin(BoundedAdmin):
    """Base class for the list and the pages of one kind of memory."""

    form: Any = MemoryForm
    list_display: Any = (
        "excerpt", "account", "agent_id", "conversation_id", "state", "event_time", "user_id", "channel",
    )  # fmt: skip
    list_filter: ClassVar[Any] = (AccountFilter, *MARK_COLUMNS, VectorFilter)
    search_fields = ("id",)
    search_help_text = "Search for words of the text, or for a complete id, conversation, agent or user."
    long_columns: ClassVar[tuple[str, ...]] = LONG_COLUMNS
    list_annotations = {"text_excerpt": text_excerpt("text")}
    deletion_note = "Their vectors and links are deleted too."
    editable_fields: ClassVar[tuple[str, ...]] = (
        "text", "user_id", "channel", "event_time", "expires_at", "salience", "trust", "source", "metadata",
    )  # fmt: skip
    detail_fields: ClassVar[tuple[str, ...]] = (
        "account", "kind", "agent_id", "conversation_id", "state", "invisible", "embedding", "links", "merges",
        "identity", "token_count", "current_salience", "access_count", "last_accessed", "version", "created_at",
        "updated_at", "id",
    )  # fmt: skip
    actions: Any = ("embed",)

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        return (
            ("Content", {"fields": (*self.editable_fields, "seen_version")}),
            ("Details", {"fields": self.get_readonly_fields(request, obj)}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        return tuple(name for name in self.detail_fields if name != "merges" or self.model in MERGED_MODELS)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by words within the chosen account, or within all. The texts themselves are never scanned."""
        if not search_term.strip():
            return queryset, False
        memory_id = read_uuid(search_term)
        if memory_id is not None:
            return queryset.filter(id=memory_id), False
        return queryset.filter(has_words_or_ids(search_term, account_id=chosen_account(request))), False

    excerpt = excerpt_column("Text", "text_excerpt", empty="")
    invisible = column("Invisible characters", lambda memory: list_invisible(memory.text) or "none")
    current_salience = column(
        "Salience",
        lambda memory: format_decayed(memory.salience, base=memory.base_salience, faded=memory.faded_salience),
        ordering="salience",
    )
    links = column("Links", lambda memory: list_link("link", "Links of this memory", q=memory.id))
    merges = column("Merged duplicates", render_merges)

    @admin.display(description="State")
    def state(self, memory: Any) -> str:
        marks = [name for name in MARK_COLUMNS if getattr(memory, name)]
        if memory.embed_after is not None:
            marks.append("waiting for embedding")
        return ", ".join(marks) or "live"

    @admin.display(description="Embedding")
    def embedding(self, memory: Memory) -> str:
        found = Vector.objects.filter(memory_id=memory.id).order_by("model").values_list("model", "width")
        named = [f"{model} ({width})" for model, width in found[:MAX_VECTORS_SHOWN]]
        if memory.embed_after is not None:
            named.append(f"due {memory.embed_after:%Y-%m-%d %H:%M} UTC {memory.embed_error}".strip())
        return ", ".join(named) or "none"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in self.editable_fields}
        if changes:
            owner, version = staff_owner(request, obj.account_id), form.cleaned_data["seen_version"] or 0
            correct_memory(owner, obj.id, changes=changes, version=version, now=datetime.now(UTC))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_memories(staff_owner(request, obj.account_id), [obj.id], now=datetime.now(UTC))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for account_id, ids in ids_by_account(queryset).items():
            delete_memories(staff_owner(request, account_id), ids, now=datetime.now(UTC))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        named, counts, permissions, _ = super().get_deleted_objects(objs, request)
        # a conversation without one of its turns would have a gap
        turns = [str(row) for row in objs if row.kind == Kind.TURN]
        return named, counts, permissions, turns

    def get_actions(self, request: HttpRequest) -> Any:
        actions = super().get_actions(request)
        if self.has_change_permission(request):
            for name in MARKS:
                actions[name] = (mark_action(name), name, f"{name.capitalize()} selected %(verbose_name_plural)s")
            if self.model in MERGED_MODELS:
                undo: Callable[..., Any] = undo_merges
                actions["undo_merge"] = (undo, "undo_merge", "Undo the merge of selected %(verbose_name_plural)s")
        return actions

    @admin.action(description="Embed selected %(verbose_name_plural)s again", permissions=["change"])
    def embed(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        change = partial(queue_for_embedding, now=datetime.now(UTC))
        self.change_by_account(request, queryset, change, done="Queued for embedding:")


def mark_action(mark: str) -> Callable[..., Any]:
    """Return the list action that sets or removes a mark on the selected memories."""

    def run(pages: MemoryKindAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        change = partial(mark_memories, mark=mark, now=datetime.now(UTC))
        pages.change_by_account(request, queryset, change, done="Changed")

    return run


def undo_merges(pages: MemoryKindAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> None:
    """Make the selected memories live again, with their counts. They are not merged into the same ones again."""
    rows = queryset.only("id", "account_id").order_by("-pk")
    now = datetime.now(UTC)

    def undo(owner: Owner, memory: Memory) -> None:
        undo_merge(owner, memory.pk, now=now)

    pages.change_each(request, rows, undo, done="Made live again:", log="Merge undone.")


@admin.register(Memory)
class MemoryAdmin(MemoryKindAdmin):
    """Memories of all kinds in one list. Each kind is added through its own service."""

    list_display = ("excerpt", "kind", *MemoryKindAdmin.list_display[1:])
    list_filter = ("kind", *MemoryKindAdmin.list_filter)
    allow_add = False
