"""Short-term memory: values that an agent keeps for some hours under a key of a session.

An expired entry is treated as missing, whether the cleanup job has run or not. An expired entry that was read often
stays, unreadable, until it is promoted, even if its key is written again.

Promotion makes entries that were read often entries of their agent's long-term memory. A batch is one transaction:
entries are created and their sources are marked, or neither. So it may be killed and run again, and two runs may
overlap: they wait for each other at the sources. Keys belong to the agent: the same key of another session becomes the
entry's next version, and the history keeps the earlier content.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Cast

from memory import conf
from memory.audit import record_audit
from memory.errors import NotFound, StaleVersion, require_found
from memory.masking import masks_secrets
from memory.models import AgentShortTermMemory, ContextEntry, Kind, Memory, PersistentContext
from memory.models.short_term import ShortTermKey, ShortTermQuerySet
from memory.owner import Owner
from memory.services.accounts.register import register_agent
from memory.services.audit import record_read
from memory.services.contexts.entries import EntryDraft, searchable_text, store_entries
from memory.services.contexts.manage import ensure_own_context, keyed_identity, lock_context
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.tiers.base import check_name, check_ttl, keyed_json
from memory_project.fields import VerbatimJSONField

MEMORY_TYPE = "short_term"
MAX_TTL_SECONDS = 2_592_000
"""30 days."""
BATCH_ENTRIES = 100
ENTRY_TYPES = {
    AgentShortTermMemory.MemoryType.TOOL_RESULT.value: ContextEntry.EntryType.TOOL_OUTPUT.value,
    AgentShortTermMemory.MemoryType.REFLECTION.value: ContextEntry.EntryType.REFLECTION.value,
}
"""Type of the new entry by type of its source; observation for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortTermDraft:
    """An entry before it is stored. An empty `session_id` stands for no particular session."""

    memory_key: str
    memory_value: Any
    session_id: str = ""
    memory_type: str = AgentShortTermMemory.MemoryType.TASK_CONTEXT.value
    ttl_seconds: int = conf.SHORT_TERM_TTL_SECONDS


@masks_secrets
def store_entry(owner: Owner, draft: ShortTermDraft, *, now: datetime) -> AgentShortTermMemory:
    """Write the agent's entry of that session and key, replacing the live one; it expires `ttl_seconds` from now.

    The count of reads belongs to the key: it continues over a live entry, and from PROMOTED_FROM on the new value is
    promoted instead of the old one. Over an expired entry it starts at 0; if that one waits for promotion, it keeps
    waiting next to the new one. Raises TooLarge, and ValueError for an invalid key, type, lifetime or value.
    """
    entry_key = ShortTermKey(key=check_name(draft.memory_key), session_id=draft.session_id)
    memory_type = AgentShortTermMemory.MemoryType(draft.memory_type).value
    columns = {"memory_type": memory_type, "ttl_seconds": check_ttl(draft.ttl_seconds, max_seconds=MAX_TTL_SECONDS)}
    value_json = keyed_json(draft.memory_value)
    register_agent(owner.account_id, owner.agent_id)
    rows = AgentShortTermMemory.objects
    with transaction.atomic():
        rows.supersede_waiting(owner, entry_key, now=now)
        entry = rows.store(owner, entry_key, value_json=value_json, columns=columns, now=now)
        record_entry_change(owner, "store", entry)
    return entry


def read_entry(owner: Owner, entry_key: ShortTermKey, *, now: datetime) -> AgentShortTermMemory:
    """Return the agent's live entry, and count the access. Raises NotFound."""
    entry = require_found(AgentShortTermMemory.objects.touch_access(owner, entry_key, now=now), "entry")
    record_entry_read(owner, entry)
    return entry


def find_entry_by_id(owner: Owner, entry_id: UUID, *, now: datetime) -> AgentShortTermMemory:
    """Return the live entry without counting an access. Raises NotFound."""
    rows = AgentShortTermMemory.objects.visible_to(owner).live(now).filter(id=entry_id)
    entry = require_found(rows.first(), "entry")
    record_entry_read(owner, entry)
    return entry


def refresh_entry(
    owner: Owner, entry_key: ShortTermKey, *, ttl_seconds: int | None = None, now: datetime
) -> AgentShortTermMemory:
    """Extend a live entry to its lifetime from `now`, or to another lifetime, which it keeps.

    The expiry never moves closer. Raises NotFound.
    """
    seconds = None if ttl_seconds is None else check_ttl(ttl_seconds, max_seconds=MAX_TTL_SECONDS)
    with transaction.atomic():
        refreshed = AgentShortTermMemory.objects.refresh_ttl(owner, entry_key, ttl_seconds=seconds, now=now)
        entry = require_found(refreshed, "entry")
        record_entry_change(owner, "update", entry)
    return entry


