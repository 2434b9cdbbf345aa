"""Consolidation: short-term entries that were read often become entries of their agent's long-term memory.

A batch is one transaction: the entries come to be and their sources are marked, or neither. So it may be killed, run
again, and run by two at once, who wait for each other at the sources.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from memory.audit import record
from memory.models import AgentShortTermMemory, ContextEntry, Kind, Memory, PersistentContext
from memory.models.short_term import ShortTermQuerySet
from memory.owner import Owner
from memory.services.contexts import own_context
from memory.services.embedding import Embedded, embed_texts
from memory.services.entries import EntryDraft, keyed_identity, store_entries, text_of

BATCH_ENTRIES = 100
SOURCE = "short_term"

Types = AgentShortTermMemory.MemoryType
ENTRY_TYPES = {
    Types.TOOL_RESULT.value: ContextEntry.EntryType.TOOL_OUTPUT.value,
    Types.REFLECTION.value: ContextEntry.EntryType.REFLECTION.value,
}
"""What an entry is, by what its source was; else an observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """What was kept for good of a session: the keys, in the order in which their entries came to be."""

    session_id: str
    keys: Sequence[str]


def consolidate_session(owner: Owner, session_id: str, *, now: datetime) -> Consolidated:
    """Promote what the agent read often in a session (PROMOTED_FROM times), live or expired, and not since written.

    Each goes into the agent's own context under its key; over what is there, as its next version, if it says something
    else. Live ones stay until they expire. Raises Conflict where that context is archived: they wait.
    """
    waiting = AgentShortTermMemory.objects.visible_to(owner).to_promote().filter(session_id=session_id)
    batches = promote_in_batches(owner, waiting, now=now)
    return Consolidated(session_id=session_id, keys=[key for promoted in batches for key in promoted])


def promote_in_batches(owner: Owner, waiting: ShortTermQuerySet, *, now: datetime) -> Iterator[list[str]]:
    """Promote these entries of one session; the keys of each batch, once it is kept."""
    embedded = None
    for batch in batches_of(waiting):
        texts = [text_of(entry.memory_value) for entry in batch]
        # an embedder that is down is not waited for again: what has no vector is queued for it
        is_down = embedded is not None and bool(embedded.error)
        embedded = replace(embedded, vectors={}) if embedded is not None and is_down else embed_texts(texts)
        yield promote(owner, batch, embedded=embedded, now=now)


def batches_of(waiting: ShortTermQuerySet) -> Iterator[list[AgentShortTermMemory]]:
    rest = waiting.order_by("id")
    while batch := list(rest[:BATCH_ENTRIES]):
        yield batch
        rest = waiting.filter(id__gt=batch[-1].id).order_by("id")


def promote(owner: Owner, found: Sequence[AgentShortTermMemory], *, embedded: Embedded, now: datetime) -> list[str]:
    """Promote those that still wait, in one transaction; their keys, of which no two may be the same.

    What would go over a quarantined entry goes on waiting. Raises Conflict where the context is archived.
    """
    ids = [entry.id for entry in found]
    with transaction.atomic():
        # as they are now: one that was written since they were embedded is queued for the embedder
        rows = AgentShortTermMemory.objects.visible_to(owner).to_promote().filter(id__in=ids)
        waiting = list(rows.order_by("id").select_for_update())
        if not waiting:
            return []
        context = own_context(owner, now=now)
        withheld = quarantined_keys(context, [entry.memory_key for entry in waiting])
        entries = [entry for entry in waiting if entry.memory_key not in withheld]
        if not entries:
            return []
        drafts = [draft_of(entry) for entry in entries]
        stored = store_entries(owner, context.id, drafts=drafts, embedded=embedded, now=now)
        note_source(stored, drafts, now=now)
        settle(entries, now=now)
        record_promotion(owner, entries)
    return [entry.memory_key for entry in entries]


def quarantined_keys(context: PersistentContext, keys: Sequence[str]) -> set[str]:
    """The keys under which the context holds what nobody may see or write over."""
    identities = {keyed_identity(context.id, key): key for key in keys}
    rows = Memory.objects.filter(account_id=context.account_id, kind=Kind.CONTEXT_ENTRY, identity__in=identities)
    return {identities[identity] for identity in rows.filter(quarantined=True).values_list("identity", flat=True)}


def draft_of(entry: AgentShortTermMemory) -> EntryDraft:
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


def note_source(stored: Sequence[ContextEntry], drafts: Sequence[EntryDraft], *, now: datetime) -> None:
    """Have entries that were there before, and say something else now, tell where that came from."""
    for entry, draft in zip(stored, drafts, strict=True):
        if entry.content_version > 1 and entry.updated_at == now:
            metadata: dict[str, Any] = entry.metadata | draft.metadata
            Memory.objects.filter(id=entry.id).update(metadata=metadata, source=draft.source)


def settle(entries: Sequence[AgentShortTermMemory], *, now: datetime) -> None:
    """Mark promoted entries; delete those that only waited for it."""
    rows = AgentShortTermMemory.objects.filter(id__in=[entry.id for entry in entries])
    rows.filter(expires_at__lte=now).delete()
    rows.update(promoted_at=now)


def record_promotion(owner: Owner, entries: Sequence[AgentShortTermMemory]) -> None:
    record(
        owner,
        operation="promote",
        memory_type="short_term",
        affected_ids=[entry.id for entry in entries],
        session_id=entries[0].session_id,
        result_count=len(entries),
    )
