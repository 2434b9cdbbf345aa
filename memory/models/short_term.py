"""Short-term memory: what an agent keeps for some hours under a key of a session."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.db import connection, models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory.owner import Owner
from memory_project.fields import VerbatimJSONField
from memory_project.ids import uuid7

PROMOTED_FROM = 3
"""Reads from which on an entry is worth keeping for good."""

# written out, since Django's own UPDATE returns no rows: what is read is what was counted, however many read at once
BY_KEY = "agent_id = %(agent_id)s AND session_id = %(session_id)s AND memory_key = %(key)s"
BY_ID = "id = %(id)s AND (agent_id = %(agent_id)s OR %(agent_id)s = '')"

TOUCH = """
UPDATE agent_short_term_memories
SET access_count = least(access_count, 2147483646) + 1, last_accessed_at = %(now)s
WHERE account_id = %(account_id)s AND {which} AND NOT superseded AND expires_at > %(now)s
RETURNING *
"""

REFRESH = """
UPDATE agent_short_term_memories
SET ttl_seconds = coalesce(%(ttl_seconds)s, ttl_seconds), updated_at = %(now)s,
    expires_at = greatest(expires_at, %(now)s + make_interval(secs => coalesce(%(ttl_seconds)s, ttl_seconds)))
WHERE account_id = %(account_id)s AND {which} AND NOT superseded AND expires_at > %(now)s
RETURNING *
"""

WAITS = f"access_count >= {PROMOTED_FROM} AND promoted_at IS NULL"

# spelt as the conditions of two indexes, which it would not use otherwise
DELETE_BY_KEY = f"""
DELETE FROM agent_short_term_memories
WHERE account_id = %(account_id)s AND {BY_KEY} AND (NOT superseded OR superseded AND {WAITS})
RETURNING *
"""  # noqa: S608  made of constants

# one that is superseded goes alone: what its key holds by now is another entry
DELETE_BY_ID = f"""
DELETE FROM agent_short_term_memories
WHERE account_id = %(account_id)s AND ({BY_ID} OR superseded AND {WAITS} AND (agent_id, session_id, memory_key) = (
    SELECT agent_id, session_id, memory_key FROM agent_short_term_memories
    WHERE account_id = %(account_id)s AND {BY_ID} AND NOT superseded
))
RETURNING *
"""  # noqa: S608  made of constants

SUPERSEDE = f"""
UPDATE agent_short_term_memories SET superseded = true
WHERE account_id = %(account_id)s AND {BY_KEY} AND NOT superseded AND expires_at <= %(now)s AND {WAITS}
"""  # noqa: S608  made of constants

# what has expired and waits for nothing counts its reads from 0 again
STORE = """
INSERT INTO agent_short_term_memories AS old (id, account_id, agent_id, session_id, memory_key, memory_value,
    memory_type, ttl_seconds, expires_at, access_count, superseded, created_at, updated_at)
VALUES (%(id)s, %(account_id)s, %(agent_id)s, %(session_id)s, %(key)s, %(value)s::json,
    %(memory_type)s, %(ttl_seconds)s, %(now)s + make_interval(secs => %(ttl_seconds)s), 0, false, %(now)s, %(now)s)
ON CONFLICT (account_id, agent_id, session_id, memory_key) WHERE NOT superseded DO UPDATE SET
    memory_value = EXCLUDED.memory_value, memory_type = EXCLUDED.memory_type, ttl_seconds = EXCLUDED.ttl_seconds,
    expires_at = EXCLUDED.expires_at, promoted_at = NULL, updated_at = EXCLUDED.updated_at,
    (access_count, last_accessed_at, created_at) = (
        SELECT CASE WHEN over THEN 0 ELSE old.access_count END, CASE WHEN over THEN NULL ELSE old.last_accessed_at END,
            CASE WHEN over THEN EXCLUDED.created_at ELSE old.created_at END
        FROM (SELECT old.expires_at <= %(now)s AS over) AS cleaner
    )
RETURNING *
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPlace:
    """Which entry of an agent: by its session and key, or by its id."""

    key: str = ""
    session_id: str = ""
    id: UUID | None = None

    def bind(self, owner: Owner) -> dict[str, Any]:
        who = {"account_id": owner.account_id, "agent_id": owner.agent_id}
        return who | {"key": self.key, "session_id": self.session_id, "id": self.id}

    def narrow(self, statement: str) -> str:
        return statement.format(which=BY_KEY if self.id is None else BY_ID)


