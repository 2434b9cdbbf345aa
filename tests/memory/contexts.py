"""Helpers for tests of contexts and entries, stored through the services."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memory.models import ContextEntry, PersistentContext
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft, EntryEdit, store_entries, update_entry_content
from memory.services.contexts.manage import ContextDraft, create_context
from memory.services.contexts.snapshots import RestoreCounts, create_snapshot, delete_snapshot, restore_snapshot
from memory.services.memories.store import ClientVector
from tests.memory.episodes import MODEL, NOTHING, NOW, direction

LATER = NOW + timedelta(hours=1)


def context_of(owner: Owner, name: str = "notes", **fields: Any) -> PersistentContext:
    """`fields` are those of the draft."""
    return create_context(owner, ContextDraft(name=name, **fields))


def entry(content: str, *, angle: float | None = None, **fields: Any) -> EntryDraft:
    """`fields` are those of the draft; at an angle, its similarity to angle 0 is known."""
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    return EntryDraft(content=content, own=own, **fields)


def keep(owner: Owner, context: PersistentContext, *drafts: EntryDraft, now: datetime = NOW) -> Sequence[ContextEntry]:
    return store_entries(owner, context.id, drafts=drafts, embedded=NOTHING, now=now)


def rewrite(owner: Owner, row: ContextEntry, content: str, *, now: datetime = NOW) -> ContextEntry:
    edit = EntryEdit(content=content, editor=owner.agent_id)
    return update_entry_content(owner, row.id, edit=edit, embedded=NOTHING, now=now)


def take_snapshot(owner: Owner, context: PersistentContext) -> UUID:
    return create_snapshot(owner, context.id, name="", now=NOW).id


def restore_entries(owner: Owner, context: PersistentContext, snapshot_id: UUID, **options: Any) -> RestoreCounts:
    return restore_snapshot(owner, context.id, snapshot_id, now=LATER, **options)


def drop_snapshot(owner: Owner, context: PersistentContext, snapshot_id: UUID) -> None:
    delete_snapshot(owner, context.id, snapshot_id)


def held(context: PersistentContext) -> set[tuple[Any, ...]]:
    """Return the entries of a context as restoring a snapshot has to bring them back."""
    rows = ContextEntry.objects.filter(context_id=context.id, archived=False, quarantined=False)
    return {
        (row.id, row.text, json.dumps(row.value), row.importance, row.confidence, attributes_of(row)) for row in rows
    }


def attributes_of(row: ContextEntry) -> tuple[str, ...]:
    """Return what a snapshot keeps of an entry besides its content and its weights."""
    return row.entry_type, row.source_type, row.memory_type, row.source, json.dumps(row.metadata)
