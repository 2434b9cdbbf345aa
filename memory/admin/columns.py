"""List columns and read-only fields that many pages share, and links to pages.

Each `…_column` returns a method for an admin class. Links name models in lower case, as in Django's URL names.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.admin.text import excerpt_of, mark_invisible, render_json


def change_url(model: str, row_id: object) -> str:
    return reverse(f"admin:memory_{model}_change", args=[row_id])


def why_url(memory_id: object) -> str:
    """Return the address of the page "Why do you know this?" of a memory of any kind."""
    return reverse("admin:memory_memory_why", args=[memory_id])


def list_url(model: str, **query: object) -> str:
    """Return the address of a model's list, filtered by `query`."""
    address = reverse(f"admin:memory_{model}_changelist")
    return f"{address}?{urlencode({name: str(value) for name, value in query.items()})}" if query else address


def turn_url(conversation_row_id: object, index: int) -> str:
    """Return the address of a turn within the transcript of its conversation."""
    return f"{change_url('conversation', conversation_row_id)}?turn={index}#turn-{index}"


def row_link(model: str, row_id: object, text: object) -> SafeString | str:
    """Link to a row's page. Return a dash if `row_id` is None."""
    return "-" if row_id is None else format_html('<a href="{}">{}</a>', change_url(model, row_id), text)


def list_link(model: str, text: object, **query: Any) -> SafeString:
    return format_html('<a href="{}">{}</a>', list_url(model, **query), text)


Column = Callable[..., Any]

DAY = "%Y-%m-%d"
MINUTE = "%Y-%m-%d %H:%M"
SECOND = "%Y-%m-%d %H:%M:%S"


def column(label: str, value: Callable[[Any], Any], *, ordering: str | None = None) -> Column:
    """Return a column that shows `value(row)`."""

    @admin.display(description=label, ordering=ordering)
    def show(model_admin: Any, row: Any) -> Any:
        return value(row)

    return show


def text_column(label: str, attribute: str, *, empty: str = "-", ordering: str | None = None) -> Column:
    """Return a column that shows a text in full, with invisible characters marked."""
    return column(label, lambda row: mark_invisible(getattr(row, attribute)) or empty, ordering=ordering)


def excerpt_column(label: str, attribute: str, *, empty: str = "-", ordering: str | None = None) -> Column:
    """Return a column that shows the beginning of a text on one line."""
    return column(label, lambda row: excerpt_of(getattr(row, attribute, None) or "") or empty, ordering=ordering)


def json_column(label: str, attribute: str) -> Column:
    """Return a column that shows a JSON value as an indented block."""
    return column(label, lambda row: render_json(getattr(row, attribute)))


def time_column(label: str, attribute: str, *, empty: str = "-", pattern: str = MINUTE) -> Column:
    """Return a column that shows a time."""

    def format_time(row: Any) -> str:
        moment: datetime | None = getattr(row, attribute)
        return empty if moment is None else moment.strftime(pattern)

    return column(label, format_time)


def link_column(label: str, model: str, attribute: str, text: str = "") -> Column:
    """Return a column that links to the page of the row whose id the attribute holds. The default text is the id."""
    return column(label, lambda row: row_link(model, getattr(row, attribute), text or getattr(row, attribute)))


def agent_column(label: str = "Agent") -> Column:
    """Return a column that shows the agent. A row without an agent belongs to the account itself."""
    return text_column(label, "agent_id", empty="the account")
