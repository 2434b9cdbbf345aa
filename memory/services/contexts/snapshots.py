"""Snapshots of contexts (P4): which entries there are, at which version, with what weights and attributes; and back.

A restore changes what there is now, never what there was: other content comes back as a new version, entries made since
are archived. Whatever the number of entries, it takes the same number of statements. Locks: the context, then its
entries by id. That staff quarantined an entry, and when it expires, no snapshot takes back; what has expired is as good
as gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from memory.audit import record
from memory.errors import NotFound
from memory.models import ContextSnapshot, Kind, PersistentContext
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.services.contexts.access_log import Action, log_writes
from memory.services.contexts.manage import find_context, lock_context, lock_managed_context, refuse_archived
from memory.services.duplicates.texts import wording_of
from memory.services.embedding.embed import WRITE_TEXTS, Embedded, content_hash
from memory.tokens import estimate_tokens
from memory_project.ids import uuid7

ATTRIBUTES = """jsonb_build_object(
    'entry_type', e.entry_type, 'source_type', e.source_type, 'memory_type', e.memory_type,
    'source', m.source, 'metadata', m.metadata
)"""

TAKE = f"""
INSERT INTO context_snapshot_entries (id, account_id, snapshot_id, entry_id, number, importance, confidence, attributes)
SELECT gen_random_uuid(), m.account_id, %s, m.id, e.content_version, e.importance, e.confidence, {ATTRIBUTES}
FROM memories m JOIN context_entries e ON e.memory_ptr_id = m.id
WHERE m.account_id = %s AND m.context_id = %s AND m.kind = 'context_entry' AND NOT m.archived
    AND (m.expires_at IS NULL OR m.expires_at > %s)
"""  # noqa: S608  made of constants

# against those who lock them for update, or delete them: rows of snapshots refer to them
HOLD_ENTRIES = """
SELECT count(*) FROM (
    SELECT FROM memories WHERE account_id = %s AND context_id = %s AND kind = 'context_entry'
    ORDER BY id FOR KEY SHARE
) held
"""

LOCK_ENTRIES = """
SELECT count(*) FROM (
    SELECT FROM memories WHERE account_id = %s AND context_id = %s AND kind = 'context_entry'
    ORDER BY id FOR NO KEY UPDATE
) locked
"""

# each entry that is there now, or is to be: what has to be done to it. Attributes are compared to the letter
PLAN = f"""
SELECT m.id, e.key, m.archived, m.quarantined, e.content_version AS from_version, s.number AS to_version,
    v.id IS NOT NULL AND (m.text <> v.content OR e.value::text IS DISTINCT FROM v.value::text) AS is_reworded,
    s.id IS NOT NULL AND (e.importance, e.confidence) <> (s.importance, s.confidence) AS is_reweighed,
    s.id IS NOT NULL AND s.attributes <> '{{}}' AND s.attributes::text <> {ATTRIBUTES}::text AS is_relabelled
FROM memories m
JOIN context_entries e ON e.memory_ptr_id = m.id
LEFT JOIN context_snapshot_entries s ON s.account_id = m.account_id AND s.entry_id = m.id AND s.snapshot_id = %s
LEFT JOIN context_entry_versions v ON v.account_id = m.account_id AND v.entry_id = m.id AND v.number = s.number
WHERE m.account_id = %s AND m.context_id = %s AND m.kind = 'context_entry'
    AND (m.expires_at IS NULL OR m.expires_at > %s) AND (s.id IS NOT NULL OR NOT m.archived)
ORDER BY m.id
"""  # noqa: S608  made of constants

CONTENTS = """
SELECT v.entry_id, v.content FROM unnest(%s::uuid[], %s::int[]) AS wanted (id, number)
JOIN context_entry_versions v ON v.account_id = %s AND v.entry_id = wanted.id AND v.number = wanted.number
ORDER BY v.entry_id
"""

# a new version of each, after the latest: looked up by all of its key, where a join may forget the entry
ADD_VERSIONS = """
INSERT INTO context_entry_versions
    (id, account_id, entry_id, number, previous_version_id, content, value, editor, restored_from, created_at)
