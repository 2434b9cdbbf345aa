"""Short-term memory: values that an agent keeps for some hours under a key of a session.

Working memory is in Redis. What an agent saved of it into the database, until it loads it again, is here too.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow
from memory.models.statements import execute_statement
from memory.owner import Owner
from memory_project.fields import VerbatimJSONField
from memory_project.ids import uuid7

MIN_PROMOTION_READS = 3
"""Number of reads that an entry needs to be promoted to long-term memory."""

# plain SQL, because Django's UPDATE returns no rows: each reader gets the row as it counted it
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

AWAITS_PROMOTION = f"access_count >= {MIN_PROMOTION_READS} AND promoted_at IS NULL"

# written like the conditions of two indexes, which would not be used otherwise
DELETE_BY_KEY = f"""
DELETE FROM agent_short_term_memories
WHERE account_id = %(account_id)s AND {BY_KEY} AND (NOT superseded OR superseded AND {AWAITS_PROMOTION})
RETURNING *
"""  # noqa: S608  made of constants

# a superseded entry is deleted alone: its key holds another entry now
DELETE_BY_ID = f"""
DELETE FROM agent_short_term_memories
WHERE account_id = %(account_id)s AND ({BY_ID} OR superseded AND {AWAITS_PROMOTION}
    AND (agent_id, session_id, memory_key) = (
    SELECT agent_id, session_id, memory_key FROM agent_short_term_memories
    WHERE account_id = %(account_id)s AND {BY_ID} AND NOT superseded
))
RETURNING *
"""  # noqa: S608  made of constants

SUPERSEDE = f"""
UPDATE agent_short_term_memories SET superseded = true
WHERE account_id = %(account_id)s AND {BY_KEY} AND NOT superseded AND expires_at <= %(now)s AND {AWAITS_PROMOTION}
"""  # noqa: S608  made of constants

# reads of an entry that expired and does not await promotion are counted from 0 again
STORE = """
INSERT INTO agent_short_term_memories AS old (id, account_id, agent_id, session_id, memory_key, memory_value,
    memory_type, ttl_seconds, expires_at, access_count, superseded, created_at, updated_at)
VALUES (%(id)s, %(account_id)s, %(agent_id)s, %(session_id)s, %(key)s, %(value)s::json,
    %(memory_type)s, %(ttl_seconds)s, %(now)s + make_interval(secs => %(ttl_seconds)s), 0, false, %(now)s, %(now)s)
ON CONFLICT (account_id, agent_id, session_id, memory_key) WHERE NOT superseded DO UPDATE SET
    memory_value = EXCLUDED.memory_value, memory_type = EXCLUDED.memory_type, ttl_seconds = EXCLUDED.ttl_seconds,
    expires_at = EXCLUDED.expires_at, promoted_at = NULL, updated_at = EXCLUDED.updated_at,
    access_count = CASE WHEN old.expires_at <= %(now)s THEN 0 ELSE old.access_count END,
    last_accessed_at = CASE WHEN old.expires_at <= %(now)s THEN NULL ELSE old.last_accessed_at END,
    created_at = CASE WHEN old.expires_at <= %(now)s THEN EXCLUDED.created_at ELSE old.created_at END
RETURNING *
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermKey:
    """Address of an entry of an agent: session and key, or its id."""

    key: str = ""
    session_id: str = ""
    id: UUID | None = None

    def to_params(self, owner: Owner) -> dict[str, Any]:
        who = {"account_id": owner.account_id, "agent_id": owner.agent_id}
        return who | {"key": self.key, "session_id": self.session_id, "id": self.id}

    def to_sql(self, statement: str) -> str:
        return statement.format(which=BY_KEY if self.id is None else BY_ID)


