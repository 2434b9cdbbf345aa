"""Memories of every kind: found by words, corrected through the service, marked, deleted."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin, by_account, describe_deletion, staff_owner
from memory.admin.duplicates import MERGED_MODELS, tell_merges, undo_merges
from memory.admin.fading import tell_value
from memory.admin.fields import ExternalIdField, JSONObjectField, PlainTextField
from memory.admin.filters import VectorFilter
from memory.admin.text import EXCERPT_CHARACTERS, name_invisible, shorten
from memory.models import Kind, Link, Memory, Vector
from memory.retrieval.words import with_words
from memory.services.memories.correct import MARKS, correct_memory, delete_memories, embed_again, mark_memories
from memory_project.admin_lists import AccountFilter, chosen_account, read_uuid

MARKED = ("archived", "quarantined", "pinned", "buried")
"""Columns that the marks of `services.corrections` set."""

LONG_COLUMNS = ("text", "metadata")
MOST_VECTORS_NAMED = 20


class LeanChangeList(ChangeList):
    """Texts may be a megabyte: a list asks the database for their beginnings only."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        long_columns = self.model_admin.long_columns  # type: ignore[attr-defined]
        lean: QuerySet[Any] = rows.defer(*long_columns).annotate(excerpt=Left("text", EXCERPT_CHARACTERS + 1))
        return lean


class MemoryForm(forms.ModelForm):  # type: ignore[type-arg]
    """What may be corrected, and the version that was seen when the page was opened."""

    text = PlainTextField()
    user_id = ExternalIdField(required=False, label="User")
    channel = ExternalIdField(initial="_global")
    metadata = JSONObjectField(required=False, initial=dict)
    seen_version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.fields["seen_version"].initial = self.instance.version

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        if not text.strip():
            raise forms.ValidationError("A memory has a text.")
        return text


class MemoryPages(BoundedAdmin):
    """Lists and pages of memories, whatever the kind."""

    form = MemoryForm
    list_display: Any = (
        "excerpt", "account", "agent_id", "conversation_id", "state", "event_time", "user_id", "channel",
    )  # fmt: skip
    list_filter: ClassVar[Any] = (
        AccountFilter,
        "archived",
        "quarantined",
        "pinned",
        "buried",
        VectorFilter,
    )
    list_select_related: ClassVar[Any] = ("account",)
    search_fields: ClassVar[Any] = ("id",)
    search_help_text = "Words of the text; or an id, a conversation, an agent or a user, in full."
    long_columns: ClassVar[tuple[str, ...]] = LONG_COLUMNS
    correctable: ClassVar[tuple[str, ...]] = (
        "text", "user_id", "channel", "event_time", "expires_at", "salience", "trust", "source", "metadata",
    )  # fmt: skip
    shown: ClassVar[tuple[str, ...]] = (
        "account", "kind", "agent_id", "conversation_id", "state", "invisible", "embedding", "links", "merges",
        "identity", "token_count", "told_salience", "access_count", "last_accessed", "version", "created_at",
        "updated_at", "id",
    )  # fmt: skip

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LeanChangeList

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        return (
            ("What it says", {"fields": (*self.correctable, "seen_version")}),
            ("What it is", {"fields": self.get_readonly_fields(request, obj)}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        """Without what is never merged saying what was merged with it."""
        return tuple(name for name in self.shown if name != "merges" or self.model in MERGED_MODELS)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By words within the chosen account, else within all; never by reading through the texts."""
        if not search_term.strip():
            return queryset, False
        memory_id = read_uuid(search_term)
        if memory_id is not None:
            return queryset.filter(id=memory_id), False
        return queryset.filter(with_words(search_term, account_id=chosen_account(request))), False

    @admin.display(description="Text")
    def excerpt(self, memory: Memory) -> str:
        return shorten(getattr(memory, "excerpt", ""))

    @admin.display(description="State")
    def state(self, memory: Memory) -> str:
        marks = [name for name in MARKED if getattr(memory, name)]
        if memory.embed_after is not None:
            marks.append("waits for its vector")
        return ", ".join(marks) or "live"

    @admin.display(description="Invisible characters")
    def invisible(self, memory: Memory) -> str:
        return name_invisible(memory.text) or "none"

    @admin.display(description="Embedding")
    def embedding(self, memory: Memory) -> str:
        found = Vector.objects.filter(memory_id=memory.id).order_by("model").values_list("model", "width")
        named = [f"{model} ({width})" for model, width in found[:MOST_VECTORS_NAMED]]
        if memory.embed_after is not None:
            named.append(f"due {memory.embed_after:%Y-%m-%d %H:%M} UTC {memory.embed_error}".strip())
        return ", ".join(named) or "none"

    @admin.display(description="Salience", ordering="salience")
    def told_salience(self, memory: Memory) -> str:
        return tell_value(memory.salience, base=memory.base_salience, faded=memory.faded_salience)

    @admin.display(description="Links")
    def links(self, memory: Memory) -> SafeString:
        return format_html('<a href="{}?q={}">Links of this memory</a>', list_of(Link), memory.id)

    @admin.display(description="Merged as saying the same")
    def merges(self, memory: Memory) -> SafeString | str:
        return tell_merges(memory)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        changes = {name: form.cleaned_data[name] for name in form.changed_data if name in self.correctable}
        if changes:
            owner, version = staff_owner(request, obj.account_id), form.cleaned_data["seen_version"] or 0
            correct_memory(owner, obj.id, changes=changes, version=version, now=datetime.now(UTC))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_memories(staff_owner(request, obj.account_id), [obj.id], now=datetime.now(UTC))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for account_id, ids in by_account(queryset).items():
            delete_memories(staff_owner(request, account_id), ids, now=datetime.now(UTC))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        named, counts, permissions, _ = describe_deletion(objs, "and their vectors and links")
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

    actions: Any = ("embed",)

    @admin.action(description="Embed selected %(verbose_name_plural)s again", permissions=["change"])
    def embed(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        queued = sum(
            embed_again(staff_owner(request, account_id), ids, now=datetime.now(UTC))
            for account_id, ids in by_account(queryset).items()
        )
        self.message_user(request, f"Waiting for new vectors: {queued}.", messages.SUCCESS)


def mark_action(mark: str) -> Callable[..., Any]:
    """The action of the admin that does `mark` to what was selected."""

    def run(pages: MemoryPages, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        changed = sum(
            mark_memories(staff_owner(request, account_id), ids, mark=mark, now=datetime.now(UTC))
            for account_id, ids in by_account(queryset).items()
        )
        pages.message_user(request, f"Changed: {changed}.", messages.SUCCESS)

    return run


def list_of(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@admin.register(Memory)
class MemoryAdmin(MemoryPages):
    """Every kind in one list. Each kind is added through its own service."""

    list_display = ("excerpt", "kind", *MemoryPages.list_display[1:])
    list_filter = ("kind", *MemoryPages.list_filter)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
