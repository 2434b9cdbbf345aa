"""Working memory of a conversation: its fields with their writers, to correct as JSON, to delete one by one or all."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from memory.admin.base import staff_owner
from memory.admin.fields import ExternalIdField, JSONValueField
from memory.admin.live import Desk, LivePages
from memory.errors import TooLarge
from memory.models import WorkingMemoryAccount
from memory.owner import Owner
from memory.services.working_memory.staff_edits import clear_working_memory, correct_field, delete_field
from memory.tiers.base import NAME_LENGTH, from_json
from memory.tiers.working import StoredField, scan_conversations, stored_fields
from memory_project.redis import Place


class NameForm(forms.Form):
    """Which field: its name and its writer (nobody: the account itself)."""

    agent = ExternalIdField(required=False, label="Agent")
    name = forms.CharField(max_length=NAME_LENGTH, strip=False)


class FieldForm(NameForm):
    value = JSONValueField(label="Value as JSON", widget=forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}))


class NothingForm(forms.Form):
    """An action that needs no more than its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A stored field and the form that corrects it."""

    field: StoredField
    form: FieldForm


def read_rows(place: Place) -> list[FieldRow]:
    return [FieldRow(field=field, form=form_of(field)) for field in stored_fields(place)]


def form_of(field: StoredField) -> FieldForm:
    initial = {"agent": field.agent_id, "name": field.name, "value": from_json(field.json)}
    # many on one page: ids of labels and boxes must differ
    return FieldForm(initial=initial, auto_id=f"id_{field.agent_id}_{field.name}_%s")


def owner_at(request: HttpRequest, place: Place, data: dict[str, Any]) -> Owner:
    """Staff write as the field's writer."""
    return staff_owner(request, place.account_id, agent_id=data["agent"])


def save(request: HttpRequest, place: Place, data: dict[str, Any]) -> str:
    owner = owner_at(request, place, data)
    try:
        correct_field(owner, place.conversation_id, name=data["name"], value=data["value"])
    except TooLarge as err:
        if not err.facts["stored"]:
            raise
        return f"Saved {data['name']}, but {err}."
    return f"Saved {data['name']}."


def delete(request: HttpRequest, place: Place, data: dict[str, Any]) -> str:
    delete_field(owner_at(request, place, data), place.conversation_id, name=data["name"])
    return f"Deleted {data['name']}."


def clear(request: HttpRequest, place: Place, data: dict[str, Any]) -> str:
    clear_working_memory(staff_owner(request, place.account_id), place.conversation_id)
    return "Deleted everything."


@admin.register(WorkingMemoryAccount)
class WorkingMemoryPages(LivePages):
    desk = Desk(
        scan=scan_conversations,
        rows=read_rows,
        row_name=lambda row: row.field.name,
        forms={"add": FieldForm, "save": FieldForm, "delete": NameForm, "clear": NothingForm},
        deeds={"add": save, "save": save, "delete": delete, "clear": clear},
    )
