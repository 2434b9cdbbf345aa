"""Snapshots of contexts (P4): which entries exist, at which version, with which attributes; and restoring them.

A restore changes the present, never the history: other content comes back as a new version, and entries created since
are archived. The number of statements does not depend on the number of entries. Locks: the context, then its entries by
id. A restore changes neither quarantine nor expiry; expired entries count as deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory.audit import record_audit
from memory.errors import require_found
from memory.masking import masks_secrets
from memory.models import ContextSnapshot, Memory, PersistentContext
from memory.models.statements import execute_statement, fetch_rows
from memory.owner import Owner
from memory.services.contexts.access_log import Action, log_writes
from memory.services.contexts.manage import check_not_archived, find_context, lock_context, lock_managed_context
from memory.services.duplicates.resolve import end_merges
from memory.services.embedding.embed import MAX_TEXTS_PER_CALL, EmbeddedTexts
from memory.services.memories.store import TextUpdate, update_texts
from memory_project.ids import uuid7

NO_VECTORS = EmbeddedTexts(model="", width=0, vectors={})

ATTRIBUTES = """jsonb_build_object(
    'entry_type', m.entry_type, 'source_type', m.source_type, 'memory_type', m.memory_type,
    'source', m.source, 'metadata', m.metadata
)"""

INSERT_SNAPSHOT_ENTRIES = f"""
INSERT INTO context_snapshot_entries (id, account_id, snapshot_id, entry_id, number, importance, confidence, attributes)
SELECT gen_random_uuid(), m.account_id, %s, m.id, m.content_version, m.importance, m.confidence, {ATTRIBUTES}
FROM memories m
WHERE m.account_id = %s AND m.context_id = %s AND m.kind = 'context_entry' AND NOT m.archived
    AND (m.expires_at IS NULL OR m.expires_at > %s)
"""  # noqa: S608  made of constants

# in the order in which all transactions lock memories; counts them, to transfer no ids
LOCK_ENTRIES = """
SELECT count(*) FROM (
    SELECT FROM memories WHERE account_id = %s AND context_id = %s AND kind = 'context_entry'
    ORDER BY id FOR {lock}
) locked
"""
# rows of snapshots refer to these entries: nobody may delete them meanwhile
LOCK_REFERENCED_ENTRIES = LOCK_ENTRIES.format(lock="KEY SHARE")
LOCK_CHANGED_ENTRIES = LOCK_ENTRIES.format(lock="NO KEY UPDATE")

# what to do to each entry that exists now or will; attributes are compared as texts
PLAN_RESTORE = f"""
SELECT m.id, m.key, m.archived, m.quarantined, m.content_version AS from_version, s.number AS to_version,
    v.id IS NOT NULL AND (m.text <> v.content OR m.value::text IS DISTINCT FROM v.value::text) AS is_reworded,
    s.id IS NOT NULL AND (m.importance, m.confidence) <> (s.importance, s.confidence) AS is_reweighed,
    s.id IS NOT NULL AND s.attributes <> '{{}}' AND s.attributes::text <> {ATTRIBUTES}::text AS is_relabelled
FROM memories m
LEFT JOIN context_snapshot_entries s ON s.account_id = m.account_id AND s.entry_id = m.id AND s.snapshot_id = %s
LEFT JOIN context_entry_versions v ON v.account_id = m.account_id AND v.entry_id = m.id AND v.number = s.number
WHERE m.account_id = %s AND m.context_id = %s AND m.kind = 'context_entry'
    AND (m.expires_at IS NULL OR m.expires_at > %s) AND (s.id IS NOT NULL OR NOT m.archived)
ORDER BY m.id
"""  # noqa: S608  made of constants

READ_CONTENTS = """
SELECT v.entry_id, v.content FROM unnest(%s::uuid[], %s::int[]) AS wanted (id, number)
JOIN context_entry_versions v ON v.account_id = %s AND v.entry_id = wanted.id AND v.number = wanted.number
ORDER BY v.entry_id
"""

# a new version of each, after the latest, which is looked up by its whole unique key
ADD_VERSIONS = """
INSERT INTO context_entry_versions
    (id, account_id, entry_id, number, previous_version_id, content, value, editor, restored_from, created_at)
