"""Who is let into what agents share, to edit: a table of agents, what each may do, and whether everybody may read.

A form has it as `access_control = GrantsField()` and calls `know_agents` with its row's account. What comes out is the
documented JSON, checked; pages for those who may only look show it with `show_grants`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from memory.admin.fields import ExternalIdField, JSONValueField
from memory.admin.text import mark_invisible
from memory.errors import Unprocessable
from memory.models import AccessControl, Agent

MOST_ROWS = 100
"""Agents in the table; a form takes only so many fields, so that more of them are edited as JSON."""

NEW_ROWS = 3
MOST_SUGGESTED = 200

READS_BY_ITSELF = "itself"
"""What the box "may read" of an agent sends that stands in the list `read`, not in `write` alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """A row of the table as it was typed. `read` is READS_BY_ITSELF, "on", or empty for no."""

    agent_id: str = ""
    read: str = ""
    write: bool = False
    is_removed: bool = False
    is_new: bool = True
    is_known: bool = True
    """Whether the agent has ever written."""

    @property
    def shown_id(self) -> str:
        return mark_invisible(self.agent_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedGrants:
    """The table as it was typed."""

    rows: Sequence[GrantRow]
    public_read: bool


def rows_of(control: AccessControl) -> list[GrantRow]:
    return [
        GrantRow(
            agent_id=agent_id,
            read=READS_BY_ITSELF if agent_id in control.read else "on",
            write=agent_id in control.write,
            is_new=False,
        )
        for agent_id in sorted({*control.read, *control.write})
    ]


class GrantsWidget(forms.Widget):
    """The table, and empty rows for more agents; without any script."""

    use_fieldset = True
    account_id: UUID | None = None

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        if isinstance(value, str):
            context: dict[str, Any] = {"json": value}
        else:
            context = self.describe(value)
        return mark_safe(render_to_string("admin/memory/grants/editor.html", {"name": name, **context}))  # noqa: S308

    def describe(self, typed: TypedGrants) -> dict[str, Any]:
        kept = with_known(self.account_id, [row for row in typed.rows if row.agent_id or not row.is_new])
        rows = [*kept, *[GrantRow() for _ in range(NEW_ROWS)]]
        return {"rows": list(enumerate(rows)), "public_read": typed.public_read, "agents": self.suggest()}

    def suggest(self) -> list[str]:
        """Agents to choose from, as far as they are not too many; any other is typed."""
        if self.account_id is None:
            return []
        agents = Agent.objects.in_account(self.account_id).order_by("agent_id")
        return list(agents.values_list("agent_id", flat=True)[:MOST_SUGGESTED])

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Any:
        if f"{name}-json" in data:
            return data[f"{name}-json"]
        if f"{name}-rows" not in data:
            return None
        numbers = range(read_count(data[f"{name}-rows"]))
        rows = [read_row(data, f"{name}-{number}") for number in numbers if f"{name}-{number}-agent" in data]
        return TypedGrants(rows=rows, public_read=f"{name}-public" in data)

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return self.value_from_datadict(data, files, name) is None

    def id_for_label(self, id_: str | None) -> str:
        return ""


def read_count(text: str) -> int:
    """How many rows were sent; no more than fit into a form, whatever it says."""
    return min(int(text), 2 * MOST_ROWS) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def read_row(data: Mapping[str, Any], name: str) -> GrantRow:
    return GrantRow(
        agent_id=data[f"{name}-agent"],
        read=data.get(f"{name}-read", ""),
        write=f"{name}-write" in data,
        is_removed=f"{name}-remove" in data,
        is_new=f"{name}-old" not in data,
    )


def with_known(account_id: UUID | None, rows: Sequence[GrantRow]) -> list[GrantRow]:
    """The rows, and of each agent whether the account has it."""
    named = [row.agent_id for row in rows if "\x00" not in row.agent_id]
    if account_id is None or not named:
        return list(rows)
    agents = Agent.objects.in_account(account_id).filter(agent_id__in=named)
    known = set(agents.values_list("agent_id", flat=True))
    return [replace(row, is_known=row.agent_id in known) for row in rows]


class GrantsField(forms.Field):
    """The documented JSON of access control, edited as a table. A form without the table leaves all as it is."""

    widget = GrantsWidget

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "label": "Who is let in", **options})

    def know_agents(self, account_id: UUID | None) -> None:
        """Offer the agents of this account."""
        self.widget.account_id = account_id

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, (TypedGrants, str)):
            return value
        control = AccessControl.parse(value or {})
        rows = rows_of(control)
        if len(rows) > MOST_ROWS:
            return JSONValueField().prepare_value(control.model_dump())
        return TypedGrants(rows=rows, public_read=control.public_read)

    def clean(self, value: Any) -> dict[str, Any]:
        if value is None:
            return AccessControl().model_dump()
        stated = JSONValueField().clean(value) if isinstance(value, str) else read_lists(value)
        try:
            return AccessControl.parse(stated).model_dump()
        except Unprocessable as err:
            raise ValidationError(f"{str(err)[:1].upper()}{str(err)[1:]}.") from err

    def has_changed(self, initial: Any, data: Any) -> bool:
        if data is None:
            return False
        try:
            return self.clean(data) != AccessControl.parse(initial or {}).model_dump()
        except ValidationError:
            return True


def read_lists(typed: TypedGrants) -> dict[str, Any]:
    """The table as the documented lists. ValidationError for rows that contradict themselves."""
    rows = [row for row in typed.rows if row.agent_id and not row.is_removed]
    errors = [error for row in rows for error in find_errors(row)]
    if len({row.agent_id for row in rows}) < len(rows):
        errors.append("An agent has one row.")
    if errors:
        raise ValidationError(errors)
    return {
        # who may write may read: a writer stands in both lists only where it stood in `read` before
        "read": [row.agent_id for row in rows if row.read and (not row.write or row.read == READS_BY_ITSELF)],
        "write": [row.agent_id for row in rows if row.write],
        "public_read": typed.public_read,
    }


def find_errors(row: GrantRow) -> list[str]:
    try:
        ExternalIdField().clean(row.agent_id)
    except ValidationError as err:
        return [f"An agent's id: {message}" for message in err.messages]
    if row.is_new and not row.read and not row.write:
        return [f"Say what {row.shown_id} may do."]
    if not row.is_new and row.write and not row.read:
        return [f"Who may write may read: take both from {row.shown_id}, or neither."]
    return []


def show_grants(account_id: UUID, access_control: Any) -> SafeString:
    """For those who may only look."""
    control = AccessControl.parse(access_control)
    rows = rows_of(control)
    context = {
        "rows": with_known(account_id, rows[:MOST_ROWS]),
        "left_out": len(rows[MOST_ROWS:]),
        "public_read": control.public_read,
    }
    return mark_safe(render_to_string("admin/memory/grants/shown.html", context))  # noqa: S308  a template's own