SELECT wanted.version_id, v.account_id, v.entry_id, e.content_version + 1,
    (
        SELECT latest.id FROM context_entry_versions latest WHERE latest.account_id = v.account_id
            AND latest.entry_id = e.memory_ptr_id AND latest.number = e.content_version
    ),
    v.content, v.value, %s, v.number, %s
FROM unnest(%s::uuid[], %s::int[], %s::uuid[]) AS wanted (id, number, version_id)
JOIN context_entries e ON e.memory_ptr_id = wanted.id
JOIN context_entry_versions v ON v.account_id = %s AND v.entry_id = wanted.id AND v.number = wanted.number
"""

# the text's own columns follow from it, its vectors are of what it said before
REWORD = """
UPDATE memories m SET text = v.content, content_hash = wanted.content_hash, wording = wanted.wording,
    token_count = wanted.token_count, embed_attempts = 0, embed_error = '',
    embed_after = CASE WHEN wanted.has_vector THEN NULL ELSE %s::timestamptz END
FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::bigint[], %s::int[], %s::bool[])
    AS wanted (id, number, content_hash, wording, token_count, has_vector)
JOIN context_entry_versions v ON v.account_id = %s AND v.entry_id = wanted.id AND v.number = wanted.number
WHERE m.id = wanted.id AND m.account_id = v.account_id
"""

FORGET_VECTORS = "DELETE FROM memory_vectors WHERE account_id = %s AND memory_id = ANY(%s::uuid[])"

# snapshots of before there were attributes have none of them
WEIGH = """
UPDATE context_entries e SET importance = s.importance, confidence = s.confidence,
    entry_type = COALESCE(s.attributes->>'entry_type', e.entry_type),
    source_type = COALESCE(s.attributes->>'source_type', e.source_type),
    memory_type = COALESCE(s.attributes->>'memory_type', e.memory_type),
    value = CASE WHEN wanted.is_reworded THEN v.value ELSE e.value END,
    content_version = e.content_version + wanted.is_reworded::int
FROM unnest(%s::uuid[], %s::bool[]) AS wanted (id, is_reworded)
JOIN context_snapshot_entries s ON s.account_id = %s AND s.snapshot_id = %s AND s.entry_id = wanted.id
JOIN context_entry_versions v ON v.account_id = s.account_id AND v.entry_id = s.entry_id AND v.number = s.number
WHERE e.memory_ptr_id = wanted.id
"""

TOUCH = """
UPDATE memories m SET archived = wanted.archived, version = m.version + 1, updated_at = %s,
    source = COALESCE(s.attributes->>'source', m.source), metadata = COALESCE(s.attributes->'metadata', m.metadata)
FROM unnest(%s::uuid[], %s::bool[]) AS wanted (id, archived)
LEFT JOIN context_snapshot_entries s ON s.account_id = %s AND s.snapshot_id = %s AND s.entry_id = wanted.id
WHERE m.id = wanted.id AND m.account_id = %s
"""


class Step(NamedTuple):
    """What a restore does to one entry. `to_version` is None where the snapshot does not have it: it is archived."""

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
    def is_returned(self) -> bool:
        return self.archived

    @property
    def is_changed(self) -> bool:
        """There now and then, with other content, weights or attributes."""
        return not self.archived and (self.is_reworded or self.is_reweighed or self.is_relabelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a restore would do. Every entry that is there now, or would be, is in one of the lists or `unchanged`.

    `missing` is how many of those that the snapshot was made of nobody will see: they expired, or staff deleted them or
    what they said then, or quarantined them.
    """

    changed: list[Step]
    returned: list[Step]
    removed: list[Step]
    unchanged: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """How many entries were changed, came back, were archived, stayed as they are, are missing (see `Preview`)."""

    changed: int
    returned: int
    removed: int
    unchanged: int
    missing: int


def create_snapshot(owner: Owner, context_id: UUID, *, name: str, now: datetime) -> ContextSnapshot:
    """Note what the context holds, entries in quarantine too.

    Raises NotFound, Forbidden where it may only be read, Conflict where it is archived.
    """
    with transaction.atomic():
        context = lock_context(owner, context_id)
        snapshot = ContextSnapshot(
            account_id=context.account_id, context=context, name=name, agent_id=owner.agent_id, created_at=now
        )
        snapshot.save(force_insert=True)
        execute(HOLD_ENTRIES, [context.account_id, context.id])
        snapshot.entry_count = execute(TAKE, [snapshot.id, context.account_id, context.id, now])
        snapshot.save(update_fields=["entry_count"])
        record(
            owner,
            operation="snapshot",
            memory_type="context",
            affected_ids=[context.id, snapshot.id],
            result_count=snapshot.entry_count,
        )
    return snapshot


