"""The owner: the account, agent, user and channel that an operation acts for.

It is the first argument of every service, and every queryset starts at `.visible_to(owner)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

GLOBAL_CHANNEL = "_global"


class ChangeNotes(Protocol):
    """Something that the audit entries of a change say besides what its service records."""

    def describe(self, affected_ids: Sequence[UUID | str]) -> dict[str, Any]:
        """Return the reason of the change, and the values of its rows before and after, as metadata of an entry."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The identity that an operation acts for.

    The account isolates tenants, the agent sees its private rows, and the channel is a label that reads prefer. An
    empty `agent_id` acts for the account, which sees and writes all its rows. An empty `user_id` means no particular
    user.
    """

    account_id: UUID
    agent_id: str = ""
    user_id: str = ""
    channel: str = GLOBAL_CHANNEL
    limited_to_user: bool = False
    """True for an API key that is bound to the user: rows of other users do not exist for it. It names an agent."""
    limited_to_conversations: bool = False
    """True for an API key that is bound to the agent: it takes part only in conversations that the agent opened or was
    added to, and others do not exist for it."""
    actor: str = ""
    """The actor named in the audit log: `key:<prefix>`, `staff:<name>`, `job:<name>`, `python`."""
    audit_level: str = field(default="", compare=False)
    """The account's own audit level; empty: the installation's."""
    marks_secrets: bool = field(default=False, compare=False)
    """True if new memories whose texts hold secrets are to be marked."""
    masks_secrets: bool = field(default=False, compare=False)
    """True if secrets in the texts of memories are to be masked when these are stored; requests are masked before."""
    joins: bool = field(default=True, compare=False)
    """True if storing memories makes the agent a participant of their conversations. False where somebody else, such as
    a job, stores something in the agent's name: it may have been removed from the conversation since."""
    changes: ChangeNotes | None = field(default=None, compare=False, repr=False)
    """For changes of staff: their reason and the values of rows, which the audit log keeps at every level but `off`."""

    @property
    def is_limited(self) -> bool:
        """True for an API key that is bound to an agent, to a user, or to both."""
        return self.limited_to_user or self.limited_to_conversations

    def is_guest_of(self, agent_id: str) -> bool:
        """Return True in a conversation that this agent opened, if the owner is limited and is another agent."""
        return self.limited_to_conversations and agent_id != self.agent_id

    @property
    def channels(self) -> tuple[str, ...]:
        """Channels that reads look in: the active one, then `_global`."""
        return tuple(dict.fromkeys((self.channel, GLOBAL_CHANNEL)))
