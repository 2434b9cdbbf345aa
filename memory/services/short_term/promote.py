"""Promotion: short-term entries that were read often become entries of their agent's long-term memory.

A batch is one transaction: entries are created and their sources are marked, or neither. So it may be killed and run
again, and two runs may overlap: they wait for each other at the sources.

Keys belong to the agent: the same key of another session becomes the entry's next version, and the history keeps the
earlier content.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from memory.audit import record_audit
from memory.models import AgentShortTermMemory, ContextEntry, Kind, Memory, PersistentContext
from memory.models.short_term import ShortTermQuerySet
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft, searchable_text, store_entries
from memory.services.contexts.manage import ensure_own_context, keyed_identity, lock_context
from memory.services.embedding.embed import EmbeddedTexts, embed_texts

BATCH_ENTRIES = 100
SOURCE = "short_term"

ENTRY_TYPES = {
    AgentShortTermMemory.MemoryType.TOOL_RESULT.value: ContextEntry.EntryType.TOOL_OUTPUT.value,
    AgentShortTermMemory.MemoryType.REFLECTION.value: ContextEntry.EntryType.REFLECTION.value,
}
"""Type of the new entry by type of its source; observation for others."""


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
        record_audit(
            owner,
            operation="promote",
            memory_type="short_term",
            affected_ids=[entry.id for entry in entries],
            session_id=entries[0].session_id,
            result_count=len(entries),
        )
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
        source=SOURCE,
        metadata={
            "promoted_from": SOURCE,
            "session_id": entry.session_id,
            "access_count": entry.access_count,
            "memory_type": entry.memory_type,
        },
    )


def mark_promoted(entries: Sequence[AgentShortTermMemory], *, now: datetime) -> None:
    """Mark promoted entries, and delete those that were kept only to be promoted."""
    rows = AgentShortTermMemory.objects.filter(id__in=[entry.id for entry in entries])
    rows.filter(Q(superseded=True) | Q(expires_at__lte=now)).delete()
    rows.update(promoted_at=now)
