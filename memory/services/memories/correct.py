"""Correcting what is remembered, whatever its kind: new values, marks, deletion. Audited in the same transaction.

A corrected text loses its vectors at once and waits for new ones; until then its words find it. A turn's payload and
its session's buffer say no longer what its text said (`turn_corrections`); an entry has it as its next version
(`entry_corrections`); a strategy's follows from what is done and when (`strategy_corrections`). What a fact claims is
another belief (`fact_changes`), and what an entity is called is said in several places (`entity_corrections`). What
structured turns tell is told at several levels (`work_corrections`), and goals and artifacts are named there
(`work_mentions`). A chain of revisions is closed around those that are erased (`artifact_chains`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from memory.audit import record
from memory.errors import NotFound, StaleVersion, Unprocessable
from memory.models import Artifact, ContextEntry, EpisodicMemory, Goal, Kind, Memory, Strategy, Turn, Vector, writer
from memory.owner import Owner
from memory.services.artifacts.change import close_gaps, hold_chains
from memory.services.contexts.staff_edits import spread_entry_correction
from memory.services.duplicates.standing import merged_along, merged_into_others
from memory.services.duplicates.texts import wording_of
from memory.services.embedding.embed import content_hash
from memory.services.entities.change import hold_parts, merged_among
from memory.services.goals.links import settle_waiters
from memory.services.goals.staff_edits import hold_goals, waited_for
from memory.services.memories.store import MEMORY_TYPES
from memory.services.strategies.staff_edits import check_strategy_correction, reworded, spread_strategy_correction
from memory.services.turns.staff_edits import spread_correction, spread_quarantine
from memory.services.work_episodes.mentions import NAMED, NAMING_COLUMNS, mentions_of, retell, retell_without
from memory.services.work_episodes.staff_edits import (
    WORK,
    deleted_along,
    empty_data,
    hold_work,
    marked_along,
    records_of,
    repeated_by,
    replaced_among,
    settle_records,
)
from memory.tokens import estimate_tokens

CORRECTABLE = frozenset(
    {"text", "user_id", "channel", "event_time", "expires_at", "salience", "trust", "source", "metadata"}
)
"""Columns of every memory that may be corrected. Whose it is, where it was said and what it is stay."""

CORRECTABLE_CHILDREN: dict[str, tuple[type[Memory], frozenset[str]]] = {
    Kind.EPISODE: (EpisodicMemory, frozenset({"key_decisions", "entities_mentioned", "tools_called"})),
    Kind.TURN: (Turn, frozenset({"name"})),
    Kind.CONTEXT_ENTRY: (
        ContextEntry,
        frozenset({"entry_type", "source_type", "memory_type", "importance", "confidence"}),
    ),
    Kind.STRATEGY: (Strategy, frozenset({"description", "context_pattern", "task_type", "tool_sequence"})),
    Kind.GOAL: (Goal, frozenset({"priority", "deadline", "result"})),
    Kind.ARTIFACT: (Artifact, frozenset({"title", "artifact_type"})),
}
"""By kind: its child table and the columns of it that may be corrected."""

KEPT_IN_STEP: dict[str, frozenset[str]] = {
    Kind.FACT: frozenset({"text", "user_id", "channel"}),
    Kind.ENTITY: frozenset({"text", "user_id", "channel"}),
    Kind.GOAL: frozenset({"user_id", "expires_at"}),
    Kind.STRATEGY: frozenset({"text"}),
    Kind.TURN_SLOT: frozenset({"user_id", "channel"}),
    Kind.WORK_EPISODE: frozenset({"user_id", "channel"}),
    Kind.ARTIFACT: frozenset({"user_id", "channel"}),
}
"""By kind: columns of CORRECTABLE that say something elsewhere as well, and are left to the services of the kind.
A strategy's text follows from other columns. A goal is in the way of others until it is closed: it does not expire."""

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
"""What can be done to many memories at once; the names are the operations in the audit log."""

HIDING = frozenset({"archived", "quarantined"})
"""Columns that take a goal out of the way of those that wait for it."""

ROWS_A_TRANSACTION = 1_000


