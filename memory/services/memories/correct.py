"""Corrections of memories of any kind: new values, marks and deletion, audited in the same transaction.

A corrected text loses its vectors immediately and waits for new ones. Until then searches find it by its words. The
lifecycles of its kind update what depends on it (`KindSpec.lifecycles`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from memory.errors import StaleVersion, Unprocessable, require_found
from memory.kinds import spec_of
from memory.masking import MARK_POLICY
from memory.models import Account, Memory, Vector, writer
from memory.models.memory import model_of
from memory.owner import Owner
from memory.services.duplicates.resolve import find_absorbed, find_merged_memories
from memory.services.embedding.serving import serving_model
from memory.services.memories.lifecycle import Lifecycle, Operation, open_lifecycles
from memory.services.memories.store import audit_memories, derive_from_text, gives_orders, keeps_secret_mark
from memory.services.replacements import relink_replaced_statements
from memory_project.batches import batched

CORRECTABLE = frozenset(
    {"text", "user_id", "channel", "event_time", "expires_at", "salience", "trust", "source", "metadata"}
)
"""Columns that may be corrected for every kind, unless its `KindSpec.not_correctable` has them. Author, conversation,
context and kind never change."""

MARKS: dict[str, dict[str, bool]] = {
    "archive": {"archived": True},
    "unarchive": {"archived": False},
    "quarantine": {"quarantined": True},
    "release": {"quarantined": False},
    "pin": {"pinned": True},
    "unpin": {"pinned": False},
    "bury": {"buried": True},
    "unbury": {"buried": False},
}
"""Marks with the columns they set. Their names are the operations in the audit log."""

MARKED_COLUMNS = ("archived", "quarantined", "pinned", "buried")
ROWS_PER_TRANSACTION = 1_000


def correct_memory(owner: Owner, memory_id: UUID, *, changes: Mapping[str, Any], version: int, now: datetime) -> None:
    """Give a memory new values, by column. `version` is the version that the caller has seen.

    Raises NotFound, StaleVersion, Unprocessable for a column that may not be corrected or a blank text, and RedisError
    for a turn whose session buffer cannot be cleared.
    """
    operation = Operation(owner=owner, name="update", columns=changes, now=now)
    with transaction.atomic():
        lifecycles = open_lifecycles(operation, [memory_id])
        rewritten = {each for lifecycle in lifecycles for each in lifecycle.find_rewritten()}
        # in one statement, by id, as a recall that counts reads of both locks them
        lock_memories(owner, [memory_id, *rewritten] if rewritten else [])
        row = require_found(next(iter(lock_memories(owner, [memory_id])), None), "memory")
        if row.version != version:
            raise StaleVersion("the memory was changed in the meantime: load it again")
        check_correctable(row.kind, changes)
        columns = dict(changes)
        for lifecycle in lifecycles:
            columns |= lifecycle.derive_columns(row)
        if "text" in columns:
            columns |= marks_of_text(owner, row, columns["text"])
            columns |= columns_of_text(row.kind, columns["text"], now=now)
            Vector.objects.filter(account_id=owner.account_id, memory_id=memory_id).delete()
        rows = model_of(row.kind).objects.filter(account_id=owner.account_id, id=memory_id)
        rows.update(**columns, version=F("version") + 1, updated_at=now)
        if {"text", "event_time"} & columns.keys():
            changed = list(Memory.objects.filter(account_id=owner.account_id, id=memory_id))
            relink_replaced_statements(owner.account_id, changed, model=serving_model().name)
        for lifecycle in lifecycles:
            lifecycle.propagate([row])
        audit_memories(owner, "update", [row], metadata={"columns": sorted(changes)})
        if columns.get("quarantined", row.quarantined) != row.quarantined:
            audit_memories(owner, "release" if row.quarantined else "quarantine", [row])


def marks_of_text(owner: Owner, row: Memory, text: str) -> dict[str, bool]:
    """Return the marks of a memory once staff gave it another text. One statement.

    A text that gives orders is quarantined where the account asks for it. The memory comes back if its former text gave
    orders and the new one does not.
    """
    account = Account.objects.only("secrets", "quarantines_instructions").get(id=owner.account_id)
    acting = replace(owner, marks_secrets=account.secrets == MARK_POLICY)
    marks = {"has_secret": keeps_secret_mark(acting, row, text)}
    gives, gave = gives_orders(row, text), row.quarantined and gives_orders(row, row.text)
    return marks | ({"quarantined": gives} if gives != gave and account.quarantines_instructions else {})


def check_correctable(kind: str, changes: Mapping[str, Any]) -> None:
    """Raise Unprocessable for columns that may not be corrected."""
    spec = spec_of(kind)
    refused = set(changes) - (CORRECTABLE - spec.not_correctable) - spec.correctable
    if refused:
        raise Unprocessable(f"these columns of {spec.plural} are not corrected here: {', '.join(sorted(refused))}")


def columns_of_text(kind: str, text: str, *, now: datetime) -> dict[str, Any]:
    """Return the columns that follow from a text, and those that queue it for embedding. Raises Unprocessable."""
    if not text.strip():
        raise Unprocessable("the text of a memory must not be blank")
    return derive_from_text(kind, text) | {"embed_after": now, "embed_attempts": 0, "embed_error": ""}


def mark_memories(owner: Owner, memory_ids: Sequence[UUID], *, mark: str, now: datetime) -> int:
    """Set or remove a mark (see MARKS) on those of the memories that the owner sees. Returns how many rows changed.

    Other levels of structured turns count as well, and work episodes that name a quarantined memory. Raises RedisError
    if turns are quarantined or released and their session buffers cannot be cleared, and Unprocessable if an entity
    without a name is unarchived.
    """
    operation = Operation(owner=owner, name=mark, columns=MARKS[mark], now=now)
    changed = 0
    for ids in chunk_ids(memory_ids):
        with transaction.atomic():
            changed += mark_together(operation, ids)
    return changed


def mark_together(operation: Operation, memory_ids: Sequence[UUID]) -> int:
    """Mark the memories of one batch in the caller's transaction (see `mark_memories`)."""
    lifecycles = open_lifecycles(operation, memory_ids)
    along = {each for lifecycle in lifecycles for each in lifecycle.find_along()}
    rows = lock_memories(operation.owner, [*memory_ids, *along])
    for lifecycle in lifecycles:
        left_out = lifecycle.leave_out(own_rows(lifecycle, rows))
        rows = [row for row in rows if row.id not in left_out]
    if rows and operation.name == "unarchive":
        # only `undo_merge` brings back a duplicate that was merged into another memory
        merged = find_merged_memories(operation.owner.account_id, [row.id for row in rows])
        rows = [row for row in rows if row.id not in merged]
    rows = [row for row in rows if any(getattr(row, name) != value for name, value in operation.columns.items())]
    marked = Memory.objects.filter(account_id=operation.owner.account_id, id__in=[row.id for row in rows])
    marked.update(**operation.columns, version=F("version") + 1, updated_at=operation.now)
    for lifecycle in lifecycles:
        lifecycle.propagate(own_rows(lifecycle, rows))
    audit_memories(operation.owner, operation.name, rows)
    return len(rows)


