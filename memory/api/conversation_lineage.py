"""`/conversations/{conversation_id}/lineage`: the conversations that one resumes, and those that resume it."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.models import Conversation
from memory.services.conversations.lineage import Related, conversation_lineage
from memory_project.http.serializers import ActingFields


class RelatedConversation(serializers.Serializer[Any]):
    conversation_id = serializers.CharField()
    step = serializers.IntegerField(help_text="How far from the one asked for: below zero, it was there before.")
    continues = serializers.CharField(help_text="The conversation that it resumes; empty for none.")
    title = serializers.CharField()
    outcome = serializers.ChoiceField([*Conversation.Outcome.choices, ("", "")])
    started_at = serializers.DateTimeField()
    last_turn_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    turn_count = serializers.IntegerField()


class ConversationLineageAnswer(serializers.Serializer[Any]):
    conversation = RelatedConversation()
    earlier = RelatedConversation(many=True, help_text="What it resumes, the nearest first.")
    later = RelatedConversation(many=True, help_text="What resumes it, the nearest first.")
    truncated = serializers.BooleanField(help_text="There are more either way.")


COLUMNS = (
    *("conversation_id", "continues", "title", "outcome", "started_at", "last_turn_at", "ended_at"),
    "turn_count",
)


def represent_related(conversation: Conversation, step: int) -> dict[str, Any]:
    return {name: getattr(conversation, name) for name in COLUMNS} | {"step": step}


def represent_each(related: Related) -> dict[str, Any]:
    return represent_related(related.conversation, related.step)


class ConversationLineages(OwnerViewSet):
    """Of a conversation in which the agent takes part."""

    queries = {"retrieve": ActingFields}
    answers = {"retrieve": ConversationLineageAnswer}

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """Those in which the agent takes part: up to 200 each way. What is left out in between leaves no gap."""
        found = conversation_lineage(self.owner(self.query()), conversation_id)
        return Response(
            {
                "conversation": represent_related(found.conversation, 0),
                "earlier": [represent_each(each) for each in found.earlier],
                "later": [represent_each(each) for each in found.later],
                "truncated": found.truncated,
            }
        )
