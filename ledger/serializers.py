"""Shapes of the ledger's bodies and answers."""

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
    item_key = Text(max_length=ITEM_KEY_LENGTH, help_text="By convention `skill:…`, `entity:…`, `artifact:…`.")


class MarkedItem(Item):
    value = Text(max_length=VALUE_LENGTH, default=DEFAULT_VALUE)


class CheckAnswer(serializers.Serializer[Any]):
    item_key = serializers.CharField()
    injected = serializers.BooleanField()
    value = serializers.CharField(allow_null=True, help_text="What it was marked with; null when it was not.")


class MarkAnswer(serializers.Serializer[Any]):
    item_key = serializers.CharField()
    value = serializers.CharField(help_text="The value that stays: the first.")
    first = serializers.BooleanField(help_text="Of all who mark it, exactly one is told true.")


class EvictAnswer(serializers.Serializer[Any]):
    item_key = serializers.CharField()
    evicted = serializers.BooleanField(help_text="False where it was not in.")
