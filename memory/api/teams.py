"""`/teams`: teams of agents, which share what has team scope, and their members."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.errors import Forbidden
from memory.models import Team, TeamMember
from memory.owner import Owner
from memory.services.accounts.register import add_member, create_team, delete_team, find_team, remove_member
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ExternalId, StrictSerializer


class NewTeam(StrictSerializer):
    name = ExternalId(help_text="Name of the team, unique in the account.")


class TeamAnswer(AnswerSerializer):
    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


class NewMember(StrictSerializer):
    agent_id = ExternalId(help_text="Agent that joins the team.")


class MemberAnswer(AnswerSerializer):
    agent_id = serializers.CharField()
    created_at = serializers.DateTimeField()


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
        return self.write_once(lambda: self.respond(create_team(owner, name=name)))

    def retrieve(self, request: Request, team_id: UUID) -> Response:
        """Return a team."""
        return self.respond(find_team(self.owner(), team_id))

    def destroy(self, request: Request, team_id: UUID) -> Response:
        """Delete a team."""
        delete_team(self.deciding_owner(), team_id)
        return Response(status=204)


class TeamMembers(TeamViewSet):
    """Members by agent id; an agent may be added before its first write. Bound keys cannot change members."""

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
        return self.write_once(lambda: self.respond(add_member(owner, team_id, agent_id=agent_id)))

    def destroy(self, request: Request, team_id: UUID, agent_id: str) -> Response:
        """Remove an agent from the team."""
        remove_member(self.deciding_owner(), team_id, agent_id=agent_id)
        return Response(status=204)