def snapshots(owner: Owner, context_id: UUID) -> QuerySet[ContextSnapshot]:
    """Those of a context that the owner may read. Raises NotFound."""
    context = find_context(owner, context_id)
    return ContextSnapshot.objects.filter(account_id=context.account_id, context_id=context.id)


def find_snapshot(owner: Owner, context_id: UUID, snapshot_id: UUID) -> ContextSnapshot:
    """Raises NotFound, for a snapshot of another context too."""
    return snapshot_of(find_context(owner, context_id), snapshot_id)


def snapshot_of(context: PersistentContext, snapshot_id: UUID) -> ContextSnapshot:
    rows = ContextSnapshot.objects.filter(account_id=context.account_id, context_id=context.id)
    snapshot = rows.filter(id=snapshot_id).first()
    if snapshot is None:
        raise NotFound("no such snapshot")
    return snapshot


def delete_snapshot(owner: Owner, context_id: UUID, snapshot_id: UUID) -> None:
    """Raises NotFound, Forbidden for who does not manage the context, Conflict where it is archived."""
    with transaction.atomic():
        context = lock_managed_context(owner, context_id, expected=None)
        refuse_archived(context)
        snapshot = snapshot_of(context, snapshot_id)
        # nobody deletes an entry, and its rows of snapshots with it, at the same time
        execute(HOLD_ENTRIES, [context.account_id, context.id])
        snapshot.delete()
        record(owner, operation="delete_snapshot", memory_type="context", affected_ids=[context.id, snapshot_id])


def preview_restore(owner: Owner, context_id: UUID, snapshot_id: UUID, *, now: datetime) -> Preview:
    """What a restore would do, as things are; for whoever may read the context. Raises NotFound."""
    snapshot = find_snapshot(owner, context_id, snapshot_id)
    return preview_of(snapshot, plan_restore(snapshot, now=now))


def preview_of(snapshot: ContextSnapshot, steps: Sequence[Step]) -> Preview:
    """Without the entries in quarantine: nobody is to hear of them."""
    seen = [step for step in steps if not step.quarantined]
    wanted = [step for step in seen if not step.is_removed]
    changed = [step for step in wanted if step.is_changed]
    returned = [step for step in wanted if step.is_returned]
    return Preview(
        changed=changed,
        returned=returned,
        removed=[step for step in seen if step.is_removed],
        unchanged=len(wanted) - len(changed) - len(returned),
        missing=snapshot.entry_count - len(wanted),
    )


