"""Snapshots of contexts. The page of one shows what restoring it would change now, and restores it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Subquery, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from memory.admin.base import adopt_row, staff_owner
from memory.admin.columns import agent_column, column, excerpt_column
from memory.admin.contexts import LONG_CONTEXT_COLUMNS, ContextFilter, context_link
from memory.admin.diffs import EXCERPT, TextDiff, compare_texts
from memory.admin.exports import ListExportAdmin
from memory.admin.text import error_sentence, excerpt_of, mark_invisible
from memory.errors import MemoryServiceError
from memory.models import ContextEntry, ContextEntryVersion, ContextSnapshot, SnapshotEntry
from memory.owner import Owner
from memory.services.contexts.snapshots import (
    RestoreCounts,
    RestorePreview,
    RestoreStep,
    create_snapshot,
    delete_snapshot,
    preview_restore,
    restore_snapshot,
    texts_to_restore,
)
from memory.services.embedding.embed import embed_texts
from memory_project.admin_lists import AccountFilter

MAX_STEPS_SHOWN = 100
"""Entries that are shown in each section of a preview."""

MAX_COMPARED_CHARACTERS = 20_000
"""Characters of each side that are compared."""

LABELS = ("entry_type", "source_type", "memory_type", "source", "metadata")
"""Columns that a snapshot notes of an entry in addition to its content and weights."""


class EntrySide(NamedTuple):
    """An entry now or in the snapshot. `value` and `labels` (see LABELS) are texts, or None if the entry has none."""

    entry_id: UUID | None = None
    text: str = ""
    value: str | None = None
    importance: float = 0.0
    confidence: float = 0.0
    labels: Sequence[str | None] = ()


DELETED_SIDE = EntrySide()
"""An entry that was deleted while the page was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewStep:
    """An entry that would change. `diff` compares its content or value now and then; None if they are the same.

    `changes` says what else would change.
    """

    name: str
    excerpt: str
    entry_id: UUID
    diff: TextDiff | None = None
    is_value: bool = False
    changes: Sequence[str] = ()
    compare_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewSection:
    """Entries to which the same would happen: `count` of them, of which `steps` are shown."""

    name: str
    explanation: str
    count: int
    steps: Sequence[PreviewStep]

    @property
    def left_out(self) -> int:
        return self.count - len(self.steps)