class ShortTermQuerySet(models.QuerySet["AgentShortTermMemory"]):
    """Chainable filters; every use starts at `visible_to`, and every read goes on with `live`."""

    def visible_to(self, owner: Owner) -> Self:
        """The agent's own; all of the account's for an owner without an agent."""
        rows = self.filter(account_id=owner.account_id)
        return rows.filter(agent_id=owner.agent_id) if owner.agent_id else rows

    def live(self, now: datetime) -> Self:
        """Not expired: what is, cannot be read any more, whether the cleaner came or not."""
        return self.filter(expires_at__gt=now, superseded=False)

    def disposable(self, now: datetime) -> Self:
        """Expired, and read too rarely to be promoted, or promoted already."""
        return self.filter(Q(access_count__lt=PROMOTED_FROM) | Q(promoted_at__isnull=False), expires_at__lte=now)

    def to_promote(self) -> Self:
        """Read often enough, live or expired, and not promoted since they were written."""
        return self.filter(access_count__gte=PROMOTED_FROM, promoted_at=None)

    def cleanup_expired(self, now: datetime) -> int:
        """Delete what is `disposable`; returns how many."""
        return self.disposable(now).delete()[0]

    def supersede_waiting(self, owner: Owner, place: EntryPlace, *, now: datetime) -> None:
        """Make room under a key whose entry has expired and waits for promotion: it goes on waiting. One statement."""
        with connection.cursor() as cursor:
            cursor.execute(SUPERSEDE, place.bind(owner) | {"now": now})

    def store(
        self, owner: Owner, place: EntryPlace, *, value_json: str, columns: dict[str, Any], now: datetime
    ) -> "AgentShortTermMemory":
        """Write the agent's entry of that session and key, over what is there. One statement; returns the row.

        What waits there for promotion is lost unless `supersede_waiting` came before, in the same transaction.
        `columns` are memory_type and ttl_seconds.
        """
        given = {"id": uuid7(), "value": value_json, "now": now}
        return next(iter(self.raw(STORE, place.bind(owner) | columns | given)))

    def touch_access(self, owner: Owner, place: EntryPlace, *, now: datetime) -> "AgentShortTermMemory | None":
        """Read a live entry, and count it. One statement; None where there is none."""
        return self._change_one(TOUCH, owner, place, now=now)

    def refresh_ttl(
        self, owner: Owner, place: EntryPlace, *, ttl_seconds: int | None, now: datetime
    ) -> "AgentShortTermMemory | None":
        """Let a live entry live for its time to live (or another one) from now on, if it did not for longer.

        One statement.
        """
        return self._change_one(REFRESH, owner, place, now=now, ttl_seconds=ttl_seconds)

    def take_away(self, owner: Owner, place: EntryPlace) -> "list[AgentShortTermMemory]":
        """Delete an entry, live or expired, with what waits beside it; they are as they were. One statement."""
        return list(self.raw(DELETE_BY_KEY if place.id is None else DELETE_BY_ID, place.bind(owner)))

    def _change_one(
        self, statement: str, owner: Owner, place: EntryPlace, **given: Any
    ) -> "AgentShortTermMemory | None":
        return next(iter(self.raw(place.narrow(statement), place.bind(owner) | given)), None)


class AgentShortTermMemory(models.Model):
    """One entry: unique by agent, session and key. Read `PROMOTED_FROM` times, it waits for promotion once expired."""

    class MemoryType(models.TextChoices):
        TASK_CONTEXT = "task_context"
        CONVERSATION = "conversation"
        TOOL_RESULT = "tool_result"
        REFLECTION = "reflection"
        OBSERVATION = "observation"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    agent_id = models.CharField(max_length=100)
    session_id = models.CharField(max_length=100, blank=True, default="")
    memory_key = models.CharField(max_length=200)
    memory_value = VerbatimJSONField(null=True)
    memory_type = models.CharField(max_length=20, choices=MemoryType, default=MemoryType.TASK_CONTEXT)
    ttl_seconds = models.PositiveIntegerField()
    expires_at = models.DateTimeField()
    access_count = models.PositiveIntegerField(default=0)
    last_accessed_at = models.DateTimeField(null=True, blank=True)
    promoted_at = models.DateTimeField(null=True, blank=True, editable=False)
    # expired, waiting for promotion, and its key was written again: both are kept
    superseded = models.BooleanField(default=False, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ShortTermQuerySet.as_manager()

    class Meta:
        db_table = "agent_short_term_memories"
        verbose_name_plural = "short-term memories"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "agent_id", "session_id", "memory_key"],
                name="short_term_once_by_key",
                condition=Q(superseded=False),
            ),
            models.CheckConstraint(condition=~Q(memory_key=""), name="short_term_has_a_key"),
            models.CheckConstraint(condition=~Q(agent_id=""), name="short_term_has_an_agent"),
            models.CheckConstraint(condition=Q(ttl_seconds__gte=1), name="short_term_lives_a_second"),
        ]
        indexes = [
            models.Index(fields=["expires_at"], name="short_term_expiry"),
            models.Index(
                fields=["account", "agent_id"],
                name="short_term_to_promote",
                condition=Q(access_count__gte=PROMOTED_FROM, promoted_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.memory_key} of {self.agent_id}"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at <= now