def plan_restore(snapshot: ContextSnapshot, *, now: datetime) -> list[Step]:
    """Each entry that is there, or is to be, in the order of their ids. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(PLAN, [snapshot.id, snapshot.account_id, snapshot.context_id, now])
        return [Step(*row) for row in cursor.fetchall()]


def texts_to_restore(owner: Owner, context_id: UUID, snapshot_id: UUID, *, now: datetime) -> list[str]:
    """The contents that a restore would bring back, for `embed_texts`: as many as that takes at once.

    Raises as `restore_snapshot` does, so that nothing is embedded for who may not restore.
    """
    with transaction.atomic():
        snapshot = snapshot_of(lock_context(owner, context_id), snapshot_id)
    reworded = [step for step in plan_restore(snapshot, now=now) if step.is_reworded]
    return list(read_contents(snapshot, reworded[:WRITE_TEXTS]).values())


def restore_snapshot(
    owner: Owner,
    context_id: UUID,
    snapshot_id: UUID,
    *,
    editor: str = "",
    embedded: Embedded | None = None,
    now: datetime,
) -> Restored:
    """Make the context hold what the snapshot has: the same entries, with their content, values, weights, attributes.

    `embedded` comes from `texts_to_restore`, embedded outside transactions; whatever has no vector there waits in the
    queue for one. A second restore changes nothing. Raises NotFound, Forbidden where the context may only be read,
    Conflict where it is archived.
    """
    with transaction.atomic():
        context = lock_context(owner, context_id)
        snapshot = snapshot_of(context, snapshot_id)
        # staff correct entries without the context's lock
        execute(LOCK_ENTRIES, [context.account_id, context.id])
        steps = plan_restore(snapshot, now=now)
        reword_entries(snapshot, [step for step in steps if step.is_reworded], embedded, editor or owner.agent_id, now)
        touch_entries(snapshot, steps, now)
        record_restore(owner, snapshot, steps, now)
    preview = preview_of(snapshot, steps)
    return Restored(
        changed=len(preview.changed),
        returned=len(preview.returned),
        removed=len(preview.removed),
        unchanged=preview.unchanged,
        missing=preview.missing,
    )


def reword_entries(
    snapshot: ContextSnapshot, steps: Sequence[Step], embedded: Embedded | None, editor: str, now: datetime
) -> None:
    """Give entries the content that the snapshot has, as their next version, and the vectors of that content alone.

    Their values and version numbers follow in `touch_entries`.
    """
    if not steps:
        return
    account_id, contents = snapshot.account_id, read_contents(snapshot, steps)
    ids, numbers = [step.entry_id for step in steps], [step.to_version for step in steps]
    texts = [contents[entry_id] for entry_id in ids]
    vectors = embedded.vectors if embedded else {}
    derived = (
        [content_hash(text) for text in texts],
        [wording_of(Kind.CONTEXT_ENTRY, text) for text in texts],
        [estimate_tokens(text) for text in texts],
    )
    execute(ADD_VERSIONS, [editor, now, ids, numbers, [uuid7() for _ in ids], account_id])
    execute(REWORD, [now, ids, numbers, *derived, [text in vectors for text in texts], account_id])
    execute(FORGET_VECTORS, [account_id, ids])
    found = [(entry_id, vectors[text]) for entry_id, text in zip(ids, texts, strict=True) if text in vectors]
    if embedded and found:
        insert_vectors(account_id, model=embedded.model, vectors=found)


def read_contents(snapshot: ContextSnapshot, steps: Sequence[Step]) -> dict[UUID, str]:
    """What the entries said in the snapshot, by id. One statement."""
    ids, numbers = [step.entry_id for step in steps], [step.to_version for step in steps]
    with connection.cursor() as cursor:
        cursor.execute(CONTENTS, [ids, numbers, snapshot.account_id])
        return dict(cursor.fetchall())


def touch_entries(snapshot: ContextSnapshot, steps: Sequence[Step], now: datetime) -> None:
    """Give entries the snapshot's weights and attributes, archive what it does not have, bring back what it has."""
    wanted, removed = parted(steps)
    ids = [step.entry_id for step in wanted]
    if wanted:
        is_reworded = [step.is_reworded for step in wanted]
        execute(WEIGH, [ids, is_reworded, snapshot.account_id, snapshot.id])
    if wanted or removed:
        archived = [False] * len(wanted) + [True] * len(removed)
        touched = [*ids, *(step.entry_id for step in removed)]
        execute(TOUCH, [now, touched, archived, snapshot.account_id, snapshot.id, snapshot.account_id])


def parted(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """Entries that change or come back, and those that are archived."""
    wanted = [step for step in steps if not step.is_removed and (step.is_changed or step.is_returned)]
    return wanted, [step for step in steps if step.is_removed]


def record_restore(owner: Owner, snapshot: ContextSnapshot, steps: Sequence[Step], now: datetime) -> None:
    """A line of the access log for each entry, one entry of the audit log for all."""
    wanted, removed = parted(steps)
    for found, action in ((wanted, Action.RESTORE), (removed, Action.ARCHIVE)):
        if found:
            touched = [(snapshot.context_id, step.entry_id) for step in found]
            log_writes(owner, touched, action=action, now=now)
    record(
        owner,
        operation="restore",
        memory_type="context",
        affected_ids=[snapshot.context_id, snapshot.id],
        result_count=len(wanted) + len(removed),
    )


def execute(statement: str, parameters: Sequence[Any]) -> int:
    """How many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
