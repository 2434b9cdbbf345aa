"""Consolidation: short-term entries that were read often become entries of their agent's long-term memory.

A batch is one transaction: the entries come to be and their sources are marked, or neither. So it may be killed, run
again, and run by two at once, who wait for each other at the sources.

Keys are the agent's: the same key of another session becomes the entry's next version, and the history keeps what the
earlier one said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from memory.audit import record
from memory.models import AgentShortTermMemory, ContextEntry, Kind, Memory, PersistentContext
from memory.models.short_term import ShortTermQuerySet
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft, store_entries, text_of
from memory.services.contexts.keys import keyed_identity
from memory.services.contexts.manage import lock_context, own_context
from memory.services.embedding.embed import Embedded, embed_texts

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
    """What was kept for good of a session: the keys, each once, in the order in which their entries came to be."""

    session_id: str
    keys: Sequence[str]


def consolidate_session(owner: Owner, session_id: str, *, now: datetime) -> Consolidated:
    """Promote what the agent read often in a session (PROMOTED_FROM times), live or expired, and not since written.

    Each goes into the agent's own context under its key, and tells there where it came from; over what is there, as its
    next version, if it says something else, with the types and the metadata that are there. Live ones stay until they
    expire. Raises Conflict where that context is archived: they wait.
    """
    waiting = AgentShortTermMemory.objects.visible_to(owner).to_promote().filter(session_id=session_id)
    batches = promote_in_batches(owner, waiting, now=now)
    keys = dict.fromkeys(key for promoted in batches for key in promoted)
    return Consolidated(session_id=session_id, keys=list(keys))


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
    """In the order in which they came to be; where a key comes again, a new batch begins: both become versions."""
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
        context = lock_context(owner, own_context(owner, now=now).id)
        taken = taken_keys(context, [entry.memory_key for entry in waiting])
        withheld = {key for key, is_quarantined in taken.items() if is_quarantined}
        entries = [entry for entry in waiting if entry.memory_key not in withheld]
        if not entries:
            return []
        drafts = [draft_over(entry) if entry.memory_key in taken else draft_of(entry) for entry in entries]
        store_entries(owner, context.id, drafts=drafts, embedded=embedded, now=now)
        settle(entries, now=now)
        record_promotion(owner, entries)
    return [entry.memory_key for entry in entries]


def taken_keys(context: PersistentContext, keys: Sequence[str]) -> dict[str, bool]:
    """Those under which a locked context has an entry, and whether it is one that nobody may see or write over."""
    identities = {keyed_identity(context.id, key): key for key in keys}
    rows = Memory.objects.filter(account_id=context.account_id, kind=Kind.CONTEXT_ENTRY, identity__in=identities)
    return {identities[identity]: is_hidden for identity, is_hidden in rows.values_list("identity", "quarantined")}


def draft_over(entry: AgentShortTermMemory) -> EntryDraft:
    """For a key that is taken: what the entry is, and what its metadata say, is the agent's."""
    return EntryDraft(key=entry.memory_key, value=entry.memory_value)


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


def settle(entries: Sequence[AgentShortTermMemory], *, now: datetime) -> None:
    """Mark promoted entries; delete those that only waited for it."""
    rows = AgentShortTermMemory.objects.filter(id__in=[entry.id for entry in entries])
    rows.filter(Q(superseded=True) | Q(expires_at__lte=now)).delete()
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
