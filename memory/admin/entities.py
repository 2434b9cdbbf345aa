"""Entities: as memories are, with what they are related to, what is claimed of them, and a picture of it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from memory.admin.base import describe_deletion, staff_owner
from memory.admin.contexts import NameField
from memory.admin.deeds import DeedPages
from memory.admin.entity_actions import MOST_MERGED, merge_selected, split_view
from memory.admin.entity_pages import (
    draw_neighbourhood,
    name_entity,
    read_absorbed,
    read_facts,
    read_mentions,
    read_neighbours,
)
from memory.admin.episodes import NOT_YET, MeaningChangeList
from memory.admin.fields import JSONObjectField, JSONTextsField, PlainTextField
from memory.admin.meanings import MeaningPages
from memory.admin.memories import LONG_COLUMNS, MemoryForm, MemoryPages
from memory.admin.text import mark_invisible, shorten
from memory.models import Entity
from memory.models.entities import LONGEST_NAME, LONGEST_TYPE
from memory.retrieval.entities import search_entities
from memory.services.entities.change import EntityChanges, correct_entity, remove_entity
from memory.services.memories.correct import correct_memory
from memory_project.admin_lists import AccountFilter

SAID = ("name", "type", "aliases", "description", "properties", "salience")
"""What a service keeps in step with the names that stand for it, and with what is searched."""


ONE_LINE = {"class": "vTextField", "dir": "auto"}


class EntityChangeList(MeaningChangeList):
    search = staticmethod(search_entities)


class EntityForm(MemoryForm):
    """What is searched follows from names and description; whose it is stays."""

    text = None  # type: ignore[assignment]
    user_id = None  # type: ignore[assignment]
    channel = None  # type: ignore[assignment]
    name = NameField(max_length=LONGEST_NAME, strip=False, widget=forms.TextInput(attrs=ONE_LINE))
    type = forms.CharField(max_length=LONGEST_TYPE, help_text="In lower case.")
    aliases = JSONTextsField(required=False, help_text="Its other names, as a list.")
    description = PlainTextField(required=False, widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}))
    properties = JSONObjectField(required=False)
    salience = forms.FloatField(min_value=0, max_value=1)


class TypeFilter(admin.SimpleListFilter):
    """Those of one type: a link on a page, since types are whatever was said."""

    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        chosen = request.GET.get(self.parameter_name, "")
        return [(chosen, shorten(chosen))] if chosen else []

    def has_output(self) -> bool:
        return self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(type=self.value()) if self.value() else queryset


@admin.register(Entity)
class EntityAdmin(MeaningPages, DeedPages, MemoryPages):
    """Met by agents and extraction. Two that are one are merged, one that is two is split, and either is undone."""

    form = EntityForm
    change_form_template = "admin/memory/entity/change_form.html"
    list_display = (
        "named", "of_type", "also", "told_salience", "state", "first_seen", "agent_id", "user_id", "channel",
        "account",
    )  # fmt: skip
    list_filter = (AccountFilter, TypeFilter, *MemoryPages.list_filter[1:])
    long_columns = (*LONG_COLUMNS, "description", "properties")
    correctable = (*SAID, "expires_at", "trust", "source", "metadata")
    shown = ("first_seen", "user_id", "channel", *MemoryPages.shown)
    past = ("named", "of_type", "also", "told_description")
    actions = ("merge", "embed")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return EntityChangeList

    def get_urls(self) -> list[URLPattern]:
        view: Callable[..., HttpResponse] = self.admin_site.admin_view(self.split_view)
        return [path("<path:object_id>/split/", view, name="memory_entity_split"), *super().get_urls()]

    def get_fieldsets(self, request: HttpRequest, obj: Any | None = None) -> Any:
        if obj is not None and not obj.archived:
            return super().get_fieldsets(request, obj)
        return (("What it said", {"fields": self.past}), ("What it is", {"fields": self.shown}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any | None = None) -> tuple[str, ...]:
        # one that is archived is unarchived first, and one that was merged is split off
        return self.shown if obj is not None and not obj.archived else (*self.shown, *self.past, *self.correctable)

    @admin.display(description="Name")
    def named(self, entity: Entity) -> str:
        return shorten(entity.name, characters=LONGEST_NAME)

    @admin.display(description="Type")
    def of_type(self, entity: Entity) -> str:
        return mark_invisible(entity.type)

    @admin.display(description="Aliases")
    def also(self, entity: Entity) -> str:
        return shorten(", ".join(map(str, entity.aliases))) or "-"

    @admin.display(description="Description")
    def told_description(self, entity: Entity) -> str:
        return mark_invisible(entity.description) or "-"

    @admin.display(description="First seen")
    def first_seen(self, entity: Entity) -> str:
        return f"{entity.event_time:%Y-%m-%d %H:%M}"

    @admin.display(description="State")
    def state(self, memory: Any) -> str:
        told: str = super().state(memory)
        return told if memory.merged_into_id is None else f"{told}, merged into another"

    def heading(self, row: Any) -> str:
        return shorten(row.name)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        also = "with their names, vectors and links, and those that were merged into them; facts about them stay"
        return describe_deletion((mark_invisible(entity.name) for entity in objs), also)

    def describe(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Facts and turns only for who may look at them."""
        may_see_facts, may_read_turns = (request.user.has_perm(f"memory.view_{model}") for model in ("fact", "turn"))
        neighbours = read_neighbours(row)
        types = {neighbour.type for neighbour in neighbours}
        now = datetime.now(UTC)
        return {
            "neighbours": neighbours,
            "may_see_facts": may_see_facts,
            "facts": read_facts(row) if may_see_facts else [],
            "may_read_turns": may_read_turns,
            "quotes": read_mentions(row) if may_read_turns else [],
            "absorbed": read_absorbed(row),
            "merged_into": name_entity(row.merged_into) if row.merged_into_id else None,
            "drawing": draw_neighbourhood(request, row, types, now) if may_see_facts else None,
            "can_split": len(row.names) > 1 and not row.archived,
        }

    def split_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return split_view(self, request, object_id)

    @admin.action(description="Merge selected entities…", permissions=["change"])
    def merge(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Asks first which one stays."""
        return merge_selected(self, request, list(queryset.defer(*self.long_columns).order_by("pk")[: MOST_MERGED + 1]))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given = {name: form.cleaned_data[name] for name in form.changed_data if name in self.correctable}
        said = {name: value for name, value in given.items() if name in SAID}
        others = {name: value for name, value in given.items() if name not in SAID}
        owner, now = staff_owner(request, obj.account_id), datetime.now(UTC)
        version = form.cleaned_data["seen_version"] or 0
        if others:
            correct_memory(owner, obj.pk, changes=others, version=version, now=now)
            version += 1
        if said:
            new_type = said.pop("type", None)
            changes = EntityChanges(**said)
            correct_entity(owner, obj.pk, changes=changes, type=new_type, version=version, embedded=NOT_YET, now=now)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        if obj.archived or obj.quarantined or is_over(obj):
            super().delete_model(request, obj)
        else:
            remove_entity(staff_owner(request, obj.account_id), obj.pk, now=datetime.now(UTC))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for entity in queryset.defer(*self.long_columns):
            self.delete_model(request, entity)


def is_over(entity: Entity) -> bool:
    return entity.expires_at is not None and entity.expires_at <= datetime.now(UTC)
