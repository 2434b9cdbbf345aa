"""For whom an operation runs. First argument of every service; every queryset starts at `.visible_to(owner)`."""

from dataclasses import dataclass, field
from uuid import UUID

GLOBAL_CHANNEL = "_global"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The account is the wall; the agent sees its private rows; the channel is a label that reads prefer.

    An empty `agent_id` acts for the account: it sees and writes all of it. An empty `user_id` is nobody in particular.
    """

    account_id: UUID
    agent_id: str = ""
    user_id: str = ""
    channel: str = GLOBAL_CHANNEL
    actor: str = ""
    """Who is answerable for it in the audit log: `key:<prefix>`, `staff:<name>`, `job:<name>`, `python`."""
    audit_level: str = field(default="", compare=False)
    """What the audit log keeps of its reads, as the account says; empty: as the installation does."""

    @property
    def channels(self) -> tuple[str, ...]:
        """Where reads look: the active channel, then `_global`."""
        return tuple(dict.fromkeys((self.channel, GLOBAL_CHANNEL)))