SELECT wanted.version_id, v.account_id, v.entry_id, m.content_version + 1,
    (
        SELECT latest.id FROM context_entry_versions latest WHERE latest.account_id = m.account_id
            AND latest.entry_id = m.id AND latest.number = m.content_version
    ),
    v.content, v.value, %s, v.number, %s
FROM unnest(%s::uuid[], %s::int[], %s::uuid[]) AS wanted (id, number, version_id)
JOIN memories m ON m.account_id = %s AND m.id = wanted.id
JOIN context_entry_versions v ON v.account_id = m.account_id AND v.entry_id = m.id AND v.number = wanted.number
"""

# entries that the snapshot lacks are archived; old snapshots have no attributes; rows with a new text are at their next
# version already
UPDATE_ENTRIES = """
UPDATE memories m SET archived = wanted.archived, version = m.version + (NOT wanted.is_reworded)::int, updated_at = %s,
    importance = COALESCE(s.importance, m.importance), confidence = COALESCE(s.confidence, m.confidence),
    entry_type = COALESCE(s.attributes->>'entry_type', m.entry_type),
    source_type = COALESCE(s.attributes->>'source_type', m.source_type),
    memory_type = COALESCE(s.attributes->>'memory_type', m.memory_type),
    source = COALESCE(s.attributes->>'source', m.source), metadata = COALESCE(s.attributes->'metadata', m.metadata),
    value = CASE WHEN wanted.is_reworded THEN v.value ELSE m.value END,
    content_version = m.content_version + wanted.is_reworded::int
