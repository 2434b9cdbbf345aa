"""Helpers for tests of pools."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memory.models import Account, MemoryPool, Team, TeamMember
from memory.owner import Owner
from memory.services.pools.manage import PoolDraft, create_pool

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


def make_pool(owner: Owner, pool_id: str = "board", **fields: Any) -> MemoryPool:
    """A pool that the owner's agent made; `fields` are those of `PoolDraft`."""
    return create_pool(owner, PoolDraft(pool_id=pool_id, **fields), now=NOW)


def make_team(account: Account, name: str = "crew", *, agents: Sequence[str] = ()) -> Team:
    team = Team.objects.create(account=account, name=name)
    TeamMember.objects.bulk_create([TeamMember(account=account, team=team, agent_id=agent) for agent in agents])
    return team


def pool_etag(version: int, pool_id: str = "board") -> str:
    """The ETag of the pool that has this id now, at a version."""
    return f'"{version}.{MemoryPool.objects.get(pool_id=pool_id).id.hex[-8:]}"'
