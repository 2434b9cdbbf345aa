"""Tests of teams that are joined and deleted at the same time: one comes first, and the other notices."""

import pytest
from django.db import transaction

from memory.errors import NotFound
from memory.models import Team, TeamMember
from memory.owner import Owner
from memory.services.accounts.register import add_member, create_team, delete_team
from tests.concurrency import PATIENCE_SECONDS, Start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crew(owner: Owner) -> Team:
    return create_team(owner, name="crew")


def test_joining_a_team_that_is_being_deleted_raises_not_found(
    owner: Owner, crew: Team, start_concurrently: Start
) -> None:
    with transaction.atomic():
        delete_team(owner, crew.id)
        joining = start_concurrently(lambda: add_member(owner, crew.id, agent_id="ana"))

    with pytest.raises(NotFound):
        joining.result(PATIENCE_SECONDS)
    assert not TeamMember.objects.exists()


def test_a_team_that_is_being_joined_is_deleted_with_its_new_member(
    owner: Owner, crew: Team, start_concurrently: Start
) -> None:
    with transaction.atomic():
        add_member(owner, crew.id, agent_id="ana")
        dissolving = start_concurrently(lambda: delete_team(owner, crew.id))

    dissolving.result(PATIENCE_SECONDS)
    assert not Team.objects.exists()
    assert not TeamMember.objects.exists()