FROM unnest(%s::uuid[], %s::bool[], %s::bool[]) AS wanted (id, archived, is_reworded)
LEFT JOIN context_snapshot_entries s ON s.account_id = %s AND s.snapshot_id = %s AND s.entry_id = wanted.id
LEFT JOIN context_entry_versions v ON v.account_id = s.account_id AND v.entry_id = s.entry_id AND v.number = s.number
WHERE m.account_id = %s AND m.id = wanted.id
"""


class RestoreStep(NamedTuple):
    """The work of a restore on one entry; `to_version` is None for an entry to archive, which the snapshot lacks."""

    entry_id: UUID
    key: str
    archived: bool
    quarantined: bool
    from_version: int
    to_version: int | None
    is_reworded: bool
    is_reweighed: bool
    is_relabelled: bool

    @property
    def is_removed(self) -> bool:
        return self.to_version is None

    @property
    def is_changed(self) -> bool:
        """True if the entry exists now and in the snapshot, with other content, weights or attributes."""
        return not self.archived and (self.is_reworded or self.is_reweighed or self.is_relabelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePreview:
    """The effect of a restore: every entry that exists now or would exist is in a list or counted as `unchanged`.

    `missing` is the number of entries of the snapshot that nobody will see: they expired, staff deleted them or that
    version, or they are quarantined.
    """

    changed: list[RestoreStep]
    returned: list[RestoreStep]
    removed: list[RestoreStep]
    unchanged: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreCounts:
    """The numbers of entries that a restore changed, brought back, archived, left alone and could not restore."""

    changed: int
    returned: int
    removed: int
    unchanged: int
    missing: int


@masks_secrets
def create_snapshot(owner: Owner, context_id: UUID, *, name: str, now: datetime) -> ContextSnapshot:
    """Store which entries the context holds, quarantined ones included.

    Raises NotFound, Forbidden if it may only be read, Conflict if it is archived.
    """
    with transaction.atomic():
        context = lock_context(owner, context_id)
        snapshot = ContextSnapshot(
            account_id=context.account_id, context=context, name=name, agent_id=owner.agent_id, created_at=now
        )
        snapshot.save(force_insert=True)
        execute_statement(LOCK_REFERENCED_ENTRIES, [context.account_id, context.id])
        snapshot.entry_count = execute_statement(
            INSERT_SNAPSHOT_ENTRIES, [snapshot.id, context.account_id, context.id, now]
        )
        snapshot.save(update_fields=["entry_count"])
        record_audit(
            owner,
            operation="snapshot",
            memory_type="context",
            affected_ids=[context.id, snapshot.id],
            result_count=snapshot.entry_count,
        )
    return snapshot


def list_snapshots(owner: Owner, context_id: UUID) -> QuerySet[ContextSnapshot]:
    """Return the snapshots of a context that the owner may read. Raises NotFound."""
    context = find_context(owner, context_id)
    return ContextSnapshot.objects.filter(account_id=context.account_id, context_id=context.id)


def find_snapshot(owner: Owner, context_id: UUID, snapshot_id: UUID) -> ContextSnapshot:
    """Return a snapshot of a readable context. Raises NotFound, also for a snapshot of another context."""
    return find_snapshot_of_context(find_context(owner, context_id), snapshot_id)


def find_snapshot_of_context(context: PersistentContext, snapshot_id: UUID) -> ContextSnapshot:
    rows = ContextSnapshot.objects.filter(account_id=context.account_id, context_id=context.id)
    return require_found(rows.filter(id=snapshot_id).first(), "snapshot")


def delete_snapshot(owner: Owner, context_id: UUID, snapshot_id: UUID) -> None:
    """Delete a snapshot.

    Raises NotFound, Forbidden for an owner that does not manage the context, Conflict if it is archived.
    """
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=None)
        check_not_archived(context)
        snapshot = find_snapshot_of_context(context, snapshot_id)
        # keeps entries, and with them their snapshot rows, from being deleted at the same time
        execute_statement(LOCK_REFERENCED_ENTRIES, [context.account_id, context.id])
        snapshot.delete()
        record_audit(owner, operation="delete_snapshot", memory_type="context", affected_ids=[context.id, snapshot_id])


def preview_restore(owner: Owner, context_id: UUID, snapshot_id: UUID, *, now: datetime) -> RestorePreview:
    """Return what a restore would do now, for an owner that may read the context. Raises NotFound."""
    snapshot = find_snapshot(owner, context_id, snapshot_id)
    return summarize_steps(snapshot, plan_restore(snapshot, now=now))


def summarize_steps(snapshot: ContextSnapshot, steps: Sequence[RestoreStep]) -> RestorePreview:
    """Return the preview of these steps without quarantined entries, which must stay unknown."""
    seen = [step for step in steps if not step.quarantined]
    wanted = [step for step in seen if not step.is_removed]
    changed = [step for step in wanted if step.is_changed]
    returned = [step for step in wanted if step.archived]
    return RestorePreview(
        changed=changed,
        returned=returned,
        removed=[step for step in seen if step.is_removed],
        unchanged=len(wanted) - len(changed) - len(returned),
        missing=snapshot.entry_count - len(wanted),
    )


def plan_restore(snapshot: ContextSnapshot, *, now: datetime) -> list[RestoreStep]:
    """Return a step for each entry that exists or would exist, ordered by id. One statement."""
    rows = fetch_rows(PLAN_RESTORE, [snapshot.id, snapshot.account_id, snapshot.context_id, now])
    return [RestoreStep(*row) for row in rows]


def texts_to_restore(owner: Owner, context_id: UUID, snapshot_id: UUID, *, now: datetime) -> list[str]:
    """Return the contents that a restore would bring back, for `embed_texts`; at most MAX_TEXTS_PER_CALL.

    Raises as `restore_snapshot` does, so that nothing is embedded for an owner that may not restore.
    """
    with transaction.atomic():
        snapshot = find_snapshot_of_context(lock_context(owner, context_id), snapshot_id)
    reworded = [step for step in plan_restore(snapshot, now=now) if step.is_reworded]
    return list(read_contents(snapshot, reworded[:MAX_TEXTS_PER_CALL]).values())


def restore_snapshot(
    owner: Owner,
    context_id: UUID,
    snapshot_id: UUID,
    *,
    editor: str = "",
    embedded: EmbeddedTexts | None = None,
    now: datetime,
) -> RestoreCounts:
    """Make the context hold the snapshot's entries, with their content, values, weights and attributes.

    `embedded` are the vectors of `texts_to_restore`, computed outside transactions; texts without a vector wait in the
    embedding queue. Repeating a restore changes nothing. Raises NotFound, Forbidden if the context may only be read,
    Conflict if it is archived.
    """
    with transaction.atomic():
        context = lock_context(owner, context_id)
        snapshot = find_snapshot_of_context(context, snapshot_id)
        # needed because staff corrections do not lock the context
        execute_statement(LOCK_CHANGED_ENTRIES, [context.account_id, context.id])
        steps = plan_restore(snapshot, now=now)
        restore_texts(owner, snapshot, steps, embedded=embedded or NO_VECTORS, editor=editor or owner.agent_id, now=now)
        touched = [step for step in steps if step.is_removed or step.is_changed or step.archived]
        restore_attributes(snapshot, touched, now)
        if returned := [step.entry_id for step in steps if step.archived]:
            end_merges(context.account_id, returned)
        record_restore(owner, snapshot, touched, now)
    preview = summarize_steps(snapshot, steps)
    return RestoreCounts(
        changed=len(preview.changed),
        returned=len(preview.returned),
        removed=len(preview.removed),
        unchanged=preview.unchanged,
        missing=preview.missing,
    )


def restore_texts(
    owner: Owner,
    snapshot: ContextSnapshot,
    steps: Sequence[RestoreStep],
    *,
    embedded: EmbeddedTexts,
    editor: str,
    now: datetime,
) -> None:
    """Give reworded entries the snapshot's content as their next version, with the vectors of that content only.

    `restore_attributes` sets their values and version numbers.
    """
    reworded = [step for step in steps if step.is_reworded]
    if not reworded:
        return
    ids, numbers = [step.entry_id for step in reworded], [step.to_version for step in reworded]
    new_ids = [uuid7() for _ in ids]
    execute_statement(ADD_VERSIONS, [editor, now, ids, numbers, new_ids, snapshot.account_id])
    contents = read_contents(snapshot, reworded)
    rows = Memory.objects.filter(account_id=snapshot.account_id, id__in=ids)
    update_texts(owner, [TextUpdate(row=row, text=contents[row.id]) for row in rows], embedded=embedded, now=now)


def read_contents(snapshot: ContextSnapshot, steps: Sequence[RestoreStep]) -> dict[UUID, str]:
    """Return the entries' contents in the snapshot, by id. One statement."""
    ids, numbers = [step.entry_id for step in steps], [step.to_version for step in steps]
    return dict(fetch_rows(READ_CONTENTS, [ids, numbers, snapshot.account_id]))


def restore_attributes(snapshot: ContextSnapshot, steps: Sequence[RestoreStep], now: datetime) -> None:
    """Set the snapshot's weights and attributes, archive entries that it lacks, and unarchive those that it has."""
    if steps:
        ids, archived = [step.entry_id for step in steps], [step.is_removed for step in steps]
        is_reworded, account_id = [step.is_reworded for step in steps], snapshot.account_id
        execute_statement(UPDATE_ENTRIES, [now, ids, archived, is_reworded, account_id, snapshot.id, account_id])


def record_restore(owner: Owner, snapshot: ContextSnapshot, steps: Sequence[RestoreStep], now: datetime) -> None:
    """Add an access log line for each entry, and one audit entry for all."""
    for is_removed, action in ((False, Action.RESTORE), (True, Action.ARCHIVE)):
        touched = [(snapshot.context_id, step.entry_id) for step in steps if step.is_removed == is_removed]
        if touched:
            log_writes(owner, touched, action=action, now=now)
    record_audit(
        owner,
        operation="restore",
        memory_type="context",
        affected_ids=[snapshot.context_id, snapshot.id],
        result_count=len(steps),
    )