class ShortTermQuerySet(models.QuerySet["AgentShortTermMemory"]):
    """Chainable filters. Every use starts at `visible_to`, and every read continues with `live`."""

    def visible_to(self, owner: Owner) -> Self:
        """Filter to entries of the owner's agent, or of the whole account for an owner without an agent."""
        rows = self.filter(account_id=owner.account_id)
        return rows.filter(agent_id=owner.agent_id) if owner.agent_id else rows

    def live(self, now: datetime) -> Self:
        """Filter to entries that may be read. Expired ones may not, even before the cleanup deletes them."""
        return self.filter(expires_at__gt=now, superseded=False)

    def disposable(self, now: datetime) -> Self:
        """Filter to expired entries that were read too rarely to be promoted, or are promoted already."""
        return self.filter(Q(access_count__lt=MIN_PROMOTION_READS) | Q(promoted_at__isnull=False), expires_at__lte=now)

    def to_promote(self) -> Self:
        """Filter to entries, live or expired, that were read often enough and not promoted since they were written."""
        return self.filter(access_count__gte=MIN_PROMOTION_READS, promoted_at=None)

    def cleanup_expired(self, now: datetime) -> int:
        """Delete the `disposable` entries and return their number."""
        return self.disposable(now).delete()[0]

    def supersede_waiting(self, owner: Owner, entry_key: ShortTermKey, *, now: datetime) -> None:
        """Free a key whose expired entry awaits promotion. The entry stays until it is promoted. One statement."""
        execute_statement(SUPERSEDE, entry_key.to_params(owner) | {"now": now})

    def store(
        self, owner: Owner, entry_key: ShortTermKey, *, value_json: str, columns: dict[str, Any], now: datetime
    ) -> "AgentShortTermMemory":
        """Write the agent's entry of that session and key, replacing one that exists, and return it. One statement.

        An entry there that awaits promotion is lost, unless `supersede_waiting` was called before in the same
        transaction. `columns` are memory_type and ttl_seconds.
        """
        given = {"id": uuid7(), "value": value_json, "now": now}
        return next(iter(self.raw(STORE, entry_key.to_params(owner) | columns | given)))

    def touch_access(self, owner: Owner, entry_key: ShortTermKey, *, now: datetime) -> "AgentShortTermMemory | None":
        """Read a live entry and count the read. Returns None if there is none. One statement."""
        return self._change_one(TOUCH, owner, entry_key, now=now)

    def refresh_ttl(
        self, owner: Owner, entry_key: ShortTermKey, *, ttl_seconds: int | None, now: datetime
    ) -> "AgentShortTermMemory | None":
        """Extend a live entry to its time to live (or another one) from now, unless it lives longer already.

        One statement.
        """
        return self._change_one(REFRESH, owner, entry_key, now=now, ttl_seconds=ttl_seconds)

    def delete_entry(self, owner: Owner, entry_key: ShortTermKey) -> "list[AgentShortTermMemory]":
        """Delete an entry, live or expired, and superseded ones of its key. Returns the deleted rows. One statement."""
        return list(self.raw(DELETE_BY_KEY if entry_key.id is None else DELETE_BY_ID, entry_key.to_params(owner)))

    def _change_one(
        self, statement: str, owner: Owner, entry_key: ShortTermKey, **given: Any
    ) -> "AgentShortTermMemory | None":
        return next(iter(self.raw(entry_key.to_sql(statement), entry_key.to_params(owner) | given)), None)


class AgentShortTermMemory(AccountRow):
    """One entry, unique by agent, session and key.

    An entry that was read `MIN_PROMOTION_READS` times awaits promotion when it expires.
    """

    class MemoryType(models.TextChoices):
        TASK_CONTEXT = "task_context"
        CONVERSATION = "conversation"
        TOOL_RESULT = "tool_result"
        REFLECTION = "reflection"
        OBSERVATION = "observation"

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
    # it expired and awaits promotion, but its key was written again: both entries are kept
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
                condition=Q(access_count__gte=MIN_PROMOTION_READS, promoted_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.memory_key} of {self.agent_id}"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at <= now


class SavedWorkingMemoryQuerySet(models.QuerySet["SavedWorkingMemory"]):
    """Every use starts at `visible_to`."""

    def visible_to(self, owner: Owner) -> Self:
        """Filter to rows of the owner's agent, or of the whole account for an owner without an agent."""
        rows = self.filter(account_id=owner.account_id)
        return rows.filter(agent_id=owner.agent_id) if owner.agent_id else rows


class SavedWorkingMemory(AccountRow):
    """A saved working memory of an agent: its general one, or the one for a task, a workflow run, or both.

    `values` maps each key to its JSON text (`json`, as Redis had it, so that types and numbers stay exact) and to the
    time to live that it had left in milliseconds (`ttl_ms`), which does not run while it is saved.
    """

    agent_id = models.CharField(max_length=100)
    task_id = models.CharField(max_length=100, blank=True, default="")
    workflow_run_id = models.CharField(max_length=100, blank=True, default="")
    values = VerbatimJSONField(default=dict)
    saved_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = SavedWorkingMemoryQuerySet.as_manager()

    class Meta:
        db_table = "agent_working_memories"
        verbose_name_plural = "saved working memories"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "agent_id", "task_id", "workflow_run_id"], name="saved_once_a_working_memory"
            ),
            models.CheckConstraint(condition=~Q(agent_id=""), name="saved_memory_has_an_agent"),
        ]

    def __str__(self) -> str:
        return f"working memory of {self.agent_id}"
