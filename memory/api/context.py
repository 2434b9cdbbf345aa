"""`/context`: the memory node, everything an agent should see before it answers, as one system message."""

from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.episodic import MAX_TOP_K
from memory.api.fields import Prose
from memory.api.recall_fields import MOST_TOKENS, RecallFields, recall_request
from memory.api.views import ConcludedResponse, OwnerViewSet
from memory.models import Kind, TurnSlot
from memory.retrieval.candidates import Candidate
from memory.services.prompt_context.build import ContextRequest, conclude_context, gather_context
from memory.services.recall.search import LONGEST_QUERY
from memory_project.http.serializers import ExternalId, Flag, WholeNumber

FEWEST_TOKENS = 100
"""Below, there is hardly room for what stands around a memory."""


class ContextBody(RecallFields):
    conversation_id = ExternalId(help_text="Whose working memory and ledger it is, and what is near it is preferred.")
    query = Prose(
        required=False,
        max_length=LONGEST_QUERY,
        help_text="The latest message; where it is left out, the latest of the user in the conversation.",
    )
    top_k = WholeNumber(
        default=conf.CONTEXT_RESULTS,
        min_value=1,
        max_value=MAX_TOP_K,
        help_text="Memories at most, besides the similar episodes and what was said around turns.",
    )
    max_tokens = WholeNumber(
        default=conf.CONTEXT_TOKENS,
        min_value=FEWEST_TOKENS,
        max_value=MOST_TOKENS,
        help_text="Of the whole text, as estimated, or as the tokenizer of an embedding model on this machine counts "
        "where that is more.",
    )
    mark_injected = Flag(
        default=False, help_text="Enter the items, and what says the same, into the ledger (scope write)."
    )
    explain = Flag(default=False, help_text="Show of each item what every technique made of it (`signals`).")


class ContextItem(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    kind = serializers.ChoiceField(Kind.choices)
    conversation_id = serializers.CharField(help_text="Empty for none.")
    slot = serializers.ChoiceField(TurnSlot.Slot.choices, allow_null=True, help_text="Of a turn slot; null of others.")
    record_id = serializers.UUIDField(allow_null=True, help_text="The structured turn that a turn slot is of.")
    similarity = serializers.FloatField(allow_null=True, help_text="1 - cosine distance; null without a vector.")
    score = serializers.FloatField(
        allow_null=True, help_text="Comparable within one answer only; null for a turn that stands next to one found."
    )
    signals = serializers.DictField(
        child=serializers.FloatField(), required=False, help_text="By technique; only when explained."
    )


class ContextAnswer(serializers.Serializer[Any]):
    # the contract's name, and a serializer's attribute too
    context = serializers.CharField(help_text="A system message, to stand first; may be empty.")  # type: ignore[assignment]
    items = ContextItem(many=True, help_text="The memories whose text is in it, in that order.")
    tokens = serializers.IntegerField(help_text="As counted for `max_tokens`.")
    degraded = serializers.ListField(
        child=serializers.CharField(),
        help_text="As of `/recall`; `context_truncated` where working memory was cut or a similar episode had no room, "
        "`neighbours_deadline` where there was no time to read what was said around the turns, `packing_deadline` "
        "where there was none to try all that was found.",
    )


def represent_item(item: Candidate, *, explain: bool) -> dict[str, Any]:
    shown = {
        "id": str(item.id),
        "item_key": item.item_key,
        "kind": item.kind.value,
        "conversation_id": item.conversation_id,
        "slot": item.slot or None,
        "record_id": None if item.record_id is None else str(item.record_id),
        "similarity": item.similarity,
        "score": item.score if item.ways else None,
    }
    return shown | {"signals": item.signals} if explain else shown


class Contexts(OwnerViewSet):
    """Reads all three layers; writes nothing unless told to mark, but that they were read."""

    bodies = {"gather": ContextBody}
    answers = {"gather": ContextAnswer}
    scopes = {"gather": "read"}
    rate_class = "retrieval"

    def gather(self, request: Request) -> Response:
        """Working memory, the most similar past conversations and the best evidence, laid out for the model.

        Takes all that `/recall` does. Turns come with those that were said right before and after them; these are
        items too. 422 without a query, a vector, or anything that a user has said in the conversation.
        """
        body, now = self.body(), timezone.now()
        if body["mark_injected"]:
            self.credential.require("write")
        owner = self.agent_owner(body)
        asked = ContextRequest(
            asked=recall_request(owner, body, text=body.get("query", "")),
            max_tokens=body["max_tokens"],
            mark_injected=body["mark_injected"],
        )
        found = gather_context(owner, asked, now=now)
        answer = {
            "context": found.context,
            "items": [represent_item(item, explain=body["explain"]) for item in found.items],
            "tokens": found.tokens,
            "degraded": list(found.degraded),
        }
        return ConcludedResponse(answer, conclude=partial(conclude_context, owner, found, now=now))