def correct_memory(owner: Owner, memory_id: UUID, *, changes: Mapping[str, Any], version: int, now: datetime) -> None:
    """Give a memory new values, by column. `version` is the one that the caller has seen.

    Raises NotFound, StaleVersion, and Unprocessable for a column that may not be corrected or a text of spaces;
    RedisError for a turn, whose session must not go on with what it said before.
    """
    with transaction.atomic():
        hold_told(owner, memory_id, changes)
        row = lock_memory(owner, memory_id)
        if row.version != version:
            raise StaleVersion("somebody else has changed it in the meantime")
        child, of_child = split_changes(row.kind, changes)
        if row.kind == Kind.STRATEGY:
            check_strategy_correction(of_child)
        columns = {name: value for name, value in changes.items() if name not in of_child}
        if row.kind == Kind.STRATEGY:
            columns |= reworded(memory_id, of_child)
        if "text" in columns:
            columns |= derive_from_text(row.kind, columns["text"], now=now)
            Vector.objects.filter(account_id=owner.account_id, memory_id=memory_id).delete()
        Memory.objects.filter(id=memory_id).update(**columns, version=F("version") + 1, updated_at=now)
        if child is not None and of_child:
            child.objects.filter(pk=memory_id).update(**of_child)
        spread(owner, row, changes, now=now)
        record_correction(owner, "update", [row], metadata={"columns": sorted(changes)})


def hold_told(owner: Owner, memory_id: UUID, changes: Mapping[str, Any]) -> None:
    """Lock the conversations in which a memory is told, and the episodes that name it, where they are to tell it
    otherwise."""
    mentions = mentions_of(owner, [memory_id]) if NAMING_COLUMNS & changes.keys() else []
    hold_work(owner, [memory_id], along=mentions)
    # together: who counts reads of both locks them in this order
    lock_memories(owner, [memory_id, *mentions] if mentions else [])


def spread(owner: Owner, row: Memory, changes: Mapping[str, Any], *, now: datetime) -> None:
    """Bring what follows from a corrected memory, whatever its kind, up to what it says now."""
    if row.kind == Kind.TURN:
        spread_correction(row.id, is_reworded="text" in changes)
    if row.kind == Kind.CONTEXT_ENTRY and "text" in changes:
        spread_entry_correction(owner, row.id, now=now)
    if row.kind == Kind.STRATEGY:
        spread_strategy_correction(row.id)
    if row.kind in WORK and "text" in changes:
        leave_nothing_else(owner, row.id)
    if row.kind in NAMED and NAMING_COLUMNS & changes.keys():
        retell(owner, [row.id], now=now)


def leave_nothing_else(owner: Owner, memory_id: UUID) -> None:
    """Of a slot or work episode that says something else now: nothing that tells what it said.

    Raises Unprocessable for one that another level stands for, and would not be told any more.
    """
    if replaced_among([memory_id]):
        raise Unprocessable("another level stands for it: correct that one")
    repeating = repeated_by(owner, memory_id)
    records = records_of([memory_id, *repeating])
    empty_data(memory_id)
    for ids in chunks(repeating):
        erase_memories(owner, ids)
    settle_records(records)


def split_changes(kind: str, changes: Mapping[str, Any]) -> tuple[type[Memory] | None, dict[str, Any]]:
    """The kind's child table and those of the changes that are its columns. Unprocessable for any other."""
    child, of_child = CORRECTABLE_CHILDREN.get(kind, (None, frozenset[str]()))
    refused = set(changes) - (CORRECTABLE - KEPT_IN_STEP.get(kind, frozenset[str]())) - of_child
    if refused:
        raise Unprocessable(f"these of a {kind.replace('_', ' ')} are not corrected here: {', '.join(sorted(refused))}")
    return child, {name: value for name, value in changes.items() if name in of_child}


def derive_from_text(kind: str, text: str, *, now: datetime) -> dict[str, Any]:
    """The columns that follow from a text, and its place in the queue of what is to be embedded."""
    if not text.strip():
        raise Unprocessable("a memory has a text")
    return {
        "content_hash": content_hash(text),
        "wording": wording_of(kind, text),
        "token_count": estimate_tokens(text),
        "embed_after": now,
        "embed_attempts": 0,
        "embed_error": "",
    }


