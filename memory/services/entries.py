"""Context entries (P5): stored, read, edited in versions, weighed, removed.

Every write locks the context first, then the entry: the same order everywhere. A removed entry is archived: no read and
no search meets it, its history stays, and restoring a snapshot brings it back. To be rid of the text, staff delete it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Greatest, Least

from memory.audit import record
from memory.errors import Conflict, NotFound
from memory.models import ContextEntry, ContextEntryVersion, Kind, Memory, PersistentContext
from memory.models.contexts import OWN_CONTEXT
from memory.owner import Owner
from memory.services.access import Versions, check_version
from memory.services.access_log import Action, log_writes
from memory.services.accounts import note_agent
from memory.services.contexts import find_context, lock_context
from memory.services.embedding import Embedded
from memory.services.entry_versions import add_versions, change_child, change_values
from memory.services.memories import OwnVector, Rewording, reword_memories, store_memories
from memory.tiers.base import keyed_json, to_json
from memory_project.ids import uuid7

NOT_GIVEN: Any = object()
"""No value beside the content; None would be JSON's null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """An entry before it is stored: a content, or a value (any JSON), with a key or without.

    What is searched is the content, else the value as `text_of` tells it; under a key, the value is the content where
    none is given.
    """

    content: str = ""
    key: str = ""
    value: Any = NOT_GIVEN
    entry_type: str = ContextEntry.EntryType.OBSERVATION
    source_type: str = ContextEntry.SourceType.AGENT
    memory_type: str = ContextEntry.MemoryType.FACTUAL
    importance: float = 0.5
    confidence: float = 1.0
    event_time: datetime | None = None
    source: str = "agent"
    metadata: dict[str, Any] = field(default_factory=dict)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """New content of an entry, by whom. `restored_from` is the version whose content it is."""

    content: str
    value: Any = NOT_GIVEN
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
    """Store entries of a context; one under a key that is taken becomes that entry's next version, if it says more.

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
            (taken[key], Edit(content=draft.text, value=draft.stored_value, own=draft.own))
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
            entry_type=draft.entry_type,
            source_type=draft.source_type,
            memory_type=draft.memory_type,
            importance=draft.importance,
            confidence=draft.confidence,
            event_time=draft.event_time or now,
            source=draft.source,
            metadata=draft.metadata,
        )
        for draft in drafts
    ]
    own = {draft.id: draft.own for draft in drafts if draft.own is not None}
    return rows and store_memories(owner, rows, embedded=embedded, own=own, now=now)


def keyed_identity(context_id: UUID, key: str) -> str:
    """What makes a keyed entry the same thing again."""
    return f"{context_id}:{key}"


def lock_keyed(context: PersistentContext, keys: Sequence[str]) -> dict[str, ContextEntry]:
    """The entries of a locked context under these keys, removed ones too. Raises Conflict for a quarantined one."""
    if not keys:
        return {}
    identities = [keyed_identity(context.id, key) for key in keys]
    rows = ContextEntry.objects.filter(account_id=context.account_id, kind=Kind.CONTEXT_ENTRY, identity__in=identities)
    # memories before what their kinds hold, as corrections lock them, or the two would wait for each other
    locked: Any = rows.order_by("id").select_for_update(of=("memory_ptr", "self"))
    if any(entry.quarantined for entry in locked):
        # written to, it would stay out of everybody's sight
        raise Conflict("an entry under this key is quarantined")
    return {entry.key: entry for entry in locked}


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

    What an entry says already changes nothing. As many statements for many as for one.
    """
    changed = [(entry, edit) for entry, edit in edits if is_gone(entry, now) or is_other(entry, edit)]
    if not changed:
        return
    entries = [entry for entry, _edit in changed]
    bring_back([entry for entry in entries if is_gone(entry, now)])
    rewordings = [Rewording(row=entry, text=edit.content, own=edit.own) for entry, edit in changed]
    reword_memories(owner, rewordings, embedded=embedded, now=now)
    for entry, edit in changed:
        entry.value = value_beside(edit.content, edit.value, key=entry.key)
        entry.content_version += 1
    change_values(entries)
    add_versions(entries, editor=editor, restored_from=restored_from, now=now)
    action = Action.UPDATE if restored_from is None else Action.RESTORE
    log_writes(owner, [touched(entry) for entry in entries], action=action, now=now)
    record_entries(owner, entries, action.value)


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


FIND_KEYED = """
SELECT m.id, c.id, e.value FROM persistent_contexts c
JOIN memories m ON m.account_id = c.account_id AND m.kind = 'context_entry' AND m.identity = c.id::text || ':' || %s
JOIN context_entries e ON e.memory_ptr_id = m.id
WHERE c.account_id = %s AND c.agent_id = %s AND c.team_id IS NULL AND c.name = %s AND c.scope = 'agent'
    AND NOT m.archived AND NOT m.quarantined AND (m.expires_at IS NULL OR m.expires_at > %s)
"""


class KeyedValue(NamedTuple):
    """What an agent's own context holds under a key; `value` may be None itself, which is JSON's null."""

    entry_id: UUID
    context_id: UUID
    value: Any


def find_keyed(owner: Owner, key: str, *, now: datetime) -> KeyedValue | None:
    """None where the agent's own context, archived or not, has nothing under the key. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(FIND_KEYED, [key, owner.account_id, owner.agent_id, OWN_CONTEXT, now])
        row = cursor.fetchone()
    return KeyedValue(*row) if row else None


def touched(entry: ContextEntry) -> tuple[UUID, UUID]:
    """As the access log takes it."""
    return entry.context_id, entry.id  # type: ignore[return-value]  # entries have contexts: the database sees to it


def record_entries(owner: Owner, entries: Sequence[ContextEntry], operation: str) -> None:
    record(owner, operation=operation, memory_type="semantic", affected_ids=[entry.id for entry in entries])
