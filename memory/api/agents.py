"""`/agents`, `/teams` and `/key`: agents of the account, teams that share what has team scope, the key of a request."""

from functools import partial
from uuid import UUID

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import TextList
from memory.api.views import OwnerViewSet
from memory.errors import Forbidden
from memory.models import Agent, Team, TeamMember
from memory.owner import Owner
from memory.services.accounts.register import (
    add_member,
    create_agent,
    create_team,
    delete_team,
    find_agent,
    find_team,
    remove_member,
    update_agent_description,
)
from memory.services.custody.single import erase_agent
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ExternalId, StrictSerializer, Text

MAX_DESCRIPTION_CHARACTERS = 10_000


Description = partial(
    Text, max_length=MAX_DESCRIPTION_CHARACTERS, allow_blank=True, help_text="What the agent does, for people."
)
"""A description of an agent for people. May be empty."""


class NewAgent(StrictSerializer):
    agent_id = ExternalId(help_text="Id of the agent, chosen by you.")
    description = Description(required=False)


class AgentChange(StrictSerializer):
    description = Description()


class AgentAnswer(AnswerSerializer):
    columns = columns_of(Agent, "agent_id description created_at")


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
        return self.write_row(create_agent, owner, agent_id=body["agent_id"], description=description)

    def retrieve(self, request: Request, agent_id: str) -> Response:
        """Return an agent."""
        return self.respond(find_agent(self.owner(), agent_id))

    def partial_update(self, request: Request, agent_id: str) -> Response:
        """Change the description of an agent."""
        body = self.body()
        owner = self.owner({"agent_id": agent_id})
        return self.respond(update_agent_description(owner, agent_id, description=body["description"]))

    def destroy(self, request: Request, agent_id: str) -> Response:
        """Erase an agent with what is its alone.

        That is: its episodes, its knowledge of no user, its private contexts and pools, its short-term entries and
        working memory, memberships, votes and API keys. Conversations and what it learned about users stay with the
        account. If it is interrupted, another DELETE continues. 403 for a key that is bound to an agent.
        """
        erase_agent(self.owner(), agent_id, now=timezone.now())
        return Response(status=204)


class NewTeam(StrictSerializer):
    name = ExternalId(help_text="Name of the team, unique in the account.")


class TeamAnswer(AnswerSerializer):
    columns = columns_of(Team, "id name created_at")


class NewMember(StrictSerializer):
    agent_id = ExternalId(help_text="Agent that joins the team.")


class MemberAnswer(AnswerSerializer):
    columns = columns_of(TeamMember, "agent_id created_at")


class TeamViewSet(OwnerViewSet):
    """Members read and write what their team shares. They can see who the members are, but not change it."""

    not_audited = frozenset({"list", "retrieve"})

    def deciding_owner(self) -> Owner:
        """Return the account as the owner. Raises Forbidden for a key that is bound to an agent."""
        owner = self.owner()
        if owner.agent_id:
            raise Forbidden("a key that is bound to an agent cannot change teams or their members")
        return owner


class Teams(TeamViewSet):
    """Teams have unique names in their account. Keys that are bound to an agent can neither create nor delete one."""

    bodies = {"create": NewTeam}
    answer = TeamAnswer

    def list(self, request: Request) -> Response:
        """List the account's teams, latest first."""
        return self.respond_page(Team.objects.in_account(self.credential.account_id))

    def create(self, request: Request) -> Response:
        """Create a team. 409 if the name is taken."""
        name, owner = self.body()["name"], self.deciding_owner()
        return self.write_row(create_team, owner, name=name)

    def retrieve(self, request: Request, team_id: UUID) -> Response:
        """Return a team."""
        return self.respond(find_team(self.owner(), team_id))

    def destroy(self, request: Request, team_id: UUID) -> Response:
        """Delete a team."""
        delete_team(self.deciding_owner(), team_id)
        return Response(status=204)


class TeamMembers(TeamViewSet):
    """Members by agent id; an agent may be added before its first write. Bound keys cannot change members."""

    operation_ids = {"create": "add_team_member", "destroy": "remove_team_member"}
    bodies = {"create": NewMember}
    answer = MemberAnswer

    def list(self, request: Request, team_id: UUID) -> Response:
        """List the members, latest first."""
        team = find_team(self.owner(), team_id)
        return self.respond_page(TeamMember.objects.filter(account_id=team.account_id, team_id=team.id))

    def create(self, request: Request, team_id: UUID) -> Response:
        """Add an agent to the team."""
        # the agent that joins, not the one that acts
        agent_id, owner = self.body()["agent_id"], self.deciding_owner()
        return self.write_row(add_member, owner, team_id, agent_id=agent_id)

    def destroy(self, request: Request, team_id: UUID, agent_id: str) -> Response:
        """Remove an agent from the team."""
        remove_member(self.deciding_owner(), team_id, agent_id=agent_id)
        return Response(status=204)


class KeyAnswer(AnswerSerializer):
    prefix = serializers.CharField(help_text="Beginning of the key, by which the audit log names it.")
    scopes = TextList(help_text="What it may do: `read`, `write`, …")
    agent_id = serializers.CharField(help_text="Agent that it is bound to. Empty: none, so that requests name one.")
    user_id = serializers.CharField(help_text="User that it is bound to. Empty: none.")


class Keys(OwnerViewSet):
    """The key of the request itself, for programs that were given one."""

    operation_ids = {"retrieve": "get_key"}
    answer = KeyAnswer
    for_users = True

    def retrieve(self, request: Request) -> Response:
        """Return what the key of this request may do, and for whom.

        Requests need not name an agent or user that the key is bound to, and may not name another one.
        """
        return self.respond(self.credential, {"scopes": sorted(self.credential.scopes)})
