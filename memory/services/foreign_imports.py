"""Import of memories from other services: notes, facts with their validity, and items of stores.

A record is known by its id in the other service, so a repeated import stores nothing twice. Each is stored by itself,
so that one which is refused does not keep the others out.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import transaction

from memory.errors import MemoryServiceError
from memory.extraction.foreign_memories import ForeignMemory, Record, SkippedRecord
from memory.identity import digest_parts
from memory.masking import MASK_POLICY, mask_secrets
from memory.models import Account, ContextEntry, Kind, Memory, PersistentContext
from memory.owner import Owner
from memory.services.contexts.manage import get_or_create_context
from memory.services.custody.marks import refuse_erased_user
from memory.services.embedding.embed import EmbeddedTexts, EmbeddingBudget
from memory.services.facts.learn import FactDraft, learn_fact
from memory.services.items.paths import ItemPath
from memory.services.items.store import ItemDraft, ItemWrites, embed_items, store_items
from memory.services.notes import NoteDraft, store_note
from memory_project.batches import batched

BATCH = 200
EXPIRED = "It has expired."
ITEM_CONTEXT = "langgraph"
"""Name of the persistent context of items, which is where the integration of LangGraph's store looks for them."""


@dataclass(slots=True)
class ForeignCounts:
    """Counts of records by kind, of those that are there already, and of those left out by reason."""

    imported: Counter[str] = field(default_factory=Counter)
    already_there: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def import_foreign_memories(
    owner: Owner, source: str, records: Iterable[Record], *, now: datetime, budget: EmbeddingBudget
) -> ForeignCounts:
    """Store records and return their counts.

    What names no agent or user belongs to those of the owner. Texts that the budget leaves without vectors are queued.
    """
    masks = Account.objects.filter(id=owner.account_id, secrets=MASK_POLICY).exists()
    counts, waiting = ForeignCounts(), map(masked_record, records) if masks else records
    for batch in batched(waiting, BATCH):
        texts = [each.text for each in batch if isinstance(each, ForeignMemory) and each.text]
        store_batch(owner, source, batch, embedded=budget.embed(texts), now=now, counts=counts)
    return counts


def masked_record(record: Record) -> Record:
    """Return a record with the secrets in it masked, before anything embeds them."""
    if isinstance(record, SkippedRecord):
        return record
    masked = {name: mask_secrets(getattr(record, name)) for name in ("text", "metadata", "value")}
    return replace(record, **masked)


def store_batch(
    owner: Owner,
    source: str,
    batch: Sequence[Record],
    *,
    embedded: EmbeddedTexts,
    now: datetime,
    counts: ForeignCounts,
) -> None:
    for record in batch:
        if isinstance(record, SkippedRecord):
            counts.left_out[record.reason] += 1
            continue
        if record.expires_at is not None and record.expires_at <= now:
            counts.left_out[EXPIRED] += 1
            continue
        try:
            with transaction.atomic():
                is_new = store_record(owner, source, record, embedded=embedded, now=now)
        except MemoryServiceError as err:
            counts.left_out[str(err)] += 1
            continue
        if is_new:
            counts.imported[record.kind] += 1
        else:
            counts.already_there += 1


def store_record(
    importer: Owner, source: str, record: ForeignMemory, *, embedded: EmbeddedTexts, now: datetime
) -> bool:
    """Store a record and return True if it is new. Raises MemoryServiceError for what is refused."""
    owner = Owner(
        account_id=importer.account_id,
        agent_id=record.agent_id or importer.agent_id,
        user_id=record.user_id or importer.user_id,
        actor=importer.actor,
    )
    refuse_erased_user(owner.account_id, owner.user_id)
    if record.kind == Kind.CONTEXT_ENTRY:
        return store_new_item(owner, record, now=now)
    if record.event_time is not None and record.event_time > now:
        # other services date plans by the day that is planned
        record = replace(record, event_time=now)
    if record.kind == Kind.FACT:
        return learn_fact(owner, make_fact_draft(source, record), embedded=embedded, now=now).is_new
    identity = f"{source}:{digest_parts(source, record.source_id)}"
    if Memory.objects.filter(account_id=owner.account_id, kind=Kind.NOTE, identity=identity).exists():
        return False
    draft = NoteDraft(
        text=record.text,
        metadata=record.metadata,
        event_time=record.event_time,
        expires_at=record.expires_at,
        source=source,
        identity=identity,
    )
    store_note(owner, draft, embedded=embedded, now=now)
    return True


def make_fact_draft(source: str, record: ForeignMemory) -> FactDraft:
    return FactDraft(
        claim=record.text,
        metadata=record.metadata,
        event_time=record.event_time,
        valid_from=record.valid_from,
        valid_to=record.valid_to,
        source=source,
    )


def store_new_item(owner: Owner, record: ForeignMemory, *, now: datetime) -> bool:
    """Store an item, unless its path is taken. Its vector is made by the job `embed`."""
    columns = {"agent_id": owner.agent_id, "team": None, "name": ITEM_CONTEXT, "scope": PersistentContext.Scope.AGENT}
    context = get_or_create_context(owner, columns, defaults={"updated_at": now})
    path = ItemPath(record.namespace, record.key)
    rows = ContextEntry.objects.filter(account_id=owner.account_id, context_id=context.id, archived=False)
    if rows.filter(key=path.text).exists():
        return False
    seconds = (record.expires_at - now).total_seconds() if record.expires_at else None
    if seconds is not None and record.ttl_minutes is not None:
        # reads extend it by its whole time, so the rest of it would be too little
        seconds = record.ttl_minutes * 60
    # what the integration's store embeds by default: the value as a whole
    texts = [json.dumps(record.value, sort_keys=True, ensure_ascii=False)] if record.value else []
    draft = ItemDraft(path=path, value=record.value, texts=texts, ttl_seconds=seconds)
    # items belong to the agent, as those that the store itself keeps
    agent = Owner(account_id=owner.account_id, agent_id=owner.agent_id, actor=owner.actor)
    writes = ItemWrites(drafts=[draft])
    store_items(agent, context.id, writes, embedded=embed_items(agent, ItemWrites()), editor=owner.agent_id, now=now)
    return True
