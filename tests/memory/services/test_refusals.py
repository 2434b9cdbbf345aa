"""Tests of the messages for agents that see a shared row but may not do what they ask for."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from memory.errors import Forbidden
from memory.models import AccessControl, Level
from memory.owner import Owner
from memory.services.contexts.access_log import access_logs
from memory.services.contexts.manage import ContextDraft, archive_context, create_context, lock_context
from memory.services.pools.manage import PoolDraft, create_pool, delete_pool, lock_pool
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db

ONLY_OWNER = "only the owner of this {}, or an API key that acts for the account, may do this"


@pytest.fixture(params=[Level.READ, Level.WRITE])
def grants(request: pytest.FixtureRequest) -> AccessControl:
    """Grants of another agent."""
    return AccessControl().grant("planner", request.param)


@pytest.mark.parametrize(
    "act",
    [
        lambda owner, context_id: archive_context(owner, context_id, expected=None, now=NOW),
        lambda owner, context_id: access_logs(owner, context_id),
    ],
    ids=["archive", "access log"],
)
def test_a_reader_or_writer_cannot_manage_a_context_and_is_referred_to_its_owner(
    owner: Owner, grants: AccessControl, act: Callable[..., object]
) -> None:
    context = create_context(owner, ContextDraft(name="notes", access_control=grants))

    with pytest.raises(Forbidden) as refused:
        act(replace(owner, agent_id="planner"), context.id)

    assert str(refused.value) == ONLY_OWNER.format("context")


def test_a_reader_or_writer_cannot_delete_a_pool_and_is_referred_to_its_owner(
    owner: Owner, grants: AccessControl
) -> None:
    pool = create_pool(owner, PoolDraft(access_control=grants), now=NOW)

    with pytest.raises(Forbidden) as refused:
        delete_pool(replace(owner, agent_id="planner"), pool.pool_id, expected=None, now=NOW)

    assert str(refused.value) == ONLY_OWNER.format("pool")


def test_a_reader_learns_that_it_may_not_write(owner: Owner) -> None:
    reading, planner = AccessControl().grant("planner", Level.READ), replace(owner, agent_id="planner")
    context = create_context(owner, ContextDraft(name="notes", access_control=reading))
    pool = create_pool(owner, PoolDraft(access_control=reading), now=NOW)

    with pytest.raises(
        Forbidden, match=r"^the agent may read this context, but not write to it: ask its owner for write access$"
    ):
        lock_context(planner, context.id)
    with pytest.raises(
        Forbidden, match=r"^the agent may read this pool, but not write to it: ask its owner for write access$"
    ):
        lock_pool(planner, pool.pool_id, now=NOW)