def own_rows(lifecycle: Lifecycle, rows: Sequence[Memory]) -> list[Memory]:
    """Return those of the rows that the lifecycle is for."""
    ids = set(lifecycle.memory_ids)
    return [row for row in rows if row.id in ids]


def clear_secret_mark(owner: Owner, memory_id: UUID, *, now: datetime) -> None:
    """Record that the text of a memory holds no secret, although it looked like one. Raises NotFound."""
    with transaction.atomic():
        row = require_found(next(iter(lock_memories(owner, [memory_id])), None), "memory")
        rows = Memory.objects.filter(account_id=owner.account_id, id=memory_id)
        rows.update(has_secret=False, version=F("version") + 1, updated_at=now)
        audit_memories(owner, "clear_secret_mark", [row])


def mark_rows(owner: Owner, rows: QuerySet[Memory], *, mark: str, now: datetime) -> int:
    """Mark any number of rows of the account in the caller's transaction, which writes the audit entry.

    Returns how many changed.
    """
    # locked in the order that is used everywhere, to avoid deadlocks
    locked = rows.exclude(**MARKS[mark]).order_by("id").select_for_update(no_key=True, of=("self",))
    changed = 0
    for ids in chunk_ids(locked.values_list("id", flat=True).iterator(ROWS_PER_TRANSACTION)):
        chosen = Memory.objects.filter(account_id=owner.account_id, id__in=ids)
        changed += chosen.update(**MARKS[mark], version=F("version") + 1, updated_at=now)
    return changed


