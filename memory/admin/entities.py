"""Entities: with their relationships, facts and mentions, and a picture of what they are linked to."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from memory.admin.base import BoundedAdmin
from memory.admin.beliefs import entity_link
from memory.admin.columns import column, text_column, time_column
from memory.admin.entity_pages import (
    MAX_MERGED,
    merge_selected,
    read_absorbed,
    read_facts,
    read_mentions,
    read_neighbours,
    render_entity,
    split_view,
)
from memory.admin.fields import JSONObjectField, JSONTextsField, NameField, PlainTextField
from memory.admin.filters import LinkedFilter
from memory.admin.memories import LONG_COLUMNS, NOT_YET_EMBEDDED, MeaningSearchAdmin, MemoryKindAdmin, OwnedMemoryForm
from memory.admin.text import excerpt_of, mark_invisible
from memory.models import Entity
from memory.models.entities import MAX_ENTITY_NAME_CHARACTERS, MAX_ENTITY_TYPE_CHARACTERS
from memory.owner import Owner
from memory.retrieval.search import search_entities
from memory.services.entities.change import EntityChanges, change_entity, remove_entity
from memory_project.admin_lists import AccountFilter


class EntityForm(OwnedMemoryForm):
    """The searched text follows from the names and the description."""

    text = None  # type: ignore[assignment]
    name = NameField(max_length=MAX_ENTITY_NAME_CHARACTERS, strip=False)
    type = forms.CharField(max_length=MAX_ENTITY_TYPE_CHARACTERS, help_text="The type in lower case.")
    aliases = JSONTextsField(required=False, help_text="Other names of the entity, as a JSON list of texts.")
    description = PlainTextField(rows=3, required=False)
    properties = JSONObjectField(required=False)
    salience = forms.FloatField(min_value=0, max_value=1)


class EntityTypeFilter(LinkedFilter):
    """A filter by type, set by a link on a page, since types may be any text."""

    title = "type"
    parameter_name = "type"


@admin.register(Entity)
class EntityAdmin(MeaningSearchAdmin):
    """The pages of entities, which agents and extraction create. They are merged, split, and merges are undone."""

    row_pages = {"split": split_view}
    form = EntityForm
    meaning_search = staticmethod(search_entities)
    change_form_template = "admin/memory/entity/change_form.html"
    list_display = (
        "named", "type_text", "alias_names", "current_salience", "state", "first_seen", "agent_id", "user_id",
        "channel", "account",
    )  # fmt: skip
    list_filter = (AccountFilter, EntityTypeFilter, *MemoryKindAdmin.list_filter[1:])
    long_columns = (*LONG_COLUMNS, "description", "properties")
    service_fields = ("name", "type", "aliases", "description", "properties", "salience")
    """Fields that the service keeps in step with the entity's names and with the text that is searched."""
    editable_fields = (*service_fields, "expires_at", "trust", "source", "metadata")
    detail_fields = ("first_seen", "user_id", "channel", *MemoryKindAdmin.detail_fields)
    archived_fields = ("named", "type_text", "alias_names", "description_text")
    actions = ("merge",)
    allow_add = False
    deletion_note = (
        "Their names, vectors and links are deleted too, and so are the entities that were merged into them. "
        "Facts about them stay."
    )

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is not None and not obj.archived:
            return super().get_fieldsets(request, obj)
        return (("Content", {"fields": self.archived_fields}), ("Details", {"fields": self.detail_fields}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # an archived entity is unarchived before it is edited, and a merged one is split off
        if obj is not None and not obj.archived:
            return self.detail_fields
        return (*self.detail_fields, *self.archived_fields, *self.editable_fields)

    named = column("Name", lambda entity: excerpt_of(entity.name, characters=MAX_ENTITY_NAME_CHARACTERS))
    type_text = text_column("Type", "type", empty="")
    alias_names = column("Aliases", lambda entity: excerpt_of(", ".join(map(str, entity.aliases))) or "-")
    description_text = text_column("Description", "description")
    first_seen = time_column("First seen", "event_time")

    @admin.display(description="State")
    def state(self, memory: Any) -> str:
        state: str = super().state(memory)
        return state if memory.merged_into_id is None else f"{state}, merged into another"

    def name_row(self, row: Any) -> str:
        return mark_invisible(row.name)

    def describe_row(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return facts and turns only if the user may look at them."""
        may_see_facts, may_read_turns = (request.user.has_perm(f"memory.view_{model}") for model in ("fact", "turn"))
        neighbours = read_neighbours(row)
        types = {neighbour.type for neighbour in neighbours}
        target = row.merged_into if row.merged_into_id else None
        return {
            "subtitle": excerpt_of(row.name),
            "neighbours": neighbours,
            "may_see_facts": may_see_facts,
            "facts": read_facts(row) if may_see_facts else [],
            "may_read_turns": may_read_turns,
            "quotes": read_mentions(row) if may_read_turns else [],
            "absorbed": read_absorbed(row),
            "merged_into": entity_link(target.pk, target.name, target.type) if target else None,
            "picture": render_entity(request, row, types, datetime.now(UTC)) if may_see_facts else None,
            "can_split": len(row.names) > 1 and not row.archived,
        }

    @admin.action(description="Merge selected entities…", permissions=["change"])
    def merge(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Ask which of the selected entities stays, then merge the others into it."""
        return merge_selected(self, request, list(queryset.defer(*self.long_columns).order_by("pk")[: MAX_MERGED + 1]))

    def correct_in_service(
        self, owner: Owner, memory_id: UUID, changes: dict[str, Any], *, version: int, now: datetime
    ) -> None:
        own, seen = EntityChanges(**changes), frozenset({version})
        change_entity(owner, memory_id, changes=own, expected=seen, embedded=NOT_YET_EMBEDDED, now=now)

    def remove_row(self, owner: Owner, row: Any) -> None:
        now = datetime.now(UTC)
        is_expired = row.expires_at is not None and row.expires_at <= now
        if row.archived or row.quarantined or is_expired:
            super().remove_row(owner, row)
        else:
            remove_entity(owner, row.pk, now=now)

    # each is removed with the names that stand for it
    delete_rows = BoundedAdmin.delete_rows
