"""Notes: texts to remember that are nothing else. `store_note` and `change_note` write them.

Everything else about them (recall, merging of repeats, decay, correction by staff, erasure) is that of any kind.
`services.forgetting` reads and deletes memories of any kind by their id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.audit import texts_metadata
from memory.errors import Unprocessable, require_found
from memory.invisible_characters import is_blank
from memory.masking import masks_secrets
from memory.models import Kind, Memory
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_changeable, check_version
from memory.services.conversations.lifecycle import look_up_conversation
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.embedding.serving import serving_model
from memory.services.forgetting import check_writer
from memory.services.memories.store import (
    ClientVector,
    MemoryDraft,
    TextUpdate,
    audit_memories,
    check_event_time,
    own_vectors,
    store_memories,
    update_texts,
)
from memory.services.replacements import relink_replaced_statements

MAX_NOTE_CHARACTERS = 100_000
DEFAULT_IMPORTANCE = 0.5
COLUMN_OF_FIELD = {"importance": "salience"}
CHANGEABLE = frozenset({"text", "metadata", "event_time", "importance", "expires_at"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDraft(MemoryDraft):
    """A note before it is stored. `importance` is from 0 to 1; it fades while nobody reads the note.

    `identity` says what makes it the same note again, which is stored once. Default: nothing does.
    """

    text: str
    importance: float = DEFAULT_IMPORTANCE
    expires_at: datetime | None = None
    conversation_id: str = ""
    identity: str = ""


@masks_secrets
def store_note(owner: Owner, draft: NoteDraft, *, embedded: EmbeddedTexts, now: datetime) -> Memory:
    """Store a note. Embed its text first (`embed_texts`), outside transactions.

    Raises Unprocessable for invalid values, and for a conversation that does not exist or in which the agent takes no
    part.
    """
    check_note_values({"text": draft.text, "importance": draft.importance, "expires_at": draft.expires_at}, now=now)
    if draft.conversation_id and look_up_conversation(owner, draft.conversation_id) is None:
        raise Unprocessable("there is no such conversation, or the agent takes no part in it")
    note = Memory(
        kind=Kind.NOTE,
        text=draft.text,
        salience=draft.importance,
        expires_at=draft.expires_at,
        conversation_id=draft.conversation_id,
        identity=draft.identity,
        **draft.shared_columns(now=now),
    )
    store_memories(owner, [note], embedded=embedded, own=own_vectors([draft]), now=now)
    return note


def check_note_values(values: Mapping[str, Any], *, now: datetime) -> None:
    """Raise Unprocessable for invalid values from any caller; the edges report shape errors in more detail before."""
    if "text" in values and (is_blank(values["text"]) or len(values["text"]) > MAX_NOTE_CHARACTERS):
        raise Unprocessable(f"the text of a note must have 1 to {MAX_NOTE_CHARACTERS} characters, not only blanks")
    if not 0 <= values.get("importance", 0) <= 1:
        raise Unprocessable("importance must be between 0 and 1")
    expires_at = values.get("expires_at")
    if expires_at is not None and expires_at <= now:
        raise Unprocessable("expires_at must be in the future")
    if "event_time" in values:
        check_event_time(values["event_time"], now=now)


@masks_secrets
def change_note(
    owner: Owner,
    note_id: UUID,
    *,
    changes: Mapping[str, Any],
    embedded: EmbeddedTexts,
    own: ClientVector | None = None,
    expected: ExpectedVersions = None,
    now: datetime,
) -> Memory:
    """Change a note (CHANGEABLE). Equal values change nothing. Embed a new text first.

    Raises NotFound, Forbidden, StaleVersion, and Unprocessable for invalid values and memories of other kinds.
    """
    check_changeable(changes, allowed=CHANGEABLE, what="note")
    check_note_values(changes, now=now)
    with transaction.atomic():
        note = lock_note(owner, note_id, now=now)
        check_version(note.version, expected)
        wanted = {COLUMN_OF_FIELD.get(name, name): value for name, value in changes.items()}
        columns = {name: value for name, value in wanted.items() if getattr(note, name) != value}
        if not columns:
            return note
        rows = Memory.objects.filter(account_id=owner.account_id, id=note.id)
        texts = [columns.pop("text")] if "text" in columns else []
        for name, value in columns.items():
            setattr(note, name, value)
        if not texts:
            note.version, note.updated_at = note.version + 1, now
        rows.update(**columns, version=note.version, updated_at=now)
        if texts:
            update_texts(owner, [TextUpdate(row=note, text=texts[0], own=own)], embedded=embedded, now=now)
        elif "event_time" in columns:
            relink_replaced_statements(owner.account_id, [note], model=serving_model().name)
        metadata = {"columns": sorted(changes)} | texts_metadata(owner, texts)
        audit_memories(owner, "update", [note], metadata=metadata)
    return note


def lock_note(owner: Owner, note_id: UUID, *, now: datetime) -> Memory:
    """Lock a note that the owner may change, until the transaction ends."""
    rows = Memory.objects.visible_to(owner, Kind.NOTE).live(now).filter(id=note_id)
    note = require_found(rows.select_for_update(no_key=True, of=("self",)).first(), "note")
    check_writer(owner, note)
    return note
