"""Who may read and write what agents share. Pools and contexts have these columns, and this one rule.

Inside the account, which is the wall, a row is

- managed (granted, revoked, deleted) by the agent that owns it, as long as that is in the row's team, if it has one;
- written by who may manage it, by agents with a write grant, and by its members where its scope is open to them;
- read by who may write it, by agents with a read grant, by everybody where `public_read` says so, and by everybody
  where its scope is open to all.

Members are the agents of the row's team (and of a pool's workflow run). An owner without an agent acts for the account:
it reads, writes and manages all. Each model says what its scopes open: `open_to_all`, `open_to_members`.
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

MOST_GRANTS = 1_000

AgentId = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
AgentIds = Annotated[list[AgentId], Field(max_length=MOST_GRANTS)]


class Level(models.TextChoices):
    READ = "read"
    WRITE = "write"


class AccessControl(BaseModel):
    """The documented JSON: agents that may read, agents that may write (and so read), and whether everybody may read.

    Agents are sorted and named once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    read: AgentIds = []
    write: AgentIds = []
    public_read: bool = False

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Raises Unprocessable for what is no access control; the message tells the field, not the value."""
        try:
            parsed = cls.model_validate(value)
        except ValidationError as err:
            where = ".".join(map(str, err.errors()[0]["loc"])) or "it"
            raise Unprocessable(f"this is no access control: look at {where}") from err
        return parsed.with_lists(read=parsed.read, write=parsed.write)

    def with_lists(self, *, read: Collection[str], write: Collection[str]) -> Self:
        """Raises Unprocessable for more than MOST_GRANTS."""
        if max(len(set(read)), len(set(write))) > MOST_GRANTS:
            raise Unprocessable(f"at most {MOST_GRANTS} agents may be granted each level")
        return self.model_copy(update={"read": sorted(set(read)), "write": sorted(set(write))})

    def grant(self, agent_id: str, level: Level) -> Self:
        """With `agent_id` at this level besides what it had."""
        if level == Level.WRITE:
            return self.with_lists(read=self.read, write=[*self.write, agent_id])
        return self.with_lists(read=[*self.read, agent_id], write=self.write)

    def revoke(self, agent_id: str, level: Level = Level.READ) -> Self:
        """Without `agent_id` at this level. Who may not read may not write: that goes as well."""
        write = [other for other in self.write if other != agent_id]
        read = self.read if level == Level.WRITE else [other for other in self.read if other != agent_id]
        return self.with_lists(read=read, write=write)

    def level_of(self, agent_id: str) -> Level | None:
        """What was granted to the agent by name."""
        if agent_id in self.write:
            return Level.WRITE
        return Level.READ if agent_id in self.read else None


def no_grants() -> dict[str, Any]:
    """The access control of a row that nobody was let into."""
    return AccessControl().model_dump()


class SharedRow(models.Model):
    """The columns of what agents share. An empty `agent_id` is the account's own."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    agent_id = models.CharField(max_length=100, blank=True, default="", help_text="Who owns it.")
    # a team that is dissolved lets nobody in any more
    team = models.ForeignKey(Team, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False)
    access_control = models.JSONField(default=no_grants)

    class Meta:
        abstract = True

    @property
    def grants(self) -> AccessControl:
        return AccessControl.parse(self.access_control)

    def is_open_to_all(self) -> bool:
        """Whether the scope lets every agent of the account read."""
        raise NotImplementedError

    def is_open_to_members(self) -> bool:
        """Whether the scope lets members read and write."""
        raise NotImplementedError

    def has_member(self, agent_id: str, team_ids: Collection[UUID]) -> bool:
        """Whether the agent, which is in these teams, is one of the row's members."""
        return self.team_id in team_ids

    def accessible_by(self, agent_id: str, level: Level = Level.READ, *, team_ids: Collection[UUID] = ()) -> bool:
        """Whether an agent of the account in these teams may read (or write) the row: the rule of the querysets.

        An empty `agent_id` acts for the account.
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
    """Rows by what the owner may do with them. Every use starts at one of these."""

    def visible_to(self, owner: Owner) -> Self:
        """What the owner may read."""
        may_read = granted(owner, Level.READ) | Q(access_control__public_read=True) | self.open_to_all()
        return self.filter(Q(account_id=owner.account_id) & anybody_of(owner, self.may_write(owner) | may_read))

    def writable_by(self, owner: Owner) -> Self:
        return self.filter(Q(account_id=owner.account_id) & anybody_of(owner, self.may_write(owner)))

    def managed_by(self, owner: Owner) -> Self:
        return self.filter(Q(account_id=owner.account_id) & anybody_of(owner, owned(owner)))

    def may_write(self, owner: Owner) -> Q:
        joined = self.open_to_members() & self.membership(owner)
        return owned(owner) | granted(owner, Level.WRITE) | joined

    def open_to_all(self) -> Q:
        """The rows of which `is_open_to_all` is true."""
        raise NotImplementedError

    def open_to_members(self) -> Q:
        """The rows of which `is_open_to_members` is true."""
        raise NotImplementedError

    def membership(self, owner: Owner) -> Q:
        """The rows of which the owner's agent is a member."""
        return in_team(owner)


def in_team(owner: Owner) -> Q:
    """The rows of whose team the owner's agent is."""
    member = TeamMember.objects.filter(account_id=owner.account_id, agent_id=owner.agent_id)
    return Q(Exists(member.filter(team_id=OuterRef("team_id"))))


def owned(owner: Owner) -> Q:
    """The rows that the owner's agent made, unless it has left their team: what others wrote there is theirs."""
    return Q(agent_id=owner.agent_id) & (Q(team=None) | in_team(owner))


def anybody_of(owner: Owner, rule: Q) -> Q:
    """The rule for an agent; none for an owner that acts for the account."""
    return rule if owner.agent_id else Q()


def granted(owner: Owner, level: Level) -> Q:
    return Q(**{f"access_control__{level.value}__has_key": owner.agent_id})
