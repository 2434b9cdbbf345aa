"""Addresses of the admin's pages and links to them. Models are named in lower case, as in Django's URL names."""

from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString


def change_url(model: str, row_id: object) -> str:
    return reverse(f"admin:memory_{model}_change", args=[row_id])


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
