"""Context entries (P5): stored, read, edited in versions, weighed, removed.

Every write locks the context first, then the entry: the same order everywhere. A removed entry is archived: no read and
no search meets it, its history stays, and restoring a snapshot brings it back. To be rid of the text, staff delete it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Greatest, Least

from memory.audit import record, texts_kept
from memory.errors import NotFound
from memory.models import ContextEntry, ContextEntryVersion, Kind, Memory, PersistentContext
from memory.owner import Owner
from memory.services.accounts.access import Versions, check_version
from memory.services.accounts.register import note_agent
from memory.services.contexts.access_log import Action, log_writes
from memory.services.contexts.keys import keyed_identity, lock_keyed
from memory.services.contexts.manage import find_context, lock_context
from memory.services.contexts.versions import (
    add_versions,
    change_child,
    change_columns,
    change_metadata,
)
from memory.services.embedding.embed import Embedded
from memory.services.memories.store import OwnVector, Rewording, reword_memories, store_memories
from memory.tiers.base import keyed_json, to_json
from memory_project.ids import uuid7

NOT_GIVEN: Any = object()
"""No value beside the content; None would be JSON's null."""

ATTRIBUTES = ("entry_type", "source_type", "memory_type", "importance", "confidence", "metadata")
"""What clients say of an entry beside its content: columns, of which each is given or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """An entry before it is stored: a content, or a value (any JSON), with a key or without.

    What is searched is the content, else the value as `text_of` tells it; under a key, the value is the content where
    none is given. Of the ATTRIBUTES, a new entry has the model's defaults where none is given; one under a key that is
    taken keeps its own. `event_time` and `source` are of new entries alone.
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
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)

    @property
    def text(self) -> str:
        return self.content or text_of(self.value)

    @property
    def stored_value(self) -> Any:
        """Raises TooLarge above TIER_VALUE_BYTES."""
        check_value(self.value)
        return value_beside(self.content, self.value, key=self.key)

    @property
    def given(self) -> dict[str, Any]:
        """The attributes that are given."""
        return {name: getattr(self, name) for name in ATTRIBUTES if getattr(self, name) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """New content of an entry, by whom, and new attributes. `restored_from` is the version whose content it is."""

    content: str
    value: Any = NOT_GIVEN
    attributes: Mapping[str, Any] = field(default_factory=dict)
    editor: str = ""
    own: OwnVector | None = None
    restored_from: int | None = None


def text_of(value: Any) -> str:
    """What a JSON value says to a search: a text itself, anything else (and blanks) as JSON.

    Raises TooLarge above TIER_VALUE_BYTES.
    """
    json = keyed_json(value)
    return value if isinstance(value, str) and value.strip() else json


def check_value(value: Any) -> None:
    """Raises TooLarge for one above TIER_VALUE_BYTES."""
    if value is not NOT_GIVEN:
        keyed_json(value)


def value_beside(content: str, value: Any, *, key: str) -> Any:
    """What is stored as the value: as given, else the content where a key asks for one."""
    if value is NOT_GIVEN:
        return content if key else None
    return value


def visible_entries(owner: Owner, *, now: datetime) -> QuerySet[ContextEntry]:
    """Those that the owner may read, in archived contexts too."""
    rows: Any = ContextEntry.objects.visible_to(owner, Kind.CONTEXT_ENTRY).live(now)
    found: QuerySet[ContextEntry] = rows
    return found


def entries_of_context(owner: Owner, context_id: UUID, *, now: datetime) -> QuerySet[ContextEntry]:
    """Raises NotFound for a context that the owner may not read."""
    context = find_context(owner, context_id)
    return visible_entries(owner, now=now).filter(context_id=context.id)


def find_entry(owner: Owner, entry_id: UUID, *, now: datetime) -> ContextEntry:
    """Raises NotFound."""
    entry = visible_entries(owner, now=now).filter(id=entry_id).first()
    if entry is None:
        raise NotFound("no such entry")
    return entry


def store_entries(
    owner: Owner, context_id: UUID, *, drafts: Sequence[EntryDraft], embedded: Embedded, editor: str = "", now: datetime
) -> list[ContextEntry]:
    """Store entries of a context; one under a key that is taken becomes that entry's next version, if it says another
    thing, and gives it the attributes that it names.

    They come back in the order of the drafts. Embed their texts first (`embed_texts`), outside transactions. Raises
    NotFound, Forbidden, Conflict for an archived context, TooLarge.
    """
    with transaction.atomic():
        note_agent(owner.account_id, owner.agent_id)
        context = lock_context(owner, context_id)
        taken = lock_keyed(context, [draft.key for draft in drafts if draft.key])
        # a key that is named twice is the same entry twice, the last value its latest
        new = {draft.key or draft.id: draft for draft in drafts if draft.key not in taken}
        rows = {row.key or row.id: row for row in insert_entries(owner, context, list(new.values()), embedded, now)}
        add_versions(rows.values(), editor=editor or owner.agent_id, now=now)
        log_writes(owner, [(context.id, row.id) for row in rows.values()], action=Action.CREATE, now=now)
        said = {draft.key: draft for draft in drafts if draft.key in taken}
        edits = [
            (
                taken[key],
                Edit(content=draft.text, value=draft.stored_value, attributes=draft.given, own=draft.own),
            )
            for key, draft in said.items()
        ]
        apply_edits(owner, edits, embedded=embedded, editor=editor or owner.agent_id, now=now)
    return [taken.get(draft.key) or rows[draft.key or draft.id] for draft in drafts]


def insert_entries(
    owner: Owner, context: PersistentContext, drafts: Sequence[EntryDraft], embedded: Embedded, now: datetime
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


def update_content(
    owner: Owner, entry_id: UUID, *, edit: Edit, embedded: Embedded, expected: Versions = None, now: datetime
) -> ContextEntry:
    """Give an entry new content: its next version, which points to the one before. The same content changes nothing.

    Raises NotFound, Forbidden, Conflict for an archived context, TooLarge for a value, StaleVersion (`expected` are
    versions of the row).
    """
    if edit.restored_from is None:
        check_value(edit.value)
    with transaction.atomic():
        entry = lock_entry(owner, entry_id, expected=expected, now=now)
        apply_edits(
            owner, [(entry, edit)], embedded=embedded, editor=edit.editor, restored_from=edit.restored_from, now=now
        )
    return entry


def apply_edits(
    owner: Owner,
    edits: Sequence[tuple[ContextEntry, Edit]],
    *,
    embedded: Embedded,
    editor: str,
    restored_from: int | None = None,
    now: datetime,
) -> None:
    """Edit locked entries, each once, bringing back those that were removed or have expired.

    What an entry says already changes nothing; attributes alone make no version of its content. As many statements for
    many as for one.
    """
    reworded = [(entry, edit) for entry, edit in edits if is_gone(entry, now) or is_other(entry, edit)]
    relabelled = [entry for entry, edit in edits if relabel(entry, edit)]
    entries = list({entry.id: entry for entry in [*(entry for entry, _ in reworded), *relabelled]}.values())
    if not entries:
        return
    reword_entries(owner, reworded, embedded=embedded, now=now)
    said = {entry.id for entry, _ in reworded}
    for entry in relabelled:
        # those that are reworded have their next version already
        entry.version += entry.id not in said
    change_columns(entries)
    change_metadata(relabelled, now=now)
    add_versions([entry for entry, _ in reworded], editor=editor, restored_from=restored_from, now=now)
    action = Action.UPDATE if restored_from is None else Action.RESTORE
    log_writes(owner, [touched(entry) for entry in entries], action=action, now=now)
    texts = texts_kept(owner, (entry.text for entry, _ in reworded))
    record_entries(owner, entries, action.value, metadata=texts)


def reword_entries(
    owner: Owner, edits: Sequence[tuple[ContextEntry, Edit]], *, embedded: Embedded, now: datetime
) -> None:
    """Give entries other content, at the next version of both."""
    if not edits:
        return
    bring_back([entry for entry, _edit in edits if is_gone(entry, now)])
    rewordings = [Rewording(row=entry, text=edit.content, own=edit.own) for entry, edit in edits]
    reword_memories(owner, rewordings, embedded=embedded, now=now)
    for entry, edit in edits:
        entry.value = value_beside(edit.content, edit.value, key=entry.key)
        entry.content_version += 1


def relabel(entry: ContextEntry, edit: Edit) -> bool:
    """Set the attributes that the edit gives; whether any of them is another."""
    # as JSON, where 1 is neither 1.0 nor true
    other = {
        name: value
        for name, value in edit.attributes.items()
        if json.dumps(value, sort_keys=True) != json.dumps(getattr(entry, name), sort_keys=True)
    }
    for name, value in other.items():
        setattr(entry, name, value)
    return bool(other)


def is_gone(entry: ContextEntry, now: datetime) -> bool:
    return entry.archived or (entry.expires_at is not None and entry.expires_at <= now)


def is_other(entry: ContextEntry, edit: Edit) -> bool:
    """Whether the edit says anything that the entry does not."""
    value = value_beside(edit.content, edit.value, key=entry.key)
    return (edit.content, to_json(value)) != (entry.text, to_json(entry.value))


def bring_back(entries: Sequence[ContextEntry]) -> None:
    """Make removed and expired entries live again."""
    for entry in entries:
        entry.archived, entry.expires_at = False, None
    if entries:
        Memory.objects.filter(id__in=[entry.id for entry in entries]).update(archived=False, expires_at=None)


def lock_entry(owner: Owner, entry_id: UUID, *, expected: Versions = None, now: datetime) -> ContextEntry:
    """The context, then the entry, until the transaction ends.

    Raises NotFound, Forbidden where it may only be read, Conflict where the context is archived, StaleVersion.
    """
    context_id = visible_entries(owner, now=now).filter(id=entry_id).values_list("context_id", flat=True).first()
    if context_id is None:
        raise NotFound("no such entry")
    lock_context(owner, context_id)
    rows: Any = visible_entries(owner, now=now).filter(id=entry_id)
    # in the order of `lock_keyed`
    entry: ContextEntry | None = rows.select_for_update(of=("memory_ptr", "self")).first()
    if entry is None:
        raise NotFound("no such entry")
    check_version(entry.version, expected)
    note_agent(owner.account_id, owner.agent_id)
    return entry


def restore_version(
    owner: Owner,
    version: ContextEntryVersion,
    *,
    embedded: Embedded,
    editor: str,
    expected: Versions = None,
    now: datetime,
) -> ContextEntry:
    """Bring the content of a version (`find_version`) back, as a new version. Raises as `update_content` does."""
    edit = Edit(content=version.content, value=version.value, editor=editor, restored_from=version.number)
    return update_content(owner, version.entry_id, edit=edit, embedded=embedded, expected=expected, now=now)


def entry_versions(entry: ContextEntry) -> QuerySet[ContextEntryVersion]:
    """All versions of an entry that was found."""
    return ContextEntryVersion.objects.filter(account_id=entry.account_id, entry_id=entry.id)


def find_version(owner: Owner, entry_id: UUID, number: int, *, now: datetime) -> ContextEntryVersion:
    """Raises NotFound, for the entry or the version."""
    version = entry_versions(find_entry(owner, entry_id, now=now)).filter(number=number).first()
    if version is None:
        raise NotFound("no such version")
    return version


def boost_importance(
    owner: Owner, entry_id: UUID, *, by: float, expected: Versions = None, now: datetime
) -> ContextEntry:
    """Raise its importance by `by`, up to 1. Raises as `update_content` does."""
    return weigh_entry(owner, entry_id, by=by, action=Action.BOOST, expected=expected, now=now)


def reduce_importance(
    owner: Owner, entry_id: UUID, *, by: float, expected: Versions = None, now: datetime
) -> ContextEntry:
    """Lower its importance by `by`, down to 0. Raises as `update_content` does."""
    return weigh_entry(owner, entry_id, by=-by, action=Action.REDUCE, expected=expected, now=now)


def weigh_entry(
    owner: Owner, entry_id: UUID, *, by: float, action: Action, expected: Versions, now: datetime
) -> ContextEntry:
    with transaction.atomic():
        entry = lock_entry(owner, entry_id, expected=expected, now=now)
        moved = Least(Value(1.0), Greatest(Value(0.0), F("importance") + by))
        change_child(entry, importance=moved)
        Memory.objects.filter(id=entry.id).update(version=F("version") + 1, updated_at=now)
        log_writes(owner, [touched(entry)], action=action, now=now)
        record_entries(owner, [entry], action.value)
        entry.refresh_from_db(fields=["importance", "version", "updated_at"])
    return entry


def remove_entry(owner: Owner, entry_id: UUID, *, expected: Versions = None, now: datetime) -> None:
    """Take an entry out of reads and searches; its history stays. Raises as `update_content` does."""
    with transaction.atomic():
        entry = lock_entry(owner, entry_id, expected=expected, now=now)
        Memory.objects.filter(id=entry.id).update(archived=True, version=F("version") + 1, updated_at=now)
        log_writes(owner, [touched(entry)], action=Action.ARCHIVE, now=now)
        record_entries(owner, [entry], "archive")


def touched(entry: ContextEntry) -> tuple[UUID, UUID]:
    """As the access log takes it."""
    return entry.context_id, entry.id  # type: ignore[return-value]  # entries have contexts: the database sees to it


def record_entries(owner: Owner, entries: Sequence[ContextEntry], operation: str, **columns: Any) -> None:
    ids = [entry.id for entry in entries]
    record(owner, operation=operation, memory_type="semantic", affected_ids=ids, **columns)
