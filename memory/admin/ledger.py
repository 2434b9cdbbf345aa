"""The injection ledger of a conversation: what was injected, to mark and to evict. Its journal has its own list."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from ledger import store
from ledger.models import ITEM_KEY_LENGTH, VALUE_LENGTH
from memory.admin.base import staff_owner
from memory.admin.live import Desk, LivePages
from memory.models import LedgerAccount
from memory.services.working_memory.staff_edits import evict_item, mark_item
from memory_project.redis import Place


class ItemForm(forms.Form):
    item_key = forms.CharField(max_length=ITEM_KEY_LENGTH, strip=False, label="Item key")


class MarkForm(ItemForm):
    value = forms.CharField(max_length=VALUE_LENGTH, strip=False, initial=store.DEFAULT_VALUE)


def read_rows(place: Place) -> list[tuple[str, str]]:
    """Item keys and values, by key."""
    return sorted(store.get_all(place).items())


def mark(request: HttpRequest, place: Place, data: dict[str, Any]) -> str:
    owner = staff_owner(request, place.account_id)
    marked = mark_item(owner, place.conversation_id, item_key=data["item_key"], value=data["value"])
    return f"Marked {data['item_key']}." if marked.first else f"It was marked before, as {marked.value}."


def evict(request: HttpRequest, place: Place, data: dict[str, Any]) -> str:
    owner = staff_owner(request, place.account_id)
    was_in = evict_item(owner, place.conversation_id, item_key=data["item_key"])
    return f"Evicted {data['item_key']}: it may be injected again." if was_in else "It was not in the ledger."


@admin.register(LedgerAccount)
class LedgerPages(LivePages):
    desk = Desk(
        scan=store.scan_conversations,
        rows=read_rows,
        row_name=lambda row: row[0],
        forms={"add": MarkForm, "evict": ItemForm},
        deeds={"add": mark, "evict": evict},
    )
