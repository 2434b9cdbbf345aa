"""Access control of rows that agents share: the columns of pools and contexts, and one rule for both.

No other account sees a row. Inside the account, a row is

- managed (granted, revoked, deleted) by the agent that owns it; if the row has a team, only while that agent is in it;
- written by agents that may manage it, by agents with a write grant, and by its members if its scope is open to them;
- read by agents that may write it, by agents with a read grant, and by every agent if `public_read` is set or its scope
  is open to all.

Members are the agents of the row's team (and of a pool's workflow run). An owner without an agent acts for the account
and reads, writes and manages everything. Each model says what its scopes open: `open_to_all`, `open_to_members`.
"""

from collections.abc import Collection
from typing import Annotated, Any, Self, TypeVar
from uuid import UUID

from django.db import models
from django.db.models import Exists, OuterRef, Q
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory.errors import Unprocessable
from memory.models.accounts import Account, Team, TeamMember
from memory.owner import Owner
from memory_project.tenancy import AccountForeignKey, RowInAccount

MAX_GRANTS = 1_000

AgentId = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
AgentIds = Annotated[list[AgentId], Field(max_length=MAX_GRANTS)]


class Level(models.TextChoices):
    READ = "read"
    WRITE = "write"


class AccessControl(BaseModel):
    """The documented JSON: agents that may read, agents that may write (and so read), and whether every agent may read.

    Each list is sorted and has no duplicates.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    read: AgentIds = []
    write: AgentIds = []
    public_read: bool = False

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Validate JSON from a client. Raises Unprocessable, which names the invalid field but not its value."""
        try:
            parsed = cls.model_validate(value)
        except ValidationError as err:
            where = ".".join(map(str, err.errors()[0]["loc"])) or "it"
            raise Unprocessable(f"the access control is not valid: check {where}") from err
        return parsed.with_lists(read=parsed.read, write=parsed.write)

    def with_lists(self, *, read: Collection[str], write: Collection[str]) -> Self:
        """Return a copy with these grants. Raises Unprocessable for more than MAX_GRANTS on a level."""
        if max(len(set(read)), len(set(write))) > MAX_GRANTS:
            raise Unprocessable(f"at most {MAX_GRANTS} agents may be granted each level")
        return self.model_copy(update={"read": sorted(set(read)), "write": sorted(set(write))})

    def grant(self, agent_id: str, level: Level) -> Self:
        """Return a copy that also grants this level to `agent_id`."""
        if level == Level.WRITE:
            return self.with_lists(read=self.read, write=[*self.write, agent_id])
        return self.with_lists(read=[*self.read, agent_id], write=self.write)

    def revoke(self, agent_id: str, level: Level = Level.READ) -> Self:
        """Return a copy without this level for `agent_id`. Revoking `read` revokes `write` as well."""
        write = [other for other in self.write if other != agent_id]
        read = self.read if level == Level.WRITE else [other for other in self.read if other != agent_id]
        return self.with_lists(read=read, write=write)

    def level_of(self, agent_id: str) -> Level | None:
        """Return the level that was granted to the agent by name, or None."""
        if agent_id in self.write:
            return Level.WRITE
        return Level.READ if agent_id in self.read else None


def no_grants() -> dict[str, Any]:
    """Return an access control without grants, as JSON. Default of a column: migrations name this function."""
    return AccessControl().model_dump()


class SharedRow(RowInAccount):
    """Columns of rows that agents share. A row with an empty `agent_id` belongs to the account itself."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    agent_id = models.CharField(
        max_length=100, blank=True, default="", help_text="Agent that owns it. Empty: the account itself."
    )
    # a deleted team gives no access any more
    team = AccountForeignKey(Team, models.SET_NULL, null=True, blank=True, related_name="+")
    access_control = models.JSONField(default=no_grants)

    class Meta:
        abstract = True

    @property
    def grants(self) -> AccessControl:
        return AccessControl.parse(self.access_control)

    def is_open_to_all(self) -> bool:
        """Return True if the scope lets every agent of the account read."""
        raise NotImplementedError

    def is_open_to_members(self) -> bool:
        """Return True if the scope lets members read and write."""
        raise NotImplementedError

    def has_member(self, agent_id: str, team_ids: Collection[UUID]) -> bool:
        """Return True if the agent, which is in these teams, is a member of the row."""
        return self.team_id in team_ids

    def accessible_by(self, agent_id: str, level: Level = Level.READ, *, team_ids: Collection[UUID] = ()) -> bool:
        """Return True if an agent of the account, which is in these teams, may read (or write) the row.

        The same rule as that of the querysets. An empty `agent_id` acts for the account.
        """
        granted = self.grants.level_of(agent_id)
        owns = agent_id == self.agent_id and (self.team_id is None or self.team_id in team_ids)
        joined = self.is_open_to_members() and self.has_member(agent_id, team_ids)
        if not agent_id or owns or granted == Level.WRITE or joined:
            return True
        is_readable = granted == Level.READ or self.grants.public_read or self.is_open_to_all()
        return level == Level.READ and is_readable


R = TypeVar("R", bound=SharedRow)


class SharedQuerySet(models.QuerySet[R]):
    """Rows by what the owner may do with them. Every use starts at `visible_to`, `writable_by` or `managed_by`."""

    def visible_to(self, owner: Owner) -> Self:
        """Filter to rows that the owner may read."""
        may_read = granted_to(owner, Level.READ) | Q(access_control__public_read=True) | self.open_to_all()
        return self.filter(Q(account_id=owner.account_id) & limit_agents(owner, self.may_write(owner) | may_read))

    def writable_by(self, owner: Owner) -> Self:
        return self.filter(Q(account_id=owner.account_id) & limit_agents(owner, self.may_write(owner)))

    def managed_by(self, owner: Owner) -> Self:
        return self.filter(Q(account_id=owner.account_id) & limit_agents(owner, owned_by(owner)))

    def may_write(self, owner: Owner) -> Q:
        joined = self.open_to_members() & self.membership(owner)
        return owned_by(owner) | granted_to(owner, Level.WRITE) | joined

    def open_to_all(self) -> Q:
        """Return the condition on rows whose `is_open_to_all` is true."""
        raise NotImplementedError

    def open_to_members(self) -> Q:
        """Return the condition on rows whose `is_open_to_members` is true."""
        raise NotImplementedError

    def membership(self, owner: Owner) -> Q:
        """Return the condition on rows that the owner's agent is a member of."""
        return in_team(owner)


def in_team(owner: Owner) -> Q:
    """Return the condition on rows whose team the owner's agent belongs to."""
    member = TeamMember.objects.filter(account_id=owner.account_id, agent_id=owner.agent_id)
    return Q(Exists(member.filter(team_id=OuterRef("team_id"))))


def owned_by(owner: Owner) -> Q:
    """Return the condition on rows that the owner's agent owns.

    Rows of a team that it has left are not among them: they hold what other members wrote.
    """
    return Q(agent_id=owner.agent_id) & (Q(team=None) | in_team(owner))


def limit_agents(owner: Owner, rule: Q) -> Q:
    """Return the rule for an owner with an agent, and no condition for an owner that acts for the account."""
    return rule if owner.agent_id else Q()


def granted_to(owner: Owner, level: Level) -> Q:
    return Q(**{f"access_control__{level.value}__has_key": owner.agent_id})
