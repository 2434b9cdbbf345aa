"""`/agents`: the agents of the account."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.models import Agent
from memory.services.accounts.register import create_agent, find_agent, update_agent_description
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ExternalId, StrictSerializer, Text

MAX_DESCRIPTION_CHARACTERS = 10_000


class Description(Text):
    """A description of an agent for people. May be empty."""

    def __init__(self, **options: Any) -> None:
        help_text = "What the agent does, for people."
        super().__init__(
            **{"max_length": MAX_DESCRIPTION_CHARACTERS, "allow_blank": True, "help_text": help_text, **options}
        )


class NewAgent(StrictSerializer):
    agent_id = ExternalId(help_text="Id of the agent, chosen by you.")
    description = Description(required=False)


class AgentChange(StrictSerializer):
    description = Description()


class AgentAnswer(AnswerSerializer):
    agent_id = serializers.CharField()
    description = serializers.CharField()
    created_at = serializers.DateTimeField()


class Agents(OwnerViewSet):
    """Agents are created by their first write, or here with a description."""

    bodies = {"create": NewAgent, "partial_update": AgentChange}
    answer = AgentAnswer
    not_audited = frozenset({"list", "retrieve"})

    def list(self, request: Request) -> Response:
        """List the account's agents, latest first."""
        return self.respond_page(Agent.objects.in_account(self.credential.account_id))

    def create(self, request: Request) -> Response:
        """Create an agent. 409 if it exists."""
        body = self.body()
        owner, description = self.owner({"agent_id": body["agent_id"]}), body.get("description", "")
        return self.write_once(
            lambda: self.respond(create_agent(owner, agent_id=body["agent_id"], description=description))
        )

    def retrieve(self, request: Request, agent_id: str) -> Response:
        """Return an agent."""
        return self.respond(find_agent(self.owner(), agent_id))

    def partial_update(self, request: Request, agent_id: str) -> Response:
        """Change the description of an agent."""
        body = self.body()
        owner = self.owner({"agent_id": agent_id})
        return self.respond(update_agent_description(owner, agent_id, description=body["description"]))
