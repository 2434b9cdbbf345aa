"""Short-term entries: store, read with a count of accesses, refresh, delete, correct.

An expired entry is treated as missing, whether the cleanup job has run or not. An expired entry that was read often
stays, unreadable, until it is promoted (see `short_term.promote`), even if its key is written again.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Cast

from memory import conf
from memory.audit import record_audit
from memory.errors import NotFound, StaleVersion
from memory.models import AgentShortTermMemory
from memory.models.short_term import ShortTermKey
from memory.owner import Owner
from memory.services.accounts.register import register_agent
from memory.services.audit import record_read
from memory.tiers.base import check_name, keyed_json
from memory_project.fields import VerbatimJSONField

MEMORY_TYPE = "short_term"
MAX_TTL_SECONDS = 2_592_000
"""30 days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermDraft:
    """An entry before it is stored. An empty `session_id` stands for no particular session."""

    memory_key: str
    memory_value: Any
    session_id: str = ""
    memory_type: str = AgentShortTermMemory.MemoryType.TASK_CONTEXT.value
    ttl_seconds: int = conf.SHORT_TERM_TTL_SECONDS


def store_entry(owner: Owner, draft: ShortTermDraft, *, now: datetime) -> AgentShortTermMemory:
    """Write the agent's entry of that session and key, replacing the live one; it expires `ttl_seconds` from now.

    The count of reads belongs to the key: it continues over a live entry, and from PROMOTED_FROM on the new value is
    promoted instead of the old one. Over an expired entry it starts at 0; if that one waits for promotion, it keeps
    waiting next to the new one. Raises TooLarge, and ValueError for an invalid key, type, lifetime or value.
    """
    entry_key = ShortTermKey(key=check_name(draft.memory_key), session_id=draft.session_id)
    memory_type = AgentShortTermMemory.MemoryType(draft.memory_type).value
    columns = {"memory_type": memory_type, "ttl_seconds": check_ttl(draft.ttl_seconds)}
    value_json = keyed_json(draft.memory_value)
    register_agent(owner.account_id, owner.agent_id)
    rows = AgentShortTermMemory.objects
    with transaction.atomic():
        rows.supersede_waiting(owner, entry_key, now=now)
        entry = rows.store(owner, entry_key, value_json=value_json, columns=columns, now=now)
        record_entry_change(owner, "store", entry)
    return entry


def check_ttl(seconds: int) -> int:
    """Return the lifetime, or raise ValueError if it is out of range."""
    if not 1 <= seconds <= MAX_TTL_SECONDS:
        raise ValueError(f"ttl_seconds must be from 1 to {MAX_TTL_SECONDS}")
    return seconds


def read_entry(owner: Owner, *, key: str, session_id: str = "", now: datetime) -> AgentShortTermMemory:
    """Return the agent's live entry of that session and key, and count the access. Raises NotFound."""
    return count_and_read(owner, ShortTermKey(key=key, session_id=session_id), now=now)


def read_entry_by_id(owner: Owner, entry_id: UUID, *, now: datetime) -> AgentShortTermMemory:
    """Return the live entry, and count the access. Raises NotFound."""
    return count_and_read(owner, ShortTermKey(id=entry_id), now=now)


def count_and_read(owner: Owner, entry_key: ShortTermKey, *, now: datetime) -> AgentShortTermMemory:
    entry = require_entry(AgentShortTermMemory.objects.touch_access(owner, entry_key, now=now))
    record_entry_read(owner, entry)
    return entry


def find_entry_by_id(owner: Owner, entry_id: UUID, *, now: datetime) -> AgentShortTermMemory:
    """Return the live entry without counting an access. Raises NotFound."""
    entry = require_entry(AgentShortTermMemory.objects.visible_to(owner).live(now).filter(id=entry_id).first())
    record_entry_read(owner, entry)
    return entry


def refresh_entry(
    owner: Owner, entry_id: UUID, *, ttl_seconds: int | None = None, now: datetime
) -> AgentShortTermMemory:
    """Extend a live entry to its lifetime from `now`, or to another lifetime, which it keeps.

    The expiry never moves closer. Raises NotFound.
    """
    seconds = None if ttl_seconds is None else check_ttl(ttl_seconds)
    with transaction.atomic():
        entry_key = ShortTermKey(id=entry_id)
        entry = require_entry(AgentShortTermMemory.objects.refresh_ttl(owner, entry_key, ttl_seconds=seconds, now=now))
        record_entry_change(owner, "update", entry)
    return entry


def delete_entry(owner: Owner, *, key: str, session_id: str = "", now: datetime) -> None:
    """Delete the agent's entry of that session and key, and what waits under the key for promotion.

    Raises NotFound if there was no live entry; waiting ones are deleted in that case too.
    """
    delete_matching(owner, ShortTermKey(key=key, session_id=session_id), now=now)


def delete_entry_by_id(owner: Owner, entry_id: UUID, *, now: datetime) -> None:
    """Delete the entry as `delete_entry` does. If its key was written again, only this entry is deleted."""
    delete_matching(owner, ShortTermKey(id=entry_id), now=now)


def delete_matching(owner: Owner, entry_key: ShortTermKey, *, now: datetime) -> None:
    with transaction.atomic():
        gone = AgentShortTermMemory.objects.delete_entry(owner, entry_key)
        if gone:
            record_entry_change(owner, "delete", *gone)
    # after the commit, because deleting expired rows must not be rolled back
    if all(entry.is_expired(now) for entry in gone):
        raise NotFound("no such entry")


def require_entry(entry: AgentShortTermMemory | None) -> AgentShortTermMemory:
    if entry is None:
        raise NotFound("no such entry")
    return entry


def record_entry_read(owner: Owner, entry: AgentShortTermMemory) -> None:
    record_read(owner, memory_type=MEMORY_TYPE, affected_ids=[entry.id], session_id=entry.session_id, result_count=1)


def record_entry_change(owner: Owner, operation: str, *entries: AgentShortTermMemory) -> None:
    """Add an audit entry for entries of one session, at least one."""
    record_audit(
        owner,
        operation=operation,
        memory_type=MEMORY_TYPE,
        affected_ids=[entry.id for entry in entries],
        session_id=entries[0].session_id,
        result_count=len(entries),
    )


def correct_entry(owner: Owner, entry_id: UUID, *, value: Any, seen: datetime | None, now: datetime) -> None:
    """Give a live entry another value, which may be promoted again. `seen` is the `updated_at` that the caller read.

    Raises NotFound, StaleVersion if it was written since then, TooLarge, and ValueError for an invalid value.
    """
    text = keyed_json(value)
    with transaction.atomic():
        rows = AgentShortTermMemory.objects.visible_to(owner).live(now).filter(id=entry_id)
        entry = rows.select_for_update(no_key=True).first()
        if entry is None:
            raise NotFound("no such entry")
        if entry.updated_at != seen:
            raise StaleVersion("the entry was written since it was read: read it again")
        # the measured text, so that the value is not serialized twice
        written = Cast(Value(text), VerbatimJSONField())
        AgentShortTermMemory.objects.filter(id=entry_id).update(memory_value=written, promoted_at=None, updated_at=now)
        record_entry_change(owner, "update", entry)
