"""`/agents`: who remembers."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.models import Agent
from memory.services.accounts.register import create_agent, describe_agent, find_agent
from memory_project.http.serializers import ExternalId, StrictSerializer, Text

LONGEST_DESCRIPTION = 10_000


class Description(Text):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": LONGEST_DESCRIPTION, "allow_blank": True, **options})


class NewAgent(StrictSerializer):
    agent_id = ExternalId()
    description = Description(required=False)


class AgentChange(StrictSerializer):
    description = Description()


class AgentAnswer(serializers.Serializer[Any]):
    agent_id = serializers.CharField()
    description = serializers.CharField()
    created_at = serializers.DateTimeField()


def represent_agent(agent: Agent) -> dict[str, Any]:
    return {"agent_id": agent.agent_id, "description": agent.description, "created_at": agent.created_at}


class Agents(OwnerViewSet):
    """Made on their first write, or here with a description."""

    bodies = {"create": NewAgent, "partial_update": AgentChange}
    answers = {
        "list": AgentAnswer,
        "create": AgentAnswer,
        "retrieve": AgentAnswer,
        "partial_update": AgentAnswer,
    }
    statuses = {"create": 201}
    unrecorded = frozenset({"list", "retrieve"})

    def list(self, request: Request) -> Response:
        return self.page(Agent.objects.in_account(self.credential.account_id), represent_agent)

    def create(self, request: Request) -> Response:
        body = self.body()
        owner = self.owner({"agent_id": body["agent_id"]})

        def write() -> Response:
            agent = create_agent(owner, agent_id=body["agent_id"], description=body.get("description", ""))
            return Response(represent_agent(agent), status=201)

        return self.once(write)

    def retrieve(self, request: Request, agent_id: str) -> Response:
        return Response(represent_agent(find_agent(self.owner(), agent_id)))

    def partial_update(self, request: Request, agent_id: str) -> Response:
        body = self.body()
        owner = self.owner({"agent_id": agent_id})
        return Response(represent_agent(describe_agent(owner, agent_id, description=body["description"])))