def mark_memories(owner: Owner, memory_ids: Sequence[UUID], *, mark: str, now: datetime) -> int:
    """Archive, quarantine, pin, bury (or undo it: see MARKS) those of the memories that the owner sees.

    Returns how many changed, other levels of structured turns among them, and episodes that name what is quarantined.

    Raises RedisError where turns are quarantined or released, whose sessions must not go on as before; Unprocessable
    for an entity that nobody would find again.
    """
    changed = 0
    for ids in chunks(memory_ids):
        with transaction.atomic():
            mentions = mentions_of(owner, ids) if mark == "quarantine" else []
            along = [*marked_along(owner, hold_work(owner, ids, along=mentions), mark), *mentions]
            goal_ids = hold_goals(owner, ids) if HIDING & MARKS[mark].keys() else []
            rows = without_replaced(without_merged(lock_memories(owner, [*ids, *along]), mark), mark)
            rows = without_duplicates(owner, rows, mark)
            rows = [row for row in rows if any(getattr(row, name) != value for name, value in MARKS[mark].items())]
            Memory.objects.filter(id__in=[row.id for row in rows]).update(
                **MARKS[mark], version=F("version") + 1, updated_at=now
            )
            turn_ids = [row.id for row in rows if row.kind == Kind.TURN]
            if turn_ids and "quarantined" in MARKS[mark]:
                spread_quarantine(turn_ids)
            if goal_ids:
                settle_waiters(owner, goal_ids, now=now)
            record_correction(owner, mark, rows)
        changed += len(rows)
    return changed


def without_merged(rows: Sequence[Memory], mark: str) -> list[Memory]:
    """An entity that was merged into another has no name of its own: it comes back by a split, and by no mark.

    Raises Unprocessable for one that has none for another reason.
    """
    entity_ids = [row.id for row in rows if row.kind == Kind.ENTITY]
    if mark != "unarchive" or not entity_ids:
        return list(rows)
    merged = merged_among(entity_ids)
    return [row for row in rows if row.id not in merged]


def without_replaced(rows: Sequence[Memory], mark: str) -> list[Memory]:
    """What another level stands for stays archived: both would tell the same."""
    work_ids = [row.id for row in rows if row.kind in WORK]
    if mark != "unarchive" or not work_ids:
        return list(rows)
    replaced = replaced_among(work_ids)
    return [row for row in rows if row.id not in replaced]


def without_duplicates(owner: Owner, rows: Sequence[Memory], mark: str) -> list[Memory]:
    """What was merged into one that says the same comes back by `undo_merge`, and by no mark."""
    if mark != "unarchive" or not rows:
        return list(rows)
    merged = merged_into_others(owner.account_id, [row.id for row in rows])
    return [row for row in rows if row.id not in merged]


def mark_all(rows: QuerySet[Memory], *, mark: str, now: datetime) -> int:
    """Mark those of the rows that are not marked yet, however many, in the caller's transaction; how many changed.

    To be recorded by the caller.
    """
    # locked in the order of everybody who locks memories, or two of them would wait for each other
    locked = rows.exclude(**MARKS[mark]).order_by("id").select_for_update(no_key=True, of=("self",))
    changed = 0
    for ids in chunks(locked.values_list("id", flat=True).iterator(ROWS_A_TRANSACTION)):
        changed += Memory.objects.filter(id__in=ids).update(**MARKS[mark], version=F("version") + 1, updated_at=now)
    return changed


def embed_again(owner: Owner, memory_ids: Sequence[UUID], *, now: datetime) -> int:
    """Queue memories to be embedded anew; how many were queued. Their vectors serve until new ones replace them."""
    queued = 0
    for ids in chunks(memory_ids):
        with transaction.atomic():
            rows = lock_memories(owner, ids)
            found = [row.id for row in rows]
            Memory.objects.filter(id__in=found).update(embed_after=now, embed_attempts=0, embed_error="")
            record_correction(owner, "embed", rows)
        queued += len(rows)
    return queued


