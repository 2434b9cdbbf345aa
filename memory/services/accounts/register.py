"""Accounts and what stands at their door: agents, teams, API keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from uuid import UUID

from django.db import transaction

from memory.audit import record
from memory.errors import Conflict, NotFound
from memory.models import Account, Agent, ApiKey, Team, TeamMember
from memory.owner import Owner


def revoke_keys(owner: Owner, key_ids: Sequence[UUID], *, now: datetime) -> int:
    """Shut out those of the account's keys that are not revoked yet, from the next request on; how many there were."""
    with transaction.atomic():
        keys = ApiKey.objects.filter(account_id=owner.account_id, id__in=key_ids, revoked_at=None)
        revoked = list(keys.order_by("id").select_for_update().values_list("id", flat=True))
        ApiKey.objects.filter(id__in=revoked).update(revoked_at=now)
        if revoked:
            record(owner, operation="revoke", memory_type="api_key", affected_ids=revoked)
    return len(revoked)


READ_ONLY = (ApiKey.Scope.READ,)
READ_WRITE_OPERATE = (ApiKey.Scope.READ, ApiKey.Scope.WRITE, ApiKey.Scope.OPERATE)


def find_account(name: str) -> Account:
    """For whoever is inside already. Raises NotFound."""
    account = Account.objects.filter(name=name).first()
    if account is None:
        raise NotFound("no such account")
    return account


def find_agent(owner: Owner, agent_id: str) -> Agent:
    """Raises NotFound, for another account's agent as for none."""
    agent = Agent.objects.in_account(owner.account_id).filter(agent_id=agent_id).first()
    if agent is None:
        raise NotFound("no such agent")
    return agent


def create_agent(owner: Owner, *, agent_id: str, description: str) -> Agent:
    """Raises Conflict when the account has an agent of this id."""
    with transaction.atomic():
        agent, is_new = Agent.objects.get_or_create(
            account_id=owner.account_id, agent_id=agent_id, defaults={"description": description}
        )
        if not is_new:
            raise Conflict("there is an agent of this id")
        record(owner, operation="create", memory_type="agent", affected_ids=[agent.id])
    agent.refresh_from_db(fields=["created_at"])
    return agent


def ensure_agent(account: Account, agent_id: str) -> None:
    """Make the agent when it is new."""
    Agent.objects.get_or_create(account=account, agent_id=agent_id)


def note_agent(account_id: UUID, agent_id: str) -> None:
    """Make the agent of a write, once that is committed; nothing for a write of the account's.

    Asked once a process and agent, so that busy ones cost nothing; after the commit, so that a write that is taken back
    is not taken for one that made the agent. What goes wrong is logged: the write stands.
    """
    if agent_id:
        # a lambda: Django could not name a partial in its log, and would raise instead
        transaction.on_commit(lambda: make_agent(account_id, agent_id), robust=True)


@lru_cache(maxsize=10_000)
def make_agent(account_id: UUID, agent_id: str) -> None:
    Agent.objects.bulk_create([Agent(account_id=account_id, agent_id=agent_id)], ignore_conflicts=True)


def describe_agent(owner: Owner, agent_id: str, *, description: str) -> Agent:
    """Change what the agent's description says. Raises NotFound."""
    with transaction.atomic():
        agent = find_agent(owner, agent_id)
        agent.description = description
        agent.save(update_fields=["description"])
        record(owner, operation="update", memory_type="agent", affected_ids=[agent.id])
    return agent


def find_team(owner: Owner, team_id: UUID) -> Team:
    """Raises NotFound, for another account's team as for none."""
    team = Team.objects.in_account(owner.account_id).filter(id=team_id).first()
    if team is None:
        raise NotFound("no such team")
    return team


def lock_team(owner: Owner, team_id: UUID) -> Team:
    """`find_team`, and until the transaction ends nobody else deletes it or changes who is in it."""
    team = Team.objects.in_account(owner.account_id).filter(id=team_id).select_for_update(no_key=True).first()
    if team is None:
        raise NotFound("no such team")
    return team


def create_team(owner: Owner, *, name: str) -> Team:
    """Raises Conflict when the account has a team of this name."""
    with transaction.atomic():
        team, is_new = Team.objects.get_or_create(account_id=owner.account_id, name=name)
        if not is_new:
            raise Conflict("there is a team of this name")
        record(owner, operation="create", memory_type="team", affected_ids=[team.id])
    team.refresh_from_db(fields=["created_at"])
    return team


def delete_team(owner: Owner, team_id: UUID) -> None:
    """Raises NotFound."""
    with transaction.atomic():
        lock_team(owner, team_id).delete()
        record(owner, operation="delete", memory_type="team", affected_ids=[team_id])


def add_member(owner: Owner, team_id: UUID, *, agent_id: str) -> TeamMember:
    """Adding one twice is the same as once. Raises NotFound."""
    with transaction.atomic():
        team = lock_team(owner, team_id)
        member, is_new = TeamMember.objects.get_or_create(
            account_id=owner.account_id, team_id=team.id, agent_id=agent_id
        )
        if is_new:
            record(owner, operation="add_member", memory_type="team", affected_ids=[team_id, agent_id])
    member.refresh_from_db(fields=["created_at"])
    return member


def remove_member(owner: Owner, team_id: UUID, *, agent_id: str) -> None:
    """Raises NotFound, for the team or for the member."""
    with transaction.atomic():
        team = find_team(owner, team_id)
        removed, _ = TeamMember.objects.filter(account_id=owner.account_id, team_id=team.id, agent_id=agent_id).delete()
        if not removed:
            raise NotFound("no such member")
        record(owner, operation="remove_member", memory_type="team", affected_ids=[team_id, agent_id])


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedKey:
    """A new key's row with its secret, which is nowhere else."""

    key: ApiKey
    secret: str


def issue_key(
    account: Account,
    *,
    scopes: Iterable[str],
    agent_id: str = "",
    name: str = "",
    expires_at: datetime | None = None,
    actor: str = "command",
) -> IssuedKey:
    """Make an API key. With `agent_id`, bound to that agent, which is made when it is new."""
    secret = ApiKey.make_secret()
    with transaction.atomic():
        if agent_id:
            ensure_agent(account, agent_id)
        key = ApiKey.objects.create(
            account=account,
            agent_id=agent_id,
            name=name,
            prefix=secret[: ApiKey.PREFIX_LENGTH],
            secret_hash=ApiKey.hash_secret(secret),
            scopes=list(scopes),
            expires_at=expires_at,
        )
        owner = Owner(account_id=account.id, agent_id=agent_id, actor=actor)
        record(owner, operation="create", memory_type="api_key", affected_ids=[key.id])
    return IssuedKey(key=key, secret=secret)


def expiry_after(now: datetime, days: int | None) -> datetime | None:
    """When a key made now ends; None for one that does not."""
    return None if days is None else now + timedelta(days=days)
