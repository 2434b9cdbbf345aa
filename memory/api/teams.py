"""`/teams`: agents that share what has team scope, and who is in one."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.errors import Forbidden
from memory.models import Team, TeamMember
from memory.owner import Owner
from memory.services.accounts.register import add_member, create_team, delete_team, find_team, remove_member
from memory_project.http.serializers import ExternalId, StrictSerializer


class NewTeam(StrictSerializer):
    name = ExternalId()


class TeamAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()


class NewMember(StrictSerializer):
    agent_id = ExternalId()


class MemberAnswer(serializers.Serializer[Any]):
    agent_id = serializers.CharField()
    created_at = serializers.DateTimeField()


def represent_team(team: Team) -> dict[str, Any]:
    return {"id": team.id, "name": team.name, "created_at": team.created_at}


def represent_member(member: TeamMember) -> dict[str, Any]:
    return {"agent_id": member.agent_id, "created_at": member.created_at}


class TeamViewSet(OwnerViewSet):
    """Who is in a team reads and writes what the team shares: agents read who is in, and do not decide it."""

    unrecorded = frozenset({"list", "retrieve"})

    def deciding_owner(self) -> Owner:
        """The account. Raises Forbidden for a key that is bound to an agent."""
        owner = self.owner()
        if owner.agent_id:
            raise Forbidden("a key that is bound to an agent does not decide about teams and who is in them")
        return owner


class Teams(TeamViewSet):
    """Named once in their account. Keys that are bound to an agent make and dissolve none."""

    bodies = {"create": NewTeam}
    answers = {"list": TeamAnswer, "create": TeamAnswer, "retrieve": TeamAnswer}
    statuses = {"create": 201, "destroy": 204}

    def list(self, request: Request) -> Response:
        return self.page(Team.objects.in_account(self.credential.account_id), represent_team)

    def create(self, request: Request) -> Response:
        name, owner = self.body()["name"], self.deciding_owner()
        return self.once(lambda: Response(represent_team(create_team(owner, name=name)), status=201))

    def retrieve(self, request: Request, team_id: UUID) -> Response:
        return Response(represent_team(find_team(self.owner(), team_id)))

    def destroy(self, request: Request, team_id: UUID) -> Response:
        delete_team(self.deciding_owner(), team_id)
        return Response(status=204)


class TeamMembers(TeamViewSet):
    """By the agent's id: an agent may be named before its first write. Keys bound to an agent change nothing here."""

    bodies = {"create": NewMember}
    answers = {"list": MemberAnswer, "create": MemberAnswer}
    statuses = {"create": 201, "destroy": 204}

    def list(self, request: Request, team_id: UUID) -> Response:
        team = find_team(self.owner(), team_id)
        return self.page(TeamMember.objects.filter(account_id=team.account_id, team_id=team.id), represent_member)

    def create(self, request: Request, team_id: UUID) -> Response:
        # the agent that joins, not the one that acts
        agent_id, owner = self.body()["agent_id"], self.deciding_owner()

        def write() -> Response:
            return Response(represent_member(add_member(owner, team_id, agent_id=agent_id)), status=201)

        return self.once(write)

    def destroy(self, request: Request, team_id: UUID, agent_id: str) -> Response:
        remove_member(self.deciding_owner(), team_id, agent_id=agent_id)
        return Response(status=204)