def queue_for_embedding(owner: Owner, memory_ids: Sequence[UUID], *, now: datetime) -> int:
    """Queue memories to be embedded again and return their number. Their vectors stay until new ones replace them."""
    queued = 0
    for ids in chunk_ids(memory_ids):
        with transaction.atomic():
            rows = lock_memories(owner, ids)
            found = [row.id for row in rows]
            queue = Memory.objects.filter(account_id=owner.account_id, id__in=found)
            queue.update(embed_after=now, embed_attempts=0, embed_error="")
            audit_memories(owner, "embed", rows)
        queued += len(rows)
    return queued


def delete_memories(owner: Owner, memory_ids: Sequence[UUID], *, now: datetime) -> int:
    """Delete memories with their vectors and links and return how many there were. The audit log keeps their ids only.

    Memories that were merged into them are deleted as well, and rows that a slot or work episode was compressed from;
    both count. Work episodes no longer name deleted goals and artifacts. Raises Unprocessable for a turn, because its
    conversation would have a gap, and for a goal that blocks others.
    """
    deleted = 0
    for ids in chunk_ids(memory_ids):
        with transaction.atomic():
            deleted += delete_together(owner, ids, now=now)
    return deleted


def delete_together(
    owner: Owner,
    memory_ids: Sequence[UUID],
    *,
    others: Collection[UUID] = (),
    once_locked: Callable[[], None] | None = None,
    now: datetime,
) -> int:
    """Delete the memories of one batch in the caller's transaction (see `delete_memories`).

    `once_locked` is called when they and `others` are locked against new references.
    """
    lifecycles = open_lifecycles(Operation(owner=owner, name="delete", now=now), memory_ids)
    along = {each for lifecycle in lifecycles for each in lifecycle.find_along()}
    seen = list(Memory.objects.visible_to(owner).filter(id__in=memory_ids).values_list("id", flat=True))
    # duplicates that were merged into them have the same text
    together = sorted({*memory_ids, *along, *find_absorbed(owner.account_id, seen)})
    rewritten = {each for lifecycle in lifecycles for each in lifecycle.find_rewritten()}
    if rewritten or once_locked:
        lock_memories(owner, [*together, *rewritten, *others])
    if once_locked:
        once_locked()
    for lifecycle in lifecycles:
        lifecycle.before_erasure()
    deleted = sum(erase_memories(owner, some) for some in chunk_ids(together))
    for lifecycle in lifecycles:
        lifecycle.propagate([])
    return deleted


def erase_memories(owner: Owner, memory_ids: Sequence[UUID]) -> int:
    """Delete those of the rows that the owner sees, turns included, without hooks. Returns how many there were.

    At most ROWS_PER_TRANSACTION ids.
    """
    with transaction.atomic():
        rows = lock_memories(owner, memory_ids)
        writer.delete_memory_rows(owner.account_id, [row.id for row in rows])
        audit_memories(owner, "delete", rows)
    return len(rows)


def lock_memories(owner: Owner, memory_ids: Sequence[UUID]) -> list[Memory]:
    """Lock those of the rows that the owner sees, by id, and return them without their texts, which may be long."""
    rows = Memory.objects.visible_to(owner).filter(id__in=memory_ids).order_by("id")
    columns = ("id", "kind", "version", "conversation_id", *MARKED_COLUMNS)
    return list(rows.only(*columns).select_for_update(of=("self",)))


def chunk_ids(memory_ids: Iterable[UUID]) -> Iterator[list[UUID]]:
    """Return the ids in lists of ROWS_PER_TRANSACTION."""
    return batched(memory_ids, ROWS_PER_TRANSACTION)
