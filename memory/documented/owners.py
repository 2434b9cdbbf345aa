"""Owners as the documents name them: by account and agent, in a channel."""

from collections.abc import Sequence
from dataclasses import replace

from memory.agent_memory import ACTOR
from memory.errors import Unprocessable
from memory.models import Account, Agent
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.accounts.register import find_account


def owner_of_agent(account: Account | str, agent: Agent | str) -> Owner:
    """Return the owner for an agent, by rows or by names. Raises NotFound for an unknown account."""
    found = find_account(account) if isinstance(account, str) else account
    agent_id = agent if isinstance(agent, str) else agent.agent_id
    return Owner(account_id=found.id, agent_id=agent_id, actor=ACTOR, audit_level=found.audit_level)


def in_channel(owner: Owner, channel: str) -> Owner:
    return replace(owner, channel=channel)


def in_channels(owner: Owner, channels: Sequence[str] | None) -> Owner:
    """Return the owner for reads in these channels: one project's and `_global`, which is always read as well."""
    if channels is None:
        return owner
    projects = [channel for channel in dict.fromkeys(channels) if channel != GLOBAL_CHANNEL]
    if len(projects) > 1:
        raise Unprocessable("a search reads one project's channel and _global: name one project")
    return replace(owner, channel=projects[0] if projects else GLOBAL_CHANNEL)


def for_user(owner: Owner, user_id: str | None) -> Owner:
    return owner if user_id is None else replace(owner, user_id=user_id)
