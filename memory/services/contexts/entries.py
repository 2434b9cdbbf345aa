"""Context entries (P5): store, read, edit in versions, change importance, remove.

Every write locks the context first, then the entry; all code uses this order. A removed entry is archived: reads and
searches skip it, its history stays, and restoring a snapshot brings it back. To destroy the text, staff delete it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Greatest, Least

from memory.audit import record_audit, texts_metadata
from memory.errors import require_found
from memory.masking import masks_secrets
from memory.models import ContextEntry, ContextEntryVersion, Kind, PersistentContext
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_version
from memory.services.accounts.register import register_agent
from memory.services.audit import write_waiting_reads
from memory.services.contexts.access_log import Action, entry_reference, log_writes
from memory.services.contexts.manage import find_context, keyed_identity, lock_context, lock_keyed_entries
from memory.services.contexts.versions import add_versions, entry_row, update_entry_columns
from memory.services.custody.traces import erase_traces_of_deleted
from memory.services.duplicates.resolve import end_merges
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.store import ClientVector, TextUpdate, store_memories, update_texts
from memory.tiers.base import keyed_json, to_json
from memory.tiers.json_documents import comparable_json
from memory_project.ids import uuid7

NOT_GIVEN: Any = object()
"""Marks a missing value; None would be JSON's null."""

ITEM_SOURCE = "item"
"""`source` of entries that were first stored as items (`services.items`), which context rot leaves alone."""

