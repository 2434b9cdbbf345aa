"""`/ledger/{conversation_id}`: what was injected into a conversation, by all of its agents."""

from rest_framework.request import Request
from rest_framework.response import Response

from ledger import store
from ledger.serializers import ALL_ITEMS, CheckAnswer, EvictAnswer, Item, MarkAnswer, MarkedItem
from memory_project.http.serializers import ActingFields
from memory_project.http.views import ServiceViewSet
from memory_project.redis import Place


class Ledgers(ServiceViewSet):
    """Never expires; ends with its conversation. One ledger for all agents: each is told what the others injected."""

    bodies = {"check": Item, "mark": MarkedItem, "evict": Item}
    queries = {"retrieve": ActingFields}
    answers = {"retrieve": ALL_ITEMS, "check": CheckAnswer, "mark": MarkAnswer, "evict": EvictAnswer}
    scopes = {"check": "read"}

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """Everything injected, as a plain object; empty for a conversation that nobody has heard of."""
        self.credential.acting_agent(self.query().get("agent_id", ""))
        return Response(store.get_all(self.place(conversation_id)))

    def check(self, request: Request, conversation_id: str) -> Response:
        """Has this item been injected?"""
        body = self.body()
        self.credential.acting_agent(body.get("agent_id", ""))
        value = store.check(self.place(conversation_id), body["item_key"])
        return Response({"item_key": body["item_key"], "injected": value is not None, "value": value})

    def mark(self, request: Request, conversation_id: str) -> Response:
        """Record an injection, and learn whether somebody else was first."""
        body = self.body()
        agent_id = self.credential.acting_agent(body.get("agent_id", ""))
        mark = store.mark(self.place(conversation_id), body["item_key"], body["value"], agent_id=agent_id)
        return Response({"item_key": body["item_key"], "value": mark.value, "first": mark.first})

    def evict(self, request: Request, conversation_id: str) -> Response:
        """Take an item out, so that it may be injected again."""
        body = self.body()
        agent_id = self.credential.acting_agent(body.get("agent_id", ""))
        evicted = store.evict(self.place(conversation_id), body["item_key"], agent_id=agent_id)
        return Response({"item_key": body["item_key"], "evicted": evicted})

    def place(self, conversation_id: str) -> Place:
        return Place(account_id=self.credential.account_id, conversation_id=conversation_id)
