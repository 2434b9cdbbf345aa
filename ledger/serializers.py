"""Request and response bodies of the ledger endpoints."""

from typing import Any

from rest_framework import serializers

from ledger.models import ITEM_KEY_LENGTH, VALUE_LENGTH
from ledger.store import DEFAULT_VALUE
from memory_project.http.serializers import ActingFields, Text

ALL_ITEMS = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "Everything injected into the conversation, item key to value.",
}


class Item(ActingFields):
    item_key = Text(
        max_length=ITEM_KEY_LENGTH, help_text="Key of the item. Convention: `skill:…`, `entity:…`, `artifact:…`."
    )


class MarkedItem(Item):
    value = Text(max_length=VALUE_LENGTH, default=DEFAULT_VALUE)


class CheckAnswer(serializers.Serializer[Any]):
    item_key = serializers.CharField()
    injected = serializers.BooleanField()
    value = serializers.CharField(
        allow_null=True, help_text="Value the item was marked with; null if it was not marked."
    )


class MarkAnswer(serializers.Serializer[Any]):
    item_key = serializers.CharField()
    value = serializers.CharField(help_text="Value stored in the ledger: that of the first mark.")
    first = serializers.BooleanField(help_text="True for exactly one caller: the one whose mark was stored.")


class EvictAnswer(serializers.Serializer[Any]):
    item_key = serializers.CharField()
    evicted = serializers.BooleanField(help_text="False if the item was not in the ledger.")
