"""`/context`: the memory node, everything an agent should see before it answers, as one system message."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.episodic import own_vector
from memory.api.fields import OwnerFields, Prose
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.retrieval.episodes import EpisodeHit
from memory.services.context import ContextRequest, gather_context
from memory.services.searches import LONGEST_QUERY
from memory_project.http.serializers import ExternalId, Flag


class ContextBody(OwnerFields):
    conversation_id = ExternalId()
    query = Prose(
        required=False,
        max_length=LONGEST_QUERY,
        help_text="The latest message; where it is left out, the latest of the user in the conversation.",
    )
    query_embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")
    suppress_injected = Flag(default=False, help_text="Leave out what the ledger holds.")
    mark_injected = Flag(default=False, help_text="Enter the items into the ledger (scope write).")


class ContextItem(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    kind = serializers.CharField()
    conversation_id = serializers.CharField()
    similarity = serializers.FloatField(allow_null=True)


class ContextAnswer(serializers.Serializer[Any]):
    # the contract's name, and a serializer's attribute too
    context = serializers.CharField(help_text="A system message, to stand first; may be empty.")  # type: ignore[assignment]
    items = ContextItem(many=True)
    tokens = serializers.IntegerField(help_text="An estimate.")
    degraded = serializers.ListField(child=serializers.CharField())


def represent_item(hit: EpisodeHit) -> dict[str, Any]:
    return {
        "id": str(hit.id),
        "item_key": hit.item_key,
        "kind": "episode",
        "conversation_id": hit.conversation_id,
        "similarity": hit.similarity,
    }


class Contexts(OwnerViewSet):
    """Reads all three layers; writes nothing unless told to mark."""

    bodies = {"gather": ContextBody}
    answers = {"gather": ContextAnswer}
    scopes = {"gather": "read"}
    rate_class = "retrieval"

    def gather(self, request: Request) -> Response:
        """Working memory and the most similar past conversations, laid out for the model.

        422 without a query, a vector, or anything that a user has said in the conversation.
        """
        body = self.body()
        if body["mark_injected"]:
            self.credential.require("write")
        owner = self.agent_owner(body)
        asked = ContextRequest(
            conversation_id=body["conversation_id"],
            query=body.get("query", ""),
            own=own_vector(owner, body, "query_embedding"),
            suppress_injected=body["suppress_injected"],
            mark_injected=body["mark_injected"],
        )
        found = gather_context(owner, asked, now=timezone.now())
        items = [represent_item(hit) for hit in found.items]
        return Response(
            {"context": found.context, "items": items, "tokens": found.tokens, "degraded": list(found.degraded)}
        )
