"""Context entries with all their versions: a list of these, and two of them side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import Func, IntegerField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.safestring import SafeString

from memory.admin.base import adopt_row, read_number, staff_owner
from memory.admin.columns import column, text_column
from memory.admin.contexts import LONG_CONTEXT_COLUMNS, ContextFilter, context_link
from memory.admin.diffs import TextDiff, compare_texts
from memory.admin.fields import ExternalIdField
from memory.admin.memories import LONG_COLUMNS, NOT_YET_EMBEDDED, MeaningSearchAdmin, MemoryForm, MemoryKindAdmin
from memory.admin.text import MAX_JSON_CHARACTERS, error_sentence, excerpt_of, indent_json, mark_invisible, render_json
from memory.errors import MemoryServiceError
from memory.models import ContextEntry, ContextEntryVersion, Kind
from memory.owner import Owner
from memory.retrieval.kind_searches import search_entries
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.contexts.entries import EntryDraft, entry_versions, find_version, restore_version, store_entries
from memory.services.contexts.versions import delete_old_versions
from memory.services.embedding.embed import embed_texts

PAGE_VERSIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionComparison:
    """Two versions and their differences. `value` is None if the values of both only repeat their contents."""

    old: ContextEntryVersion
    new: ContextEntryVersion
    content: TextDiff
    value: TextDiff | None

    @property
    def is_same(self) -> bool:
        return self.content.is_same and (self.value is None or self.value.is_same)


def list_versions(entry: ContextEntry, *, before: int | None) -> tuple[list[Any], int | None]:
    """Return a page of versions, newest first, and the number before which the next page begins (None on the last).

    One query reads the sizes of the contents and no contents.
    """
    # the length of a long text that is stored out of line is known without reading it
    size = Func("content", function="octet_length", output_field=IntegerField())
    rows: Any = entry_versions(entry).defer("content", "value").annotate(size_bytes=size).order_by("-number")
    if before is not None:
        rows = rows.filter(number__lt=before)
    found = list(rows[: PAGE_VERSIONS + 1])
    versions = found[:PAGE_VERSIONS]
    for version in versions:
        version.editor = mark_invisible(version.editor)
    return versions, versions[-1].number if len(found) > PAGE_VERSIONS else None


def choose_pair(entry: ContextEntry, asked: QueryDict) -> tuple[ContextEntryVersion, ContextEntryVersion] | None:
    """Return the two versions that were asked for, the older one first, or None if there is only one.

    The default for `right` is the latest version, and for `left` the one before `right`.
    """
    rows = entry_versions(entry).order_by("-number")
    left, right = (read_number(asked.get(name, "")) for name in ("left", "right"))
    new = rows.filter(number=right).first() if right is not None else None
    new = new or rows.first()
    if new is None:
        return None
    old = rows.filter(number=left).first() if left not in (None, new.number) else None
    # no version precedes the first one
    old = old or rows.filter(number__lt=new.number).first() or rows.filter(number__gt=new.number).last()
    if old is None:
        return None
    return (old, new) if old.number < new.number else (new, old)


def compare_versions(old: ContextEntryVersion, new: ContextEntryVersion) -> VersionComparison:
    content = compare_texts(old.content, new.content)
    if not any(has_own_value(version.value, version.content) for version in (old, new)):
        return VersionComparison(old=old, new=new, content=content, value=None)
    values = (
        "" if version.value is None else indent_json(version.value, characters=MAX_JSON_CHARACTERS)
        for version in (old, new)
    )
    return VersionComparison(old=old, new=new, content=content, value=compare_texts(*values))


def has_own_value(value: Any, content: str) -> bool:
    """Return whether a value differs from the content. The value under a key often repeats it."""
    return value is not None and value != content


TYPES = ("entry_type", "memory_type", "source_type")
WEIGHTS = ("importance", "confidence")
MAX_FORGOTTEN = 200
"""Entries whose versions are deleted at a time. Each is a field of the form that asks for confirmation."""


class EntryForm(MemoryForm):
    key = ExternalIdField(
        required=False,
        max_length=200,
        help_text="If the context has an entry with this key already, that entry gets a new version.",
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
            self.fields["text"].help_text = "A changed text is the next version, and also the value under a key."


def render_value(entry: ContextEntry) -> SafeString | str:
    if entry.value is None:
        return "none"
    return render_json(entry.value) if has_own_value(entry.value, entry.text) else "the same as the text"


def forget_versions(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    """Delete all versions except the latest of each entry. Entries without old versions do not count."""
    rows = ContextEntry.objects.visible_to(owner, Kind.CONTEXT_ENTRY).filter(id__in=row_ids).only("id", "account_id")
    return change_each(rows.order_by("-pk"), lambda entry: delete_old_versions(owner, entry.pk) > 0)


@admin.register(ContextEntry)
class ContextEntryAdmin(MeaningSearchAdmin):
    """The pages of entries. A corrected text is the next version. A new entry belongs to the account."""

    form = EntryForm
    meaning_search = staticmethod(search_entries)
    change_form_template = "admin/memory/contextentry/change_form.html"
    list_display = (
        "excerpt", "entry_key", "context_page", "types", "weights", "relevance", "latest_version", "state", "agent_id",
        "account",
    )  # fmt: skip
    list_filter = (*MemoryKindAdmin.list_filter, ContextFilter, *TYPES)
    list_select_related = ("account", "context")
    raw_id_fields = ("context",)
    long_columns = (*LONG_COLUMNS, "value", *(f"context__{name}" for name in LONG_CONTEXT_COLUMNS))
    editable_fields = ("text", *TYPES, *WEIGHTS, *MemoryKindAdmin.editable_fields[1:])
    added_fields = ("context", "key", "text", *TYPES, *WEIGHTS, "metadata")
    detail_fields = (
        "context_page", "entry_key", "stored_value", "relevance", "content_version", *MemoryKindAdmin.detail_fields,
    )  # fmt: skip
    bulk_actions = (
        BulkAction(
            name="forget",
            label="Delete old versions of selected %(verbose_name_plural)s",
            done="Deleted old versions:",
            apply=forget_versions,
            permission="delete",
            explanation="All versions but the latest are deleted for good. Snapshots with them lose the entry.",
            is_destructive=True,
        ),
    )
    deletion_note = (
        "Their versions, vectors and links are deleted too, and snapshots lose them. Archiving keeps all of it."
    )

    entry_key = text_column("Key", "key", empty="")
    latest_version = column("Version", lambda entry: entry.content_version)
    context_page = column("Context", context_link)
    types = column("Types", lambda entry: ", ".join(str(getattr(entry, name)).replace("_", " ") for name in TYPES))
    weights = column("Importance, confidence", lambda entry: f"{entry.importance:g}, {entry.confidence:g}")
    relevance = column("Relevance", lambda entry: f"{entry.effective_relevance_score(datetime.now(UTC)):.3f}")
    stored_value = column("Value", render_value)

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # the key is shown as `entry_key`, and the form does not edit it
        return () if obj is None else (*self.detail_fields, "key")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        given, context = form.cleaned_data, form.cleaned_data["context"]
        values = {name: given[name] for name in (*TYPES, *WEIGHTS, "key", "metadata")}
        drafts = [EntryDraft(content=given["text"], source="staff", **values)]
        owner, now = staff_owner(request, context.account_id), datetime.now(UTC)
        (stored,) = store_entries(
            owner, context.pk, drafts=drafts, embedded=NOT_YET_EMBEDDED, editor=owner.actor, now=now
        )
        if stored.pk != drafts[0].id:
            message = f"The context had an entry with this key, which is at version {stored.content_version} now."
            self.message_user(request, message, messages.INFO)
        adopt_row(obj, stored)

    def versions_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show all versions, two of them side by side. If a version was posted, restore it."""
        entry = self.find_row(request, object_id)
        if request.method == "POST":
            self.restore(request, entry)
            return HttpResponseRedirect(request.path)
        pair = choose_pair(entry, request.GET)
        heading = excerpt_of(entry.key or entry.text)
        versions, next_before = list_versions(entry, before=read_number(request.GET.get("before", "")))
        return self.render_page(
            request,
            "contextentry/versions.html",
            f"Versions of {heading}",
            heading=heading,
            entry=entry,
            compared=compare_versions(*pair) if pair else None,
            names=[f"Version {version.number}" for version in pair or ()],
            versions=versions,
            next_before=next_before,
            obstacle=find_restore_obstacle(entry, datetime.now(UTC)),
            may_restore=self.has_change_permission(request, entry),
            may_forget=self.has_delete_permission(request, entry),
            selected=ACTION_CHECKBOX_NAME,
        )

    row_pages = {"versions": versions_view}

    def restore(self, request: HttpRequest, entry: ContextEntry) -> None:
        """Make the posted version the next one, and say so or why not."""
        if not self.has_change_permission(request, entry):
            raise PermissionDenied
        number, seen = (read_number(request.POST.get(name, "")) or 0 for name in ("number", "seen_version"))
        owner, now = staff_owner(request, entry.account_id), datetime.now(UTC)
        refusal = find_restore_obstacle(entry, now)
        if not refusal:
            try:
                version = find_version(owner, entry.pk, number, now=now)
                embedded, expected = embed_texts([version.content]), frozenset({seen})
                restored = restore_version(
                    owner, version, embedded=embedded, editor=owner.actor, expected=expected, now=now
                )
            except MemoryServiceError as err:
                refusal = error_sentence(err)
        if refusal:
            self.message_user(request, f"Nothing was restored. {refusal}", messages.ERROR)
        elif restored.content_version == entry.content_version:
            message = f"Nothing was restored. The entry has the same content as version {number} already."
            self.message_user(request, message, messages.INFO)
        else:
            message = f"Restored version {number} as version {restored.content_version}."
            self.log_change(request, entry, message)
            self.message_user(request, message, messages.SUCCESS)


def find_restore_obstacle(entry: ContextEntry, now: datetime) -> str:
    """Return why no version of the entry can be restored now, or "" if one can."""
    if entry.context is not None and entry.context.archived:
        return "The context is archived and read-only until it is unarchived."
    if entry.quarantined:
        return "The entry is quarantined. Release it first."
    if entry.archived:
        return "The entry is archived. Unarchive it first."
    if entry.expires_at is not None and entry.expires_at <= now:
        return "The entry has expired. Change its expiry first."
    return ""