ATTRIBUTES = ("entry_type", "source_type", "memory_type", "importance", "confidence", "metadata")
"""Optional columns of an entry that clients may set next to its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """An entry before it is stored: a content, or a value (any JSON), with or without a key.

    Searches use the content, else the value as text (`searchable_text`); under a key, the value defaults to the
    content. ATTRIBUTES that are not given get the model's defaults in a new entry, and keep their values under an
    existing key. `event_time` and `source` apply to new entries only.
    """

    content: str = ""
    key: str = ""
    value: Any = NOT_GIVEN
    entry_type: str | None = None
    source_type: str | None = None
    memory_type: str | None = None
    importance: float | None = None
    confidence: float | None = None
    metadata: dict[str, Any] | None = None
    event_time: datetime | None = None
    source: str = "agent"
    own: ClientVector | None = None
    id: UUID = field(default_factory=uuid7)

    @property
    def text(self) -> str:
        return self.content or searchable_text(self.value)

    @property
    def stored_value(self) -> Any:
        """The value to store. Raises TooLarge above TIER_VALUE_BYTES."""
        check_value_size(self.value)
        return value_or_content(self.content, self.value, key=self.key)

    @property
    def given(self) -> dict[str, Any]:
        """The attributes that are given, by name."""
        return {name: getattr(self, name) for name in ATTRIBUTES if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryEdit:
    """New content and attributes of an entry, and its editor; `restored_from` is the version of that content."""

    content: str
    value: Any = NOT_GIVEN
    attributes: Mapping[str, Any] = field(default_factory=dict)
    editor: str = ""
    own: ClientVector | None = None
    restored_from: int | None = None


def searchable_text(value: Any) -> str:
    """Return a JSON value as text for searches: a non-blank text itself, anything else as JSON.

    Raises TooLarge above TIER_VALUE_BYTES.
    """
    json = keyed_json(value)
    return value if isinstance(value, str) and value.strip() else json


def check_value_size(value: Any) -> None:
    """Raise TooLarge for a value above TIER_VALUE_BYTES."""
    if value is not NOT_GIVEN:
        keyed_json(value)


def value_or_content(content: str, value: Any, *, key: str) -> Any:
    """Return the value to store: the given value, else the content if the entry has a key, else None."""
    if value is NOT_GIVEN:
        return content if key else None
    return value


def visible_entries(owner: Owner, *, now: datetime) -> QuerySet[ContextEntry]:
    """Return the live entries that the owner may read, those of archived contexts included."""
    return ContextEntry.objects.visible_to(owner, Kind.CONTEXT_ENTRY).live(now)


def entries_of_context(owner: Owner, context_id: UUID, *, now: datetime) -> QuerySet[ContextEntry]:
    """Return the live entries of a context. Raises NotFound for a context that the owner may not read."""
    context = find_context(owner, context_id)
    return visible_entries(owner, now=now).filter(context_id=context.id)


def find_entry(owner: Owner, entry_id: UUID, *, now: datetime) -> ContextEntry:
    """Return a live entry that the owner may read. Raises NotFound."""
    return require_found(visible_entries(owner, now=now).filter(id=entry_id).first(), "entry")


@masks_secrets
def store_entries(
    owner: Owner,
    context_id: UUID,
    *,
    drafts: Sequence[EntryDraft],
    embedded: EmbeddedTexts,
    editor: str = "",
    now: datetime,
) -> list[ContextEntry]:
    """Store entries of a context and return them in the order of the drafts.

    A draft whose key exists becomes the next version of that entry if its content differs, and sets the attributes that
    it gives. Embed the texts first (`embed_texts`), outside transactions. Raises NotFound, Forbidden, Conflict for an
    archived context, TooLarge.
    """
    with transaction.atomic():
        register_agent(owner.account_id, owner.agent_id)
        context = lock_context(owner, context_id)
        taken = lock_keyed_entries(context, [draft.key for draft in drafts if draft.key])
        # two drafts with the same key are one entry, and the last one wins
        new = {draft.key or draft.id: draft for draft in drafts if draft.key not in taken}
        rows = {row.key or row.id: row for row in insert_entries(owner, context, list(new.values()), embedded, now)}
        add_versions(rows.values(), editor=editor or owner.agent_id, now=now)
        log_writes(owner, [(context.id, row.id) for row in rows.values()], action=Action.CREATE, now=now)
        updates = {draft.key: draft for draft in drafts if draft.key in taken}
        edits = [
            (
                taken[key],
                EntryEdit(content=draft.text, value=draft.stored_value, attributes=draft.given, own=draft.own),
            )
            for key, draft in updates.items()
        ]
        apply_edits(owner, edits, embedded=embedded, editor=editor or owner.agent_id, now=now)
    return [taken.get(draft.key) or rows[draft.key or draft.id] for draft in drafts]


def insert_entries(
    owner: Owner, context: PersistentContext, drafts: Sequence[EntryDraft], embedded: EmbeddedTexts, now: datetime
) -> list[ContextEntry]:
    rows = [
        ContextEntry(
            id=draft.id,
            kind=Kind.CONTEXT_ENTRY,
            identity=keyed_identity(context.id, draft.key) if draft.key else "",
            context_id=context.id,
            text=draft.text,
            key=draft.key,
            value=draft.stored_value,
            event_time=draft.event_time or now,
            source=draft.source,
            **draft.given,
        )
        for draft in drafts
    ]
    own = {draft.id: draft.own for draft in drafts if draft.own is not None}
    return rows and store_memories(owner, rows, embedded=embedded, own=own, now=now)


@masks_secrets
def update_entry_content(
    owner: Owner,
    entry_id: UUID,
    *,
    edit: EntryEdit,
    embedded: EmbeddedTexts,
    expected: ExpectedVersions = None,
    now: datetime,
) -> ContextEntry:
    """Give an entry new content, as its next version. The same content changes nothing.

    Raises NotFound, Forbidden, Conflict for an archived context, TooLarge for a value, StaleVersion (`expected` refers
    to versions of the row).
    """
    if edit.restored_from is None:
        check_value_size(edit.value)
    with transaction.atomic():
        entry = lock_entry(owner, entry_id, expected=expected, now=now)
        apply_edits(
            owner, [(entry, edit)], embedded=embedded, editor=edit.editor, restored_from=edit.restored_from, now=now
        )
    return entry


def apply_edits(
    owner: Owner,
    edits: Sequence[tuple[ContextEntry, EntryEdit]],
    *,
    embedded: EmbeddedTexts,
    editor: str,
    restored_from: int | None = None,
    now: datetime,
) -> None:
    """Edit locked entries, each once, restoring those that were removed or have expired.

    Unchanged content makes no version, and neither do attributes alone. The number of statements does not depend on the
    number of entries.
    """
    rewritten = [(entry, edit) for entry, edit in edits if is_gone(entry, now) or changes_content(entry, edit)]
    relabelled = [entry for entry, edit in edits if update_attributes(entry, edit)]
    entries = list({entry.id: entry for entry in [*(entry for entry, _ in rewritten), *relabelled]}.values())
    if not entries:
        return
    update_entry_texts(owner, rewritten, embedded=embedded, now=now)
    rewritten_ids = {entry.id for entry, _ in rewritten}
    for entry in relabelled:
        # rewritten entries are at their next version already
        entry.version += entry.id not in rewritten_ids
    update_entry_columns(owner, entries, now=now)
    add_versions([entry for entry, _ in rewritten], editor=editor, restored_from=restored_from, now=now)
    action = Action.UPDATE if restored_from is None else Action.RESTORE
    texts = texts_metadata(owner, (entry.text for entry, _ in rewritten))
    record_writes(owner, entries, action=action, metadata=texts, now=now)


def update_entry_texts(
    owner: Owner, edits: Sequence[tuple[ContextEntry, EntryEdit]], *, embedded: EmbeddedTexts, now: datetime
) -> None:
    """Give entries other content, at the next version of the row and of the content."""
    if not edits:
        return
    revive_entries(owner, [entry for entry, _edit in edits if is_gone(entry, now)])
    updates = [TextUpdate(row=entry, text=edit.content, own=edit.own) for entry, edit in edits]
    update_texts(owner, updates, embedded=embedded, now=now)
    for entry, edit in edits:
        entry.value = value_or_content(edit.content, edit.value, key=entry.key)
        entry.content_version += 1


def update_attributes(entry: ContextEntry, edit: EntryEdit) -> bool:
    """Set the attributes that the edit gives, and return True if any of them differs."""
    other = {
        name: value
        for name, value in edit.attributes.items()
        if comparable_json(value) != comparable_json(getattr(entry, name))
    }
    for name, value in other.items():
        setattr(entry, name, value)
    return bool(other)


def is_gone(entry: ContextEntry, now: datetime) -> bool:
    return entry.archived or (entry.expires_at is not None and entry.expires_at <= now)


def changes_content(entry: ContextEntry, edit: EntryEdit) -> bool:
    """Return True if the edit's content or value differs from the entry's."""
    value = value_or_content(edit.content, edit.value, key=entry.key)
    return (edit.content, to_json(value)) != (entry.text, to_json(entry.value))


def revive_entries(owner: Owner, entries: Sequence[ContextEntry]) -> None:
    """Make removed, merged and expired entries live again. What a merged one gave its survivor stays there."""
    for entry in entries:
        entry.archived, entry.expires_at = False, None
    if entries:
        end_merges(owner.account_id, [entry.id for entry in entries])
        rows = ContextEntry.objects.filter(account_id=owner.account_id, id__in=[entry.id for entry in entries])
        rows.update(archived=False, expires_at=None)


def lock_entry(owner: Owner, entry_id: UUID, *, expected: ExpectedVersions = None, now: datetime) -> ContextEntry:
    """Lock the context, then the entry, until the transaction ends, and return the entry.

    Raises NotFound, Forbidden if it may only be read, Conflict if the context is archived, StaleVersion.
    """
    rows = visible_entries(owner, now=now).filter(id=entry_id)
    lock_context(owner, require_found(rows.values_list("context_id", flat=True).first(), "entry"))
    entry = require_found(rows.select_for_update().first(), "entry")
    check_version(entry.version, expected)
    register_agent(owner.account_id, owner.agent_id)
    return entry


def restore_version(
    owner: Owner,
    version: ContextEntryVersion,
    *,
    embedded: EmbeddedTexts,
    editor: str,
    expected: ExpectedVersions = None,
    now: datetime,
) -> ContextEntry:
    """Store the content of an old version (`find_version`) as a new version. Raises as `update_entry_content` does."""
    edit = EntryEdit(content=version.content, value=version.value, editor=editor, restored_from=version.number)
    return update_entry_content(owner, version.entry_id, edit=edit, embedded=embedded, expected=expected, now=now)


def entry_versions(entry: ContextEntry) -> QuerySet[ContextEntryVersion]:
    """Return all versions of an entry."""
    return ContextEntryVersion.objects.filter(account_id=entry.account_id, entry_id=entry.id)


def find_version(owner: Owner, entry_id: UUID, number: int, *, now: datetime) -> ContextEntryVersion:
    """Return a version of an entry. Raises NotFound, for the entry or the version."""
    versions = entry_versions(find_entry(owner, entry_id, now=now))
    return require_found(versions.filter(number=number).first(), "version")


def boost_importance(
    owner: Owner, entry_id: UUID, *, by: float, expected: ExpectedVersions = None, now: datetime
) -> ContextEntry:
    """Raise the importance by `by`, up to 1. Raises as `update_entry_content` does."""
    return change_importance(owner, entry_id, by=by, action=Action.BOOST, expected=expected, now=now)


def reduce_importance(
    owner: Owner, entry_id: UUID, *, by: float, expected: ExpectedVersions = None, now: datetime
) -> ContextEntry:
    """Lower the importance by `by`, down to 0. Raises as `update_entry_content` does."""
    return change_importance(owner, entry_id, by=-by, action=Action.REDUCE, expected=expected, now=now)


def change_importance(
    owner: Owner, entry_id: UUID, *, by: float, action: Action, expected: ExpectedVersions, now: datetime
) -> ContextEntry:
    with transaction.atomic():
        entry = lock_entry(owner, entry_id, expected=expected, now=now)
        moved = Least(Value(1.0), Greatest(Value(0.0), F("importance") + by))
        entry_row(entry).update(importance=moved, version=F("version") + 1, updated_at=now)
        record_writes(owner, [entry], action=action, now=now)
        entry.refresh_from_db(fields=["importance", "version", "updated_at"])
    return entry


def remove_entry(owner: Owner, entry_id: UUID, *, expected: ExpectedVersions = None, now: datetime) -> None:
    """Archive an entry, so that reads and searches skip it; its history stays.

    Raises as `update_entry_content` does.
    """
    write_waiting_reads(owner.account_id)
    with transaction.atomic():
        entry = lock_entry(owner, entry_id, expected=expected, now=now)
        erase_traces_of_deleted(owner, [entry.id])
        entry_row(entry).update(archived=True, version=F("version") + 1, updated_at=now)
        record_writes(owner, [entry], action=Action.ARCHIVE, now=now)


def record_writes(
    owner: Owner, entries: Sequence[ContextEntry], *, action: Action, metadata: Mapping[str, Any] = {}, now: datetime
) -> None:
    """Log the writes in the access log of the contexts and in the audit log."""
    log_writes(owner, [entry_reference(entry) for entry in entries], action=action, now=now)
    ids = [entry.id for entry in entries]
    record_audit(owner, operation=action.value, memory_type="semantic", affected_ids=ids, metadata=metadata)