def delete_memories(owner: Owner, memory_ids: Sequence[UUID], *, now: datetime) -> int:
    """Delete memories with their vectors and links; how many there were. The audit log keeps their ids only.

    What was merged into them goes along, and what a slot or work episode was compressed from; both count. Episodes
    name goals and artifacts no more. Raises Unprocessable for a turn: its conversation would have a gap; and for a goal
    that others wait for.
    """
    deleted = 0
    for ids in chunks(memory_ids):
        if Memory.objects.visible_to(owner, Kind.TURN).filter(id__in=ids).exists():
            raise Unprocessable("a turn goes with its conversation only; correct its text to be rid of what it says")
        with transaction.atomic():
            deleted += erase_together(owner, ids, now=now)
    return deleted


def erase_together(owner: Owner, memory_ids: Sequence[UUID], *, now: datetime) -> int:
    """As `delete_memories` says, in the caller's transaction."""
    mentions = mentions_of(owner, memory_ids)
    work_ids = hold_work(owner, memory_ids, along=mentions)
    if hold_goals(owner, memory_ids) and waited_for(owner, memory_ids):
        raise Unprocessable("others wait for one of these goals: delete it from the list of goals")
    gaps = hold_chains(owner, memory_ids)
    along = deleted_along(owner, work_ids)
    records = records_of(along)
    together = sorted({*memory_ids, *hold_parts(owner, memory_ids), *along, *said_again(owner, memory_ids)})
    if mentions:
        lock_memories(owner, [*together, *mentions, *gaps.around])
    retell_without(owner, memory_ids, now=now)
    deleted = sum(erase_memories(owner, some) for some in chunks(together))
    close_gaps(owner, gaps, now=now)
    settle_records(records)
    return deleted


def said_again(owner: Owner, memory_ids: Sequence[UUID]) -> list[UUID]:
    """What was merged into those that the owner sees, since it says what they say."""
    seen = Memory.objects.visible_to(owner).filter(id__in=memory_ids).values_list("id", flat=True)
    return merged_along(owner.account_id, list(seen))


def erase_memories(owner: Owner, memory_ids: Sequence[UUID]) -> int:
    """Those of ROWS_A_TRANSACTION at most that the owner sees, turns among them; how many there were."""
    with transaction.atomic():
        rows = lock_memories(owner, memory_ids)
        writer.delete_memories([row.id for row in rows])
        record_correction(owner, "delete", rows)
    return len(rows)


def lock_memory(owner: Owner, memory_id: UUID) -> Memory:
    rows = lock_memories(owner, [memory_id])
    if not rows:
        raise NotFound("no such memory")
    return rows[0]


def lock_memories(owner: Owner, memory_ids: Sequence[UUID]) -> list[Memory]:
    """The owner's rows, locked in one order, without their texts: those may be long, and nobody here reads them."""
    rows = Memory.objects.visible_to(owner).filter(id__in=memory_ids).order_by("id")
    columns = ("id", "kind", "version", "conversation_id", "archived", "quarantined", "pinned")
    return list(rows.only(*columns).select_for_update(of=("self",)))


def chunks(memory_ids: Iterable[UUID]) -> Iterator[list[UUID]]:
    """ROWS_A_TRANSACTION at a time."""
    following = iter(memory_ids)
    while some := list(islice(following, ROWS_A_TRANSACTION)):
        yield some


def record_correction(owner: Owner, operation: str, rows: Sequence[Memory], **columns: Any) -> None:
    """One audit entry a documented type of memory; none when nothing changed."""
    by_type: dict[str, list[Memory]] = {}
    for row in rows:
        by_type.setdefault(MEMORY_TYPES.get(row.kind, "semantic"), []).append(row)
    for memory_type, of_type in by_type.items():
        conversations = {row.conversation_id for row in of_type}
        conversation_id = conversations.pop() if len(conversations) == 1 else ""
        record(
            owner,
            operation=operation,
            memory_type=memory_type,
            affected_ids=[row.id for row in of_type],
            conversation_id=conversation_id,
            session_id=conversation_id,
            result_count=len(of_type),
            **columns,
        )