@admin.register(ContextSnapshot)
class ContextSnapshotAdmin(ListExportAdmin):
    """The pages of snapshots, which are never changed. Restoring one takes the permission to change entries as well."""

    list_display = ("named", "context_page", "account", "made_by", "entry_count", "created_at")
    list_filter = (AccountFilter, ContextFilter)
    list_select_related = ("account", "context")
    search_fields = ("name", "agent_id__exact")
    search_help_text = "Search for a part of the name, or for the complete name of the agent that made it."
    raw_id_fields = ("context",)
    fields = ("context", "name")
    deletion_note = "The context can no longer be restored to them. Its entries stay as they are."

    named = excerpt_column("Snapshot", "name", empty="unnamed")
    context_page = column("Context", context_link)
    made_by = agent_column("Made by")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer(*(f"context__{name}" for name in LONG_CONTEXT_COLUMNS))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        context, name = form.cleaned_data["context"], form.cleaned_data["name"]
        owner = staff_owner(request, context.account_id)
        adopt_row(obj, create_snapshot(owner, context.pk, name=name, now=datetime.now(UTC)))

    def remove_row(self, owner: Owner, row: Any) -> None:
        delete_snapshot(owner, row.context_id, row.pk)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show what restoring the snapshot would change, instead of a form. If the page was posted, restore it."""
        snapshot = self.find_row(request, object_id)
        if request.method == "POST":
            self.restore(request, snapshot)
            return HttpResponseRedirect(request.path)
        owner, now = staff_owner(request, snapshot.account_id), datetime.now(UTC)
        preview = preview_restore(owner, snapshot.context_id, snapshot.pk, now=now)
        may_read = any(request.user.has_perm(f"memory.{verb}_contextentry") for verb in ("view", "change"))
        return self.render_page(
            request,
            "contextsnapshot/preview.html",
            f"Snapshot {self.named(snapshot)}",
            snapshot=snapshot,
            heading=self.named(snapshot),
            made_by=self.made_by(snapshot),
            context_link=self.context_page(snapshot),
            preview=preview,
            changes=len(preview.changed) + len(preview.returned) + len(preview.removed),
            sections=preview_sections(snapshot, preview) if may_read else [],
            may_read=may_read,
            may_restore=self.may_restore(request, snapshot),
            may_delete=self.has_delete_permission(request, snapshot),
        )

    def may_restore(self, request: HttpRequest, snapshot: ContextSnapshot) -> bool:
        may_change_entries = request.user.has_perm("memory.change_contextentry")
        return may_change_entries and self.has_change_permission(request, snapshot)

    def restore(self, request: HttpRequest, snapshot: ContextSnapshot) -> None:
        if not self.may_restore(request, snapshot):
            raise PermissionDenied
        owner, now = staff_owner(request, snapshot.account_id), datetime.now(UTC)
        ids = (snapshot.context_id, snapshot.pk)
        try:
            embedded = embed_texts(texts_to_restore(owner, *ids, now=now))
            restored = restore_snapshot(owner, *ids, editor=owner.actor, embedded=embedded, now=now)
        except MemoryServiceError as err:
            self.message_user(request, f"Nothing was restored. {error_sentence(err)}", messages.ERROR)
            return
        counts = format_counts(restored)
        self.log_change(request, snapshot, f"Restored: {counts}")
        self.message_user(request, f"Restored: {counts}", messages.SUCCESS)


def format_counts(restored: RestoreCounts) -> str:
    """Format what was done. It may differ from the preview, which was of an earlier time."""
    if not restored.changed + restored.returned + restored.removed:
        counts = "nothing had to change"
    else:
        counts = f"{restored.changed} changed, {restored.returned} unarchived, {restored.removed} archived"
    missing = f"; {restored.missing} could not be restored" if restored.missing else ""
    return f"{counts}, {restored.unchanged} unchanged{missing}."


def preview_sections(snapshot: ContextSnapshot, preview: RestorePreview) -> list[PreviewSection]:
    """Return the changed, unarchived and archived entries. Two queries read no more than is shown."""
    changed, returned, removed = (
        steps[:MAX_STEPS_SHOWN] for steps in (preview.changed, preview.returned, preview.removed)
    )
    now = read_current_sides([*changed, *returned, *removed])
    then = read_snapshot_sides(snapshot, [*changed, *returned])
    return [
        PreviewSection(
            name="Changed",
            explanation="The content comes back as a new version. Weights and labels are set to those in the snapshot.",
            count=len(preview.changed),
            steps=[changed_step(step, now, then) for step in changed],
        ),
        PreviewSection(
            name="Unarchived",
            explanation="These entries were removed since.",
            count=len(preview.returned),
            steps=[moved_step(step, then) for step in returned],
        ),
        PreviewSection(
            name="Archived",
            explanation="These entries were added since. Their versions stay.",
            count=len(preview.removed),
            steps=[moved_step(step, now) for step in removed],
        ),
    ]


def read_current_sides(steps: Sequence[RestoreStep]) -> dict[UUID, EntrySide]:
    """Return the entries as they are now, by id."""
    rows = ContextEntry.objects.filter(pk__in=[step.entry_id for step in steps])
    columns = ("id", compared_part("text"), compared_part("value"), "importance", "confidence")
    return entry_sides(rows.values_list(*columns, *map(compared_part, LABELS)))


def read_snapshot_sides(snapshot: ContextSnapshot, steps: Sequence[RestoreStep]) -> dict[UUID, EntrySide]:
    """Return the entries as they were in the snapshot, by id."""
    version = ContextEntryVersion.objects.filter(
        account_id=snapshot.account_id, entry_id=OuterRef("entry_id"), number=OuterRef("number")
    )
    text, value = (Subquery(version.values(part=compared_part(column))[:1]) for column in ("content", "value"))
    rows = SnapshotEntry.objects.filter(
        account_id=snapshot.account_id, snapshot=snapshot, entry_id__in=[step.entry_id for step in steps]
    )
    labels = (Left(KeyTextTransform(name, "attributes"), MAX_COMPARED_CHARACTERS) for name in LABELS)
    return entry_sides(rows.values_list("entry_id", text, value, "importance", "confidence", *labels))


def compared_part(column: str) -> Left:
    return Left(Cast(column, TextField()), MAX_COMPARED_CHARACTERS)


def entry_sides(rows: Iterable[Sequence[Any]]) -> dict[UUID, EntrySide]:
    """Return sides by entry. The columns are in the order of EntrySide, and the labels are the last ones."""
    return {row[0]: EntrySide._make((row[0], row[1] or "", *row[2:5], row[5:])) for row in rows}


def moved_step(step: RestoreStep, sides: Mapping[UUID, EntrySide]) -> PreviewStep:
    """Return the step of an entry that is archived or unarchived."""
    side = sides.get(step.entry_id, DELETED_SIDE)
    return PreviewStep(name=mark_invisible(step.key), excerpt=excerpt_of(side.text), entry_id=step.entry_id)


def changed_step(step: RestoreStep, before: Mapping[UUID, EntrySide], after: Mapping[UUID, EntrySide]) -> PreviewStep:
    now, then = before.get(step.entry_id, DELETED_SIDE), after.get(step.entry_id, DELETED_SIDE)
    is_value = now.text == then.text and now.value != then.value
    sides = (now.value or "", then.value or "") if is_value else (now.text, then.text)
    page = reverse("admin:memory_contextentry_versions", args=[step.entry_id])
    return PreviewStep(
        name=mark_invisible(step.key),
        excerpt=excerpt_of(now.text),
        entry_id=step.entry_id,
        diff=compare_texts(*sides, limits=EXCERPT) if step.is_reworded else None,
        is_value=is_value,
        changes=list(list_changes(now, then)),
        compare_url=f"{page}?left={step.to_version}&right={step.from_version}" if step.is_reworded else "",
    )


def list_changes(now: EntrySide, then: EntrySide) -> Iterator[str]:
    """Yield weights and labels that differ. Snapshots that are older than the labels have none of them."""
    for name in ("importance", "confidence"):
        if getattr(now, name) != getattr(then, name):
            yield f"{name} {getattr(now, name):g} → {getattr(then, name):g}"
    for name, before, after in zip(LABELS, now.labels, then.labels, strict=False):
        if after is not None and before != after:
            yield f"{name.replace('_', ' ')} {excerpt_of(before or '')} → {excerpt_of(after)}"
