"""Teams that are joined and dissolved at the same time: one of the two comes first, and both know which."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from memory.errors import NotFound
from memory.models import Team, TeamMember
from memory.owner import Owner
from memory.services.accounts import add_member, create_team, delete_team

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_SECONDS = 20
WAITS_FOR_ME = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
)

Start = Callable[[Callable[[], object]], "Future[object]"]


@pytest.fixture
def crew(owner: Owner) -> Team:
    return create_team(owner, name="crew")


@pytest.fixture
def start_beside() -> Iterator[Start]:
    """Start something over a connection of its own; comes back once it waits for this transaction."""

    def run(act: Callable[[], object]) -> object:
        try:
            return act()
        finally:
            connection.close()

    def start(act: Callable[[], object]) -> "Future[object]":
        started = others.submit(run, act)
        wait_until_somebody_waits()
        return started

    with ThreadPoolExecutor(1) as others:
        yield start


def wait_until_somebody_waits() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(WAITS_FOR_ME)
            if cursor.fetchone() == (True,):
                return
        time.sleep(0.01)
    pytest.fail("nobody waits")


def test_who_joins_a_team_that_is_being_dissolved_finds_none(owner: Owner, crew: Team, start_beside: Start) -> None:
    with transaction.atomic():
        delete_team(owner, crew.id)
        joining = start_beside(lambda: add_member(owner, crew.id, agent_id="ana"))

    with pytest.raises(NotFound):
        joining.result(PATIENCE_SECONDS)
    assert not TeamMember.objects.exists()


def test_a_team_that_is_being_joined_is_dissolved_with_its_new_member(
    owner: Owner, crew: Team, start_beside: Start
) -> None:
    with transaction.atomic():
        add_member(owner, crew.id, agent_id="ana")
        dissolving = start_beside(lambda: delete_team(owner, crew.id))

    dissolving.result(PATIENCE_SECONDS)
    assert not Team.objects.exists()
    assert not TeamMember.objects.exists()
