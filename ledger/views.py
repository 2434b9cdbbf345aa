"""Endpoints of `/ledger/{conversation_id}`: the items that any agent injected into a conversation."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ledger import store
from ledger.models import ITEM_KEY_LENGTH, VALUE_LENGTH
from ledger.store import DEFAULT_VALUE
from memory_project.http.serializers import ActingFields, Text
from memory_project.http.views import ServiceViewSet
from memory_project.redis import ConversationRef

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


class Ledgers(ServiceViewSet):
    """The ledger of a conversation, shared by all its agents. It never expires and ends with the conversation."""

    operation_ids = {"check": "check_ledger_item", "mark": "mark_ledger_item", "evict": "evict_ledger_item"}
    for_users = True
    opens_conversations = False
    bodies = {"check": Item, "mark": MarkedItem, "evict": Item}
    queries = {"retrieve": ActingFields}
    answers = {"retrieve": ALL_ITEMS, "check": CheckAnswer, "mark": MarkAnswer, "evict": EvictAnswer}
    scopes = {"check": "read"}

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """Return every injected item as an object of item keys and values; empty for an unknown conversation."""
        self.credential.acting_agent(self.query().get("agent_id", ""))
        return Response(store.get_all(self.conversation_ref(conversation_id)))

    def check(self, request: Request, conversation_id: str) -> Response:
        """Return whether an item has been injected."""
        body = self.body()
        self.credential.acting_agent(body.get("agent_id", ""))
        value = store.check(self.conversation_ref(conversation_id), body["item_key"])
        return Response({"item_key": body["item_key"], "injected": value is not None, "value": value})

    def mark(self, request: Request, conversation_id: str) -> Response:
        """Record an injection and return whether this call was the first to do so."""
        body = self.body()
        agent_id = self.credential.acting_agent(body.get("agent_id", ""))
        mark = store.mark(self.conversation_ref(conversation_id), body["item_key"], body["value"], agent_id=agent_id)
        return Response({"item_key": body["item_key"], "value": mark.value, "first": mark.first})

    def evict(self, request: Request, conversation_id: str) -> Response:
        """Remove an item, so that it may be injected again."""
        body = self.body()
        agent_id = self.credential.acting_agent(body.get("agent_id", ""))
        evicted = store.evict(self.conversation_ref(conversation_id), body["item_key"], agent_id=agent_id)
        return Response({"item_key": body["item_key"], "evicted": evicted})

    def conversation_ref(self, conversation_id: str) -> ConversationRef:
        return ConversationRef(account_id=self.credential.account_id, conversation_id=conversation_id)
