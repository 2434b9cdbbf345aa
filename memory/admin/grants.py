"""A form field for access control: a table of agents, what each may do, and whether every agent may read.

A form of rows that have it derives from `GrantsForm`. Its value is the documented JSON, validated. Pages for users who
may only look show it with `render_grants`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from memory.admin.base import read_number
from memory.admin.fields import ExternalIdField, JSONValueField
from memory.admin.text import error_sentence, mark_invisible
from memory.errors import Unprocessable
from memory.models import AccessControl, Agent

MAX_GRANT_ROWS = 100
"""Agents in the table. A form takes only so many fields, so more agents are edited as JSON."""

NEW_ROWS = 3
MAX_SUGGESTED = 200

LISTED_READER = "itself"
"""The value that the box "may read" sends for an agent in the list `read`, and not only in the list `write`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """A row of the table as it was typed. `read` is LISTED_READER, "on", or "" for no.

    `is_known` if the agent has written before.
    """

    agent_id: str = ""
    read: str = ""
    write: bool = False
    is_removed: bool = False
    is_new: bool = True
    is_known: bool = True

    @property
    def shown_id(self) -> str:
        return mark_invisible(self.agent_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedGrants:
    """The table of grants as it was typed."""

    rows: Sequence[GrantRow]
    public_read: bool


def grant_rows(control: AccessControl) -> list[GrantRow]:
    return [
        GrantRow(
            agent_id=agent_id,
            read=LISTED_READER if agent_id in control.read else "on",
            write=agent_id in control.write,
            is_new=False,
        )
        for agent_id in sorted({*control.read, *control.write})
    ]


class GrantsWidget(forms.Widget):
    """The table with empty rows for more agents. It needs no script."""

    use_fieldset = True
    account_id: UUID | None = None

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        context = {"json": value} if isinstance(value, str) else self.table_context(value)
        return mark_safe(render_to_string("admin/memory/grants/editor.html", {"name": name, **context}))  # noqa: S308

    def table_context(self, typed: TypedGrants) -> dict[str, Any]:
        kept = mark_known(self.account_id, [row for row in typed.rows if row.agent_id or not row.is_new])
        rows = [*kept, *[GrantRow() for _ in range(NEW_ROWS)]]
        return {"rows": list(enumerate(rows)), "public_read": typed.public_read, "agents": self.suggest_agents()}

    def suggest_agents(self) -> list[str]:
        """Return the agents to choose from, up to MAX_SUGGESTED. Any other can be typed."""
        if self.account_id is None:
            return []
        agents = Agent.objects.in_account(self.account_id).order_by("agent_id")
        return list(agents.values_list("agent_id", flat=True)[:MAX_SUGGESTED])

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Any:
        if f"{name}-json" in data:
            return data[f"{name}-json"]
        if f"{name}-rows" not in data:
            return None
        # no more rows than fit into a form, whatever was sent
        numbers = range(min(read_number(data[f"{name}-rows"]) or 0, 2 * MAX_GRANT_ROWS))
        rows = [read_grant_row(data, f"{name}-{number}") for number in numbers if f"{name}-{number}-agent" in data]
        return TypedGrants(rows=rows, public_read=f"{name}-public" in data)

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return self.value_from_datadict(data, files, name) is None

    def id_for_label(self, id_: str | None) -> str:
        return ""


def read_grant_row(data: Mapping[str, Any], name: str) -> GrantRow:
    return GrantRow(
        agent_id=data[f"{name}-agent"],
        read=data.get(f"{name}-read", ""),
        write=f"{name}-write" in data,
        is_removed=f"{name}-remove" in data,
        is_new=f"{name}-old" not in data,
    )


def mark_known(account_id: UUID | None, rows: Sequence[GrantRow]) -> list[GrantRow]:
    """Set `is_known` of the rows."""
    named = [row.agent_id for row in rows if "\x00" not in row.agent_id]
    if account_id is None or not named:
        return list(rows)
    agents = Agent.objects.in_account(account_id).filter(agent_id__in=named)
    known = set(agents.values_list("agent_id", flat=True))
    return [replace(row, is_known=row.agent_id in known) for row in rows]


class GrantsField(forms.Field):
    """The documented JSON of access control, edited as a table. A form without the table changes nothing."""

    widget = GrantsWidget

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "label": "Access", **options})

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, (TypedGrants, str)):
            return value
        control = AccessControl.parse(value or {})
        rows = grant_rows(control)
        if len(rows) > MAX_GRANT_ROWS:
            return JSONValueField().prepare_value(control.model_dump())
        return TypedGrants(rows=rows, public_read=control.public_read)

    def clean(self, value: Any) -> dict[str, Any]:
        if value is None:
            return AccessControl().model_dump()
        stated = JSONValueField().clean(value) if isinstance(value, str) else access_lists(value)
        try:
            return AccessControl.parse(stated).model_dump()
        except Unprocessable as err:
            raise ValidationError(error_sentence(err)) from err

    def has_changed(self, initial: Any, data: Any) -> bool:
        if data is None:
            return False
        try:
            return self.clean(data) != AccessControl.parse(initial or {}).model_dump()
        except ValidationError:
            return True


class GrantsForm(forms.ModelForm):  # type: ignore[type-arg]
    """Base of the forms of rows with access control. It suggests the agents of the row's account."""

    access_control = GrantsField()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        grants = self.fields.get("access_control")
        if isinstance(grants, GrantsField):
            grants.widget.account_id = self.instance.account_id


def access_lists(typed: TypedGrants) -> dict[str, Any]:
    """Return the table as the documented JSON. Raise ValidationError for rows that contradict each other."""
    rows = [row for row in typed.rows if row.agent_id and not row.is_removed]
    errors = [error for row in rows for error in grant_errors(row)]
    if len({row.agent_id for row in rows}) < len(rows):
        errors.append("Each agent may have only one row.")
    if errors:
        raise ValidationError(errors)
    return {
        # writers may read, so a writer is in both lists only if it was in `read` before
        "read": [row.agent_id for row in rows if row.read and (not row.write or row.read == LISTED_READER)],
        "write": [row.agent_id for row in rows if row.write],
        "public_read": typed.public_read,
    }


def grant_errors(row: GrantRow) -> list[str]:
    try:
        ExternalIdField().clean(row.agent_id)
    except ValidationError as err:
        return [f"Agent id: {message}" for message in err.messages]
    if row.is_new and not row.read and not row.write:
        return [f"Choose what {row.shown_id} may do."]
    if not row.is_new and row.write and not row.read:
        return [f"An agent that may write may also read. Remove both permissions of {row.shown_id}, or none."]
    return []


def render_grants(account_id: UUID, access_control: Any) -> SafeString:
    """Render the table for users who may only look at it."""
    control = AccessControl.parse(access_control)
    rows = grant_rows(control)
    context = {
        "rows": mark_known(account_id, rows[:MAX_GRANT_ROWS]),
        "left_out": len(rows[MAX_GRANT_ROWS:]),
        "public_read": control.public_read,
    }
    return mark_safe(render_to_string("admin/memory/grants/shown.html", context))  # noqa: S308  a template's own
