"""Context entries: as memories are, with all versions that they ever had."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString

from memory.admin.base import describe_deletion, staff_owner
from memory.admin.contexts import LONG_COLUMNS as LONG_CONTEXT_COLUMNS
from memory.admin.contexts import ContextFilter, link_to_context
from memory.admin.documents import show_json
from memory.admin.entry_versions import choose_pair, compare_versions, list_versions, read_number, says_more
from memory.admin.episodes import NOT_YET, MeaningChangeList
from memory.admin.fields import ExternalIdField
from memory.admin.memories import LONG_COLUMNS, MemoryForm, MemoryPages
from memory.admin.text import mark_invisible, shorten
from memory.errors import MemoryServiceError
from memory.models import ContextEntry
from memory.retrieval.entries import search_entries
from memory.services.contexts.entries import EntryDraft, find_version, restore_version, store_entries
from memory.services.contexts.staff_edits import forget_versions
from memory.services.embedding.embed import embed_texts

TYPES = ("entry_type", "memory_type", "source_type")
WEIGHTS = ("importance", "confidence")
MOST_FORGOTTEN = 200
"""Entries at once: each is a field of the form that asks first."""


class EntryChangeList(MeaningChangeList):
    search = staticmethod(search_entries)


class EntryForm(MemoryForm):
    key = ExternalIdField(
        required=False, max_length=200, help_text="Where the context has an entry of this key, it gets a new version."
    )
    importance = forms.FloatField(min_value=0, max_value=1, initial=0.5)
    confidence = forms.FloatField(min_value=0, max_value=1, initial=1.0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.fields["context"].required = True
            self.fields["source_type"].initial = ContextEntry.SourceType.USER
            for name in ("user_id", "channel"):
                del self.fields[name]
        elif "text" in self.fields:
            self.fields["text"].help_text = "Another text is the next version, and the value under a key."


@admin.register(ContextEntry)
class ContextEntryAdmin(MemoryPages):
    """Another text is the next version, whoever corrects it. One that is added is the account's, and waits for its
    vector.
    """

    form = EntryForm
    change_list_template = "admin/memory/episodicmemory/change_list.html"
    change_form_template = "admin/memory/contextentry/change_form.html"
    list_display = (
        "excerpt", "entry_key", "of_context", "types", "weights", "relevance", "latest", "state", "agent_id",
        "account",
    )  # fmt: skip
    list_filter = (*MemoryPages.list_filter, ContextFilter, *TYPES)
    list_select_related = ("account", "context")
    raw_id_fields = ("context",)
    long_columns = (*LONG_COLUMNS, "value", *(f"context__{name}" for name in LONG_CONTEXT_COLUMNS))
    correctable = ("text", *TYPES, *WEIGHTS, *MemoryPages.correctable[1:])
    added_fields = ("context", "key", "text", *TYPES, *WEIGHTS, "metadata")
    shown = ("of_context", "entry_key", "stored_value", "relevance", "content_version", *MemoryPages.shown)
    actions = ("embed", "forget")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return EntryChangeList

    def get_list_display(self, request: HttpRequest) -> Any:
        """With their similarity to what was asked, where something was."""
        excerpt, *others = super().get_list_display(request)
        return (excerpt, "similarity", *others) if request.GET.get("meaning", "").strip() else (excerpt, *others)

    def get_urls(self) -> list[URLPattern]:
        view: Callable[..., HttpResponse] = self.admin_site.admin_view(self.versions_view)
        own = path("<path:object_id>/versions/", view, name="memory_contextentry_versions")
        return [own, *super().get_urls()]

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is None:
            return ((None, {"fields": self.added_fields}),)
        return super().get_fieldsets(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # the key is shown marked (`entry_key`), and no field of the form
        return () if obj is None else (*self.shown, "key")

    @admin.display(description="Similarity")
    def similarity(self, entry: ContextEntry) -> str:
        similarity = getattr(entry, "similarity", None)
        return "" if similarity is None else f"{similarity:.3f}"

    @admin.display(description="Key")
    def entry_key(self, entry: ContextEntry) -> str:
        return mark_invisible(entry.key)

    @admin.display(description="Version")
    def latest(self, entry: ContextEntry) -> int:
        return entry.content_version

    @admin.display(description="Context")
    def of_context(self, entry: ContextEntry) -> SafeString | str:
        return link_to_context(entry.context) if entry.context else "-"

    @admin.display(description="Types")
    def types(self, entry: ContextEntry) -> str:
        return ", ".join(str(getattr(entry, name)).replace("_", " ") for name in TYPES)

    @admin.display(description="Weights")
    def weights(self, entry: ContextEntry) -> str:
        return f"{entry.importance:g}, {entry.confidence:g}"

    @admin.display(description="Relevance")
    def relevance(self, entry: ContextEntry) -> str:
        return f"{entry.effective_relevance_score(datetime.now(UTC)):.3f}"

    @admin.display(description="Value")
    def stored_value(self, entry: ContextEntry) -> SafeString | str:
        if entry.value is None:
            return "none"
        return show_json(entry.value) if says_more(entry) else "the text"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        given = {name: form.cleaned_data[name] for name in (*TYPES, *WEIGHTS, "key", "metadata")}
        draft = EntryDraft(content=form.cleaned_data["text"], source="staff", **given)
        owner, context = staff_owner(request, form.cleaned_data["context"].account_id), form.cleaned_data["context"]
        now = datetime.now(UTC)
        (stored,) = store_entries(owner, context.pk, drafts=[draft], embedded=NOT_YET, editor=owner.actor, now=now)
        if stored.pk != draft.id:
            told = f"There was an entry under this key: it is at version {stored.content_version}."
            self.message_user(request, told, messages.INFO)
        # what follows in this request speaks of the row that the service stored
        obj.__dict__.update(stored.__dict__)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        also = "and their versions, vectors and links; snapshots lose them. Archiving keeps all of it"
        return describe_deletion(objs, also)

    def versions_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """All versions, two of them side by side; posted, the one to bring back."""
        entry: ContextEntry | None = self.get_object(request, object_id)
        if not self.has_view_permission(request, entry):
            raise PermissionDenied
        if entry is None:
            raise Http404("no such entry")
        if request.method == "POST":
            self.restore(request, entry)
            return HttpResponseRedirect(request.path)
        template = "admin/memory/contextentry/versions.html"
        return TemplateResponse(request, template, self.describe_versions(request, entry))

    def describe_versions(self, request: HttpRequest, entry: ContextEntry) -> dict[str, Any]:
        pair = choose_pair(entry, request.GET)
        heading = shorten(entry.key or entry.text)
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Versions of {heading}",
            "heading": heading,
            "entry": entry,
            "compared": compare_versions(*pair) if pair else None,
            "names": [f"Version {version.number}" for version in pair or ()],
            "listed": list_versions(entry, before=read_number(request.GET, "before")),
            "obstacle": find_obstacle(entry, datetime.now(UTC)),
            "may_restore": self.has_change_permission(request, entry),
            "may_forget": self.has_delete_permission(request, entry),
            "selected": ACTION_CHECKBOX_NAME,
        }

    def restore(self, request: HttpRequest, entry: ContextEntry) -> None:
        if not self.has_change_permission(request, entry):
            raise PermissionDenied
        number, seen = (read_number(request.POST, name) or 0 for name in ("number", "seen_version"))
        owner, now = staff_owner(request, entry.account_id), datetime.now(UTC)
        refusal = find_obstacle(entry, now)
        if not refusal:
            try:
                version = find_version(owner, entry.pk, number, now=now)
                restored = restore_version(
                    owner,
                    version,
                    embedded=embed_texts([version.content]),
                    editor=owner.actor,
                    expected=frozenset({seen}),
                    now=now,
                )
            except MemoryServiceError as err:
                refusal = f"{err}."
        if refusal:
            self.message_user(request, f"Not restored: {refusal}", messages.ERROR)
        elif restored.content_version == entry.content_version:
            self.message_user(request, f"Nothing to restore: it says what version {number} says.", messages.INFO)
        else:
            self.log_change(request, entry, f"Restored version {number} as version {restored.content_version}.")
            told = f"Restored: version {restored.content_version} says what version {number} says."
            self.message_user(request, told, messages.SUCCESS)

    @admin.action(description="Forget earlier versions of selected %(verbose_name_plural)s", permissions=["delete"])
    def forget(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Asks first: they are gone for good."""
        columns = ("account", "key", "content_version")
        entries = list(queryset.select_related(None).only(*columns)[: MOST_FORGOTTEN + 1])
        if len(entries) > MOST_FORGOTTEN:
            self.message_user(request, f"Choose at most {MOST_FORGOTTEN} at once.", messages.ERROR)
            return None
        if request.POST.get("post") != "yes":
            template = "admin/memory/contextentry/forget_confirmation.html"
            return TemplateResponse(request, template, self.describe_forgetting(request, entries))
        forgotten = 0
        for entry in entries:
            forgotten += forget_versions(staff_owner(request, entry.account_id), entry.pk)
            self.log_change(request, entry, "Forgot earlier versions.")
        self.message_user(request, f"Forgotten: {forgotten} versions.", messages.SUCCESS)
        return None

    def describe_forgetting(self, request: HttpRequest, entries: Sequence[ContextEntry]) -> dict[str, Any]:
        named = [(mark_invisible(str(entry)), entry.content_version - 1) for entry in entries]
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Forget earlier versions?",
            "ids": [entry.pk for entry in entries],
            "named": named,
            "selected": ACTION_CHECKBOX_NAME,
        }


def find_obstacle(entry: ContextEntry, now: datetime) -> str:
    """Why no version of it can be restored as things are; empty where one can."""
    if entry.context is not None and entry.context.archived:
        return "its context is archived, and read-only until it is unarchived."
    if entry.quarantined:
        return "it is in quarantine: release it first."
    if entry.archived:
        return "it is archived: unarchive it first."
    if entry.expires_at is not None and entry.expires_at <= now:
        return "it has expired: change when it does first."
    return ""
