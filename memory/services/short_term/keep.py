"""Short-term entries: what an agent keeps for some hours under a key of a session, and how often it looked at it.

Expired, an entry is as good as none, whether the cleaner came or not; one that was read often waits, unreadable, to be
promoted (see `services/consolidation`), whatever its key holds by then.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Cast

from memory import conf
from memory.audit import record
from memory.errors import NotFound, StaleVersion
from memory.models import AgentShortTermMemory
from memory.models.short_term import EntryPlace
from memory.owner import Owner
from memory.services.accounts.register import note_agent
from memory.services.audit.log import record_read
from memory.tiers.base import check_name, keyed_json
from memory_project.fields import VerbatimJSONField

MEMORY_TYPE = "short_term"
MOST_TTL_SECONDS = 2_592_000
"""30 days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermDraft:
    """An entry to be. An empty `session_id` is no session in particular."""

    memory_key: str
    memory_value: Any
    session_id: str = ""
    memory_type: str = AgentShortTermMemory.MemoryType.TASK_CONTEXT.value
    ttl_seconds: int = conf.SHORT_TERM_TTL_SECONDS


def store_entry(owner: Owner, draft: ShortTermDraft, *, now: datetime) -> AgentShortTermMemory:
    """Write the agent's entry of that session and key, over what is there; it lives for `ttl_seconds` from now on.

    The count of reads is the key's: over a live entry it goes on, and from PROMOTED_FROM on the new value is promoted
    and the old one is not. Over an expired one it starts at 0; if that waits for promotion, it goes on waiting beside
    the new one. Raises TooLarge, ValueError for what is no key, no type, no time to live, or has no JSON.
    """
    place = EntryPlace(key=check_name(draft.memory_key), session_id=draft.session_id)
    memory_type = AgentShortTermMemory.MemoryType(draft.memory_type).value
    columns = {"memory_type": memory_type, "ttl_seconds": check_ttl(draft.ttl_seconds)}
    value_json = keyed_json(draft.memory_value)
    note_agent(owner.account_id, owner.agent_id)
    rows = AgentShortTermMemory.objects
    with transaction.atomic():
        rows.supersede_waiting(owner, place, now=now)
        entry = rows.store(owner, place, value_json=value_json, columns=columns, now=now)
        record_change(owner, "store", entry)
    return entry


def check_ttl(seconds: int) -> int:
    """Raises ValueError."""
    if not 1 <= seconds <= MOST_TTL_SECONDS:
        raise ValueError(f"ttl_seconds must be 1 to {MOST_TTL_SECONDS}")
    return seconds


def read_entry(owner: Owner, *, key: str, session_id: str = "", now: datetime) -> AgentShortTermMemory:
    """The agent's live entry of that session and key; the access is counted. Raises NotFound."""
    return read_place(owner, EntryPlace(key=key, session_id=session_id), now=now)


def read_entry_by_id(owner: Owner, entry_id: UUID, *, now: datetime) -> AgentShortTermMemory:
    """The live entry; the access is counted. Raises NotFound."""
    return read_place(owner, EntryPlace(id=entry_id), now=now)


def read_place(owner: Owner, place: EntryPlace, *, now: datetime) -> AgentShortTermMemory:
    entry = found(AgentShortTermMemory.objects.touch_access(owner, place, now=now))
    note_read(owner, entry)
    return entry


def find_entry(owner: Owner, entry_id: UUID, *, now: datetime) -> AgentShortTermMemory:
    """The live entry; no access is counted. Raises NotFound."""
    entry = found(AgentShortTermMemory.objects.visible_to(owner).live(now).filter(id=entry_id).first())
    note_read(owner, entry)
    return entry


def refresh_entry(
    owner: Owner, entry_id: UUID, *, ttl_seconds: int | None = None, now: datetime
) -> AgentShortTermMemory:
    """Have a live entry live on from `now` for its time to live, or for another, which is its own from then on.

    Never for shorter than it would have. Raises NotFound.
    """
    seconds = None if ttl_seconds is None else check_ttl(ttl_seconds)
    with transaction.atomic():
        place = EntryPlace(id=entry_id)
        entry = found(AgentShortTermMemory.objects.refresh_ttl(owner, place, ttl_seconds=seconds, now=now))
        record_change(owner, "update", entry)
    return entry


def delete_entry(owner: Owner, *, key: str, session_id: str = "", now: datetime) -> None:
    """Raises NotFound where no live one was there. What waits under the key goes all the same, and is not promoted."""
    delete_place(owner, EntryPlace(key=key, session_id=session_id), now=now)


def delete_entry_by_id(owner: Owner, entry_id: UUID, *, now: datetime) -> None:
    """As `delete_entry`, with its key's; one whose key was written again goes alone."""
    delete_place(owner, EntryPlace(id=entry_id), now=now)


def delete_place(owner: Owner, place: EntryPlace, *, now: datetime) -> None:
    with transaction.atomic():
        gone = AgentShortTermMemory.objects.take_away(owner, place)
        if gone:
            record_change(owner, "delete", *gone)
    # after the commit: what had expired is gone, and still nothing was there
    if all(entry.is_expired(now) for entry in gone):
        raise NotFound("no such entry")


def found(entry: AgentShortTermMemory | None) -> AgentShortTermMemory:
    if entry is None:
        raise NotFound("no such entry")
    return entry


def note_read(owner: Owner, entry: AgentShortTermMemory) -> None:
    record_read(owner, memory_type=MEMORY_TYPE, affected_ids=[entry.id], session_id=entry.session_id, result_count=1)


def record_change(owner: Owner, operation: str, *entries: AgentShortTermMemory) -> None:
    """Of one session, at least one."""
    record(
        owner,
        operation=operation,
        memory_type=MEMORY_TYPE,
        affected_ids=[entry.id for entry in entries],
        session_id=entries[0].session_id,
        result_count=len(entries),
    )


def correct_entry(owner: Owner, entry_id: UUID, *, value: Any, seen: datetime | None, now: datetime) -> None:
    """Give a live entry another value, to be promoted anew. `seen` is the `updated_at` that the caller has read.

    Raises NotFound, StaleVersion where it was written since then, TooLarge; ValueError for what has no JSON.
    """
    text = keyed_json(value)
    with transaction.atomic():
        rows = AgentShortTermMemory.objects.visible_to(owner).live(now).filter(id=entry_id)
        entry = rows.select_for_update(no_key=True).first()
        if entry is None:
            raise NotFound("no such entry")
        if entry.updated_at != seen:
            raise StaleVersion("it was written since the page was opened: read it again")
        # the text that was measured, which need not be made again
        written = Cast(Value(text), VerbatimJSONField())
        AgentShortTermMemory.objects.filter(id=entry_id).update(memory_value=written, promoted_at=None, updated_at=now)
        record_change(owner, "update", entry)
