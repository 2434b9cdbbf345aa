"""`/conversations/{conversation_id}/participants`: the agents that may read a conversation."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.services.conversations.participants import add_participant, list_participants, remove_participant
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, ExternalId


class NewParticipant(ActingFields):
    participant_id = ExternalId(help_text="Agent that is to take part.")


class ParticipantAnswer(AnswerSerializer):
    agent_id = serializers.CharField(help_text="Agent that takes part.")
    created_at = serializers.DateTimeField(help_text="Time since which it takes part.")


class Participants(OwnerViewSet):
    """A key that is bound to an agent takes part where the agent opened the conversation, or was added here.

    The agent that opened the conversation and keys of no agent add and remove participants; 403 for other agents.
    """

    for_users = True
    operation_ids = {"create": "add_participant", "destroy": "remove_participant"}
    bodies = {"create": NewParticipant}
    queries = {"list": ActingFields, "destroy": ActingFields}
    answer = ParticipantAnswer

    def list(self, request: Request, conversation_id: str) -> Response:
        """List the agents that take part, latest first."""
        return self.respond_page(list_participants(self.owner(self.query()), conversation_id))

    def create(self, request: Request, conversation_id: str) -> Response:
        """Let an agent read the conversation and write into it. Adding it twice changes nothing."""
        body, owner = self.body_and_owner()
        return self.write_row(add_participant, owner, conversation_id, agent_id=body["participant_id"])

    def destroy(self, request: Request, conversation_id: str, participant_id: str) -> Response:
        """Stop an agent from reading the conversation. 422 for the agent that opened it."""
        remove_participant(self.owner(self.query()), conversation_id, agent_id=participant_id)
        return Response(status=204)
