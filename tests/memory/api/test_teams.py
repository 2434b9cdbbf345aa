"""`/teams`: teams and their members."""

from uuid import uuid4

import pytest

from memory.models import Team, TeamMember
from tests.api_client import ServiceClient, segment


@pytest.fixture
def crew(api: ServiceClient) -> str:
    team: str = api.post("/teams", {"name": "crew"}).json()["id"]
    return team


def test_a_team_is_created_read_listed_and_deleted(api: ServiceClient, crew: str) -> None:
    assert api.get(f"/teams/{crew}").json()["name"] == "crew"
    assert [team["id"] for team in api.get("/teams").json()["results"]] == [crew]

    assert api.delete(f"/teams/{crew}").status_code == 204

    assert api.get(f"/teams/{crew}").status_code == 404


def test_a_team_of_the_same_name_is_a_conflict(api: ServiceClient, crew: str) -> None:
    assert api.post("/teams", {"name": "crew"}).status_code == 409


def test_adding_a_member_twice_adds_it_once_and_a_member_can_be_removed(api: ServiceClient, crew: str) -> None:
    for _again in range(2):
        assert api.post(f"/teams/{crew}/members", {"agent_id": "a/b"}).status_code == 201
    members = api.get(f"/teams/{crew}/members").json()["results"]

    left = api.delete(f"/teams/{crew}/members/{segment('a/b')}")

    assert [member["agent_id"] for member in members] == ["a/b"]
    assert left.status_code == 204
    assert api.get(f"/teams/{crew}/members").json()["results"] == []


def test_removing_an_agent_that_is_not_a_member_answers_404(api: ServiceClient, crew: str) -> None:
    assert api.delete(f"/teams/{crew}/members/nobody").status_code == 404


@pytest.mark.parametrize("method", ["get", "delete"])
def test_a_team_of_another_account_is_answered_like_an_unknown_one(
    stranger_api: ServiceClient, crew: str, method: str
) -> None:
    theirs = getattr(stranger_api, method)(f"/teams/{crew}", HTTP_X_REQUEST_ID="same")
    unknown = getattr(stranger_api, method)(f"/teams/{uuid4()}", HTTP_X_REQUEST_ID="same")

    assert theirs.status_code == 404
    assert theirs.content == unknown.content
    assert Team.objects.count() == 1


def test_a_bound_key_can_read_teams_but_not_change_them(
    api: ServiceClient, bound_api: ServiceClient, crew: str
) -> None:
    api.post(f"/teams/{crew}/members", {"agent_id": "colleague"})
    attempts = [
        bound_api.post("/teams", {"name": "intruders"}),
        bound_api.post(f"/teams/{crew}/members", {"agent_id": "assistant"}),
        bound_api.delete(f"/teams/{crew}/members/colleague"),
        bound_api.delete(f"/teams/{crew}"),
    ]

    assert [(answer.status_code, answer.json()["code"]) for answer in attempts] == [(403, "forbidden")] * 4
    assert [member["agent_id"] for member in bound_api.get(f"/teams/{crew}/members").json()["results"]] == ["colleague"]
    assert (Team.objects.count(), TeamMember.objects.count()) == (1, 1)


def test_a_bound_key_receives_the_same_refusal_for_an_unknown_team(bound_api: ServiceClient, crew: str) -> None:
    real, unknown = (
        bound_api.delete(f"/teams/{team}", HTTP_X_REQUEST_ID="same").content for team in (crew, str(uuid4()))
    )

    assert real == unknown
