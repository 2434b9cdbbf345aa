"""Addresses of the admin's pages and what its forms send."""

from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory.admin.grants import NEW_ROWS, GrantRow, TypedGrants


def list_url(model: str, *, app: str = "memory", **query: object) -> str:
    address = reverse(f"admin:{app}_{model}_changelist")
    return f"{address}?{urlencode(query)}" if query else address


def add_url(model: str) -> str:
    return reverse(f"admin:memory_{model}_add")


def page_url(model: str, row_id: object, page: str = "change", *, app: str = "memory") -> str:
    return reverse(f"admin:{app}_{model}_{page}", args=[row_id])


def form_values(response: Any) -> dict[str, Any]:
    """Return what a browser would send of the form on a page if nothing is edited."""
    admin_form = response.context["adminform"].form
    values: dict[str, Any] = {}
    for bound in admin_form:
        data = bound.value()
        for name, value in widget_values(bound, data).items():
            if value is not None:
                values[name] = value
    return values


def widget_values(bound: Any, data: Any) -> dict[str, Any]:
    """Return the form values of a field by name. A widget of several boxes sends each under a name of its own."""
    name, widget = bound.html_name, bound.field.widget
    if isinstance(data, TypedGrants):
        return grant_values(name, data)
    if hasattr(widget, "widgets_names"):
        # of a form that was refused it is what was typed
        parts = data if isinstance(data, list) else widget.decompress(data)
        return {
            f"{name}{suffix}": "" if part is None else str(part)
            for suffix, part in zip(widget.widgets_names, parts, strict=True)
        }
    if isinstance(data, bool):
        return {name: "on"} if data else {}
    return {name: "" if data is None else data}


def grant_values(name: str, typed: TypedGrants) -> dict[str, Any]:
    """Return the form values of the table of grants, with its empty rows."""
    rows = [*typed.rows, *[GrantRow() for _ in range(NEW_ROWS)]]
    values: dict[str, Any] = {f"{name}-rows": len(rows)}
    for number, row in enumerate(rows):
        boxes = {"read": row.read, "write": row.write, "remove": row.is_removed, "old": not row.is_new}
        values[f"{name}-{number}-agent"] = row.agent_id
        values |= {f"{name}-{number}-{box}": value for box, value in boxes.items() if value}
    return values | ({f"{name}-public": "on"} if typed.public_read else {})


def choose(client: Client, url: str, action: str, *row_ids: object, follow: bool = True, **more: Any) -> Any:
    """Run an action on selected rows of a list, and confirm it with a reason."""
    confirmed = {"post": "yes", "reason": "a test"}
    data = {"action": action, "_selected_action": [str(row_id) for row_id in row_ids], **confirmed, **more}
    return client.post(url, data, follow=follow)


def queries_of(client: Client, url: str) -> int:
    """Count the queries of a page in a process that has cached its content types."""
    assert client.get(url).status_code == 200
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200
    return len(captured)


def shown(response: Any) -> str:
    return str(response.content.decode())