def delete_entry(owner: Owner, entry_key: ShortTermKey, *, now: datetime) -> None:
    """Delete the agent's entry, and what waits under the key for promotion.

    By its id, an entry whose key was written again is deleted alone. Raises NotFound if there was no live entry;
    waiting ones are deleted in that case too.
    """
    with transaction.atomic():
        gone = AgentShortTermMemory.objects.delete_entry(owner, entry_key)
        if gone:
            record_entry_change(owner, "delete", *gone)
    # after the commit, because deleting expired rows must not be rolled back
    if all(entry.is_expired(now) for entry in gone):
        raise NotFound("no such entry")


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
        entry = require_found(rows.select_for_update(no_key=True).first(), "entry")
        if entry.updated_at != seen:
            raise StaleVersion("the entry was written since it was read: read it again")
        # the measured text, so that the value is not serialized twice
        written = Cast(Value(text), VerbatimJSONField())
        same = AgentShortTermMemory.objects.filter(account_id=owner.account_id, id=entry_id)
        same.update(memory_value=written, promoted_at=None, updated_at=now)
        record_entry_change(owner, "update", entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedKeys:
    """The keys that were promoted from a session, each once, in the order of promotion."""

    session_id: str
    keys: Sequence[str]


def promote_session_entries(owner: Owner, session_id: str, *, now: datetime) -> PromotedKeys:
    """Promote a session's entries that were read PROMOTED_FROM times or more since they were written, live or expired.

    Each becomes an entry of the agent's own context under its key, with its origin in the metadata. An existing entry
    gets its next version, if the content differs, and keeps its types and metadata. Live sources stay until they
    expire. Raises Conflict if the context is archived: the sources keep waiting.
    """
    waiting = AgentShortTermMemory.objects.visible_to(owner).to_promote().filter(session_id=session_id)
    batches = promote_in_batches(owner, waiting, now=now)
    keys = dict.fromkeys(key for promoted in batches for key in promoted)
    return PromotedKeys(session_id=session_id, keys=list(keys))


def promote_in_batches(owner: Owner, waiting: ShortTermQuerySet, *, now: datetime) -> Iterator[list[str]]:
    """Promote these entries of one session; yield the keys of each committed batch."""
    embedded = None
    for batch in split_batches(waiting):
        texts = [searchable_text(entry.memory_value) for entry in batch]
        # do not wait again for an embedder that is down: texts without a vector are queued
        is_down = embedded is not None and bool(embedded.error)
        embedded = replace(embedded, vectors={}) if embedded is not None and is_down else embed_texts(texts)
        yield promote_batch(owner, batch, embedded=embedded, now=now)


def split_batches(waiting: ShortTermQuerySet) -> Iterator[list[AgentShortTermMemory]]:
    """Yield the entries by id in batches; a repeated key starts a new batch, so that both values become versions."""
    rest = waiting.order_by("id")
    while batch := until_key_repeats(list(rest[:BATCH_ENTRIES])):
        yield batch
        rest = waiting.filter(id__gt=batch[-1].id).order_by("id")


def until_key_repeats(entries: Sequence[AgentShortTermMemory]) -> list[AgentShortTermMemory]:
    by_key: dict[str, AgentShortTermMemory] = {}
    for entry in entries:
        if entry.memory_key in by_key:
            break
        by_key[entry.memory_key] = entry
    return list(by_key.values())


def promote_batch(
    owner: Owner, found: Sequence[AgentShortTermMemory], *, embedded: EmbeddedTexts, now: datetime
) -> list[str]:
    """Promote those of the entries that still wait, in one transaction, and return their keys. No key may occur twice.

    A source whose target entry is quarantined keeps waiting. Raises Conflict if the context is archived.
    """
    ids = [entry.id for entry in found]
    with transaction.atomic():
        # read again: a value written since it was embedded is queued for the embedder
        rows = AgentShortTermMemory.objects.visible_to(owner).to_promote().filter(id__in=ids)
        waiting = list(rows.order_by("id").select_for_update())
        if not waiting:
            return []
        context = lock_context(owner, ensure_own_context(owner, now=now).id)
        taken = find_existing_keys(context, [entry.memory_key for entry in waiting])
        withheld = {key for key, is_quarantined in taken.items() if is_quarantined}
        entries = [entry for entry in waiting if entry.memory_key not in withheld]
        if not entries:
            return []
        drafts = [
            # an existing entry keeps its own type and metadata
            EntryDraft(key=entry.memory_key, value=entry.memory_value)
            if entry.memory_key in taken
            else promoted_draft(entry)
            for entry in entries
        ]
        store_entries(owner, context.id, drafts=drafts, embedded=embedded, now=now)
        mark_promoted(entries, now=now)
        record_entry_change(owner, "promote", *entries)
    return [entry.memory_key for entry in entries]


def find_existing_keys(context: PersistentContext, keys: Sequence[str]) -> dict[str, bool]:
    """Return the keys under which a locked context has an entry, and whether that entry is quarantined."""
    identities = {keyed_identity(context.id, key): key for key in keys}
    rows = Memory.objects.filter(account_id=context.account_id, kind=Kind.CONTEXT_ENTRY, identity__in=identities)
    return {identities[identity]: is_hidden for identity, is_hidden in rows.values_list("identity", "quarantined")}


def promoted_draft(entry: AgentShortTermMemory) -> EntryDraft:
    return EntryDraft(
        key=entry.memory_key,
        value=entry.memory_value,
        entry_type=ENTRY_TYPES.get(entry.memory_type, ContextEntry.EntryType.OBSERVATION.value),
        event_time=entry.updated_at,
        source=MEMORY_TYPE,
        metadata={
            "promoted_from": MEMORY_TYPE,
            "session_id": entry.session_id,
            "access_count": entry.access_count,
            "memory_type": entry.memory_type,
        },
    )


def mark_promoted(entries: Sequence[AgentShortTermMemory], *, now: datetime) -> None:
    """Mark promoted entries, and delete those that were kept only to be promoted."""
    accounts = {entry.account_id for entry in entries}
    rows = AgentShortTermMemory.objects.filter(account_id__in=accounts, id__in=[entry.id for entry in entries])
    rows.filter(Q(superseded=True) | Q(expires_at__lte=now)).delete()
    rows.update(promoted_at=now)
