"""Tests for names of contexts: unique per agent and team; `agent_memory` is an agent's long-term memory only."""

from typing import Any

import pytest

from memory.errors import Conflict, Unprocessable
from memory.models import PersistentContext, Team
from memory.models.contexts import OWN_CONTEXT, TEAM_CONTEXT
from memory.owner import Owner
from memory.services.accounts.register import add_member, create_team, delete_team
from memory.services.contexts.manage import change_context, ensure_own_context, ensure_team_context
from tests.memory.contexts import context_of
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def crews(owner: Owner) -> list[Team]:
    """Two teams that the agent is in."""
    account = Owner(account_id=owner.account_id)
    teams = [create_team(account, name=name) for name in ("crew", "other crew")]
    for team in teams:
        add_member(account, team.id, agent_id=owner.agent_id)
    return teams


def test_context_names_are_unique_per_team(owner: Owner, crews: list[Team]) -> None:
    for team in crews:
        context_of(owner, "plans", scope="team", team_id=team.id)
    context_of(owner, "plans")

    with pytest.raises(Conflict):
        context_of(owner, "plans", scope="team", team_id=crews[0].id)


def test_teams_can_be_deleted_whatever_their_contexts_are_called(owner: Owner, crews: list[Team]) -> None:
    for team in crews:
        context_of(owner, "plans", scope="team", team_id=team.id)
        ensure_team_context(owner, team.id, now=NOW)

    for team in crews:
        delete_team(Owner(account_id=owner.account_id), team.id)

    left = PersistentContext.objects.filter(team=None, scope="team")
    assert sorted(left.values_list("name", flat=True)) == [TEAM_CONTEXT, TEAM_CONTEXT, "plans", "plans"]


@pytest.mark.parametrize(
    "fields", [{"scope": "account"}, {"scope": "global"}, {"context_type": "knowledge_base"}], ids=str
)
def test_other_contexts_cannot_have_the_name_of_long_term_memory(owner: Owner, fields: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable, match=OWN_CONTEXT):
        context_of(owner, OWN_CONTEXT, **fields)


def test_a_context_created_by_that_name_is_the_agents_long_term_memory(owner: Owner) -> None:
    made = context_of(owner, OWN_CONTEXT)

    assert ensure_own_context(owner, now=NOW) == made


def test_long_term_memory_keeps_its_name_and_no_other_context_takes_it(owner: Owner) -> None:
    other = context_of(owner, "notes")
    own = ensure_own_context(owner, now=NOW)

    for context, name in ((own, "something else"), (other, OWN_CONTEXT)):
        with pytest.raises(Unprocessable, match=OWN_CONTEXT):
            change_context(owner, context.id, changes={"name": name}, expected=None, now=NOW)

    changes = {"name": OWN_CONTEXT, "description": "What I know."}
    assert change_context(owner, own.id, changes=changes, expected=None, now=NOW).description == "What I know."
