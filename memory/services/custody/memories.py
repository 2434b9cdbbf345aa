"""Erasing memories with their traces: versions, vectors, links, words, ledger marks, kept answers, audited texts.

What was derived from them goes as well where nothing else supports it:

- copies (PROMOTED_FROM) and merged duplicates go with their original
- summaries, work episodes and compressed slots go if any of their sources goes, because their text repeats all of them
- facts, strategies, learnings and entries go if all of their sources go; otherwise they only lose the link
- entities that extraction found go if no other turn mentions them and no other fact is about them

What is committed while they are being erased goes as well: they are locked against new references, and what is derived
from them is looked for again. Who waited finds them gone, or a turn without its text.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q

from memory.kinds import Kind
from memory.models import Conversation, Link, Memory, Turn
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.models.memory import EXTRACTED_SOURCE
from memory.models.statements import execute_statement, fetch_rows
from memory.owner import Owner
from memory.services.audit import write_waiting_reads
from memory.services.custody.naming import ERASED
from memory.services.custody.traces import erase_traces, evict_from_ledgers
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.goals.plan import erase_goal
from memory.services.goals.store import links_between_goals, lock_goal_graph
from memory.services.memories.correct import chunk_ids, delete_together, erase_memories
from memory.services.memories.lifecycle import lock_conversations
from memory.services.memories.store import TextUpdate, audit_memories, update_texts
from memory.services.profiles import forget_preferences
from memory.services.summaries.store import summaries_of_logs, summarize_again
from memory.services.turns import clear_session_buffers, strip_payload_text
from memory.services.work_episodes.propagate import find_conversations_of_work, find_mentioning_episodes

NO_VECTORS = EmbeddedTexts(model="", width=0, vectors={})
REPEATING_KINDS = [Kind.EPISODE.value, Kind.WORK_EPISODE.value, Kind.TURN_SLOT.value]
"""Kinds whose text repeats each of their sources."""
OWN_KINDS = [Kind.ARTIFACT.value, Kind.GOAL.value, Kind.TURN.value, Kind.ENTITY.value]
"""Kinds that a client stores as such, whatever they are linked to."""
IS_ERASED = ExpressionWrapper(Q(kind=Kind.TURN, buried=True, text=ERASED), output_field=BooleanField())

FIND_DERIVED = """
SELECT l.source_id FROM memory_links l JOIN memories m ON m.account_id = l.account_id AND m.id = l.source_id
WHERE l.account_id = %(account_id)s AND l.target_id = ANY(%(ids)s) AND l.source_id <> ALL(%(ids)s) AND (
    l.type = 'PROMOTED_FROM'
    OR l.type = 'DUPLICATE_OF' AND m.archived
    OR l.type = 'DERIVED_FROM' AND m.kind = ANY(%(repeating)s)
    OR l.type = 'DERIVED_FROM' AND m.kind <> ALL(%(own)s) AND NOT EXISTS (
        SELECT FROM memory_links other WHERE other.account_id = l.account_id AND other.source_id = l.source_id
            AND other.type = 'DERIVED_FROM' AND other.target_id <> ALL(%(ids)s)
    )
)
UNION
SELECT l.target_id FROM memory_links l JOIN memories m ON m.account_id = l.account_id AND m.id = l.target_id
WHERE l.account_id = %(account_id)s AND l.source_id = ANY(%(ids)s) AND l.target_id <> ALL(%(ids)s)
    AND l.type IN ('MENTIONS', 'ABOUT') AND m.kind = 'entity' AND m.source = %(extracted)s AND NOT EXISTS (
        SELECT FROM memory_links other WHERE other.account_id = l.account_id AND other.target_id = l.target_id
            AND other.type IN ('MENTIONS', 'ABOUT') AND other.source_id <> ALL(%(ids)s)
    )
"""

FIND_SUPPORTED = """
SELECT source_id FROM memory_links
WHERE account_id = %(account_id)s AND target_id = ANY(%(ids)s) AND source_id <> ALL(%(ids)s) AND type = 'DERIVED_FROM'
UNION
SELECT target_id FROM memory_links
WHERE account_id = %(account_id)s AND source_id = ANY(%(ids)s) AND target_id <> ALL(%(ids)s)
    AND type IN ('MENTIONS', 'ABOUT')
"""


class DerivedMemory(NamedTuple):
    """A memory that is erased, with what decides how. `is_erased`: a turn that was erased before."""

    id: UUID
    kind: str
    user_id: str
    is_erased: bool


def find_derived(account_id: UUID, memory_ids: Collection[UUID]) -> set[UUID]:
    """Return these memories of the account with all that goes along with them."""
    found = set(memory_ids)
    logs = Turn.objects.filter(account_id=account_id, id__in=found).order_by().values_list("log_id", flat=True)
    if named := list(logs.distinct()):
        found |= set(summaries_of_logs(account_id, named).values_list("id", flat=True))
    parameters: dict[str, Any] = {"account_id": account_id, "extracted": EXTRACTED_SOURCE}
    parameters |= {"repeating": REPEATING_KINDS, "own": OWN_KINDS}
    while new := {row[0] for row in fetch_rows(FIND_DERIVED, parameters | {"ids": list(found)})}:
        found |= new
    return found


class ErasureOutdated(Exception):  # noqa: N818 - it says what happened
    """Something else is derived from the memories than was found before they were locked."""


def erase_derived(owner: Owner, memory_ids: Collection[UUID], *, now: datetime) -> Counter[str]:
    """Erase memories of the owner's account with their traces and what was derived from them; return counts by kind.

    The caller has checked that the owner may. A turn stays as an empty place in its conversation, unless this is being
    erased as a whole; one that is empty already is not counted. One transaction, or the caller's. Raises RedisError if
    a ledger or a session's buffer cannot be cleared.
    """
    whole = Owner(account_id=owner.account_id, actor=owner.actor)
    while True:
        rows = read_derived(owner.account_id, memory_ids)
        evict_from_ledgers(whole, {row.id: row.kind for row in rows})
        write_waiting_reads(owner.account_id)
        # found again after what was derived from them meanwhile is committed
        with suppress(ErasureOutdated), transaction.atomic():
            return erase_locked(whole, memory_ids, rows, now=now)


def read_derived(account_id: UUID, memory_ids: Collection[UUID]) -> list[DerivedMemory]:
    """Return the memories that exist of `find_derived`, by id."""
    rows = Memory.objects.filter(account_id=account_id, id__in=find_derived(account_id, memory_ids))
    rows = rows.annotate(is_erased=IS_ERASED)
    return list(map(DerivedMemory._make, rows.order_by("id").values_list(*DerivedMemory._fields)))


def erase_locked(
    owner: Owner, memory_ids: Collection[UUID], rows: Sequence[DerivedMemory], *, now: datetime
) -> Counter[str]:
    """Lock the `rows`, which are `read_derived`, and erase them in the caller's transaction. Raises ErasureOutdated."""
    ids = {row.id for row in rows}
    turns = [row.id for row in rows if row.kind == Kind.TURN]
    goals = [row.id for row in rows if row.kind == Kind.GOAL]
    if turns or goals:
        lock_conversations(owner, find_conversations_to_lock(owner, ids, turns=turns))
    if goals:
        lock_goal_graph(owner.account_id)
    counts = Counter(row.kind for row in rows if not row.is_erased)

    def clear_traces() -> None:
        is_complete = read_derived(owner.account_id, memory_ids) == rows
        # what has become derived from them has to be locked, too: another erasure may take its other sources
        if not is_complete or not find_supported(owner.account_id, ids) <= others:
            raise ErasureOutdated
        counts.update(erase_traces(owner.account_id, ids))
        forget_preferences(owner, [row for row in rows if row.kind == Kind.FACT], now=now)

    others = {*turns, *goals, *find_supported(owner.account_id, ids)}
    if goals:
        # what goes on without them is changed with them
        linked = links_between_goals(owner.account_id, SUBGOAL_OF, BLOCKED_BY).filter(target_id__in=goals)
        others |= {*linked.values_list("source_id", flat=True), *find_mentioning_episodes(owner, goals)}
    delete_together(owner, sorted(ids - {*turns, *goals}), others=others, once_locked=clear_traces, now=now)
    for goal_id in goals:
        erase_goal(owner, goal_id, now=now)
    for some in chunk_ids(turns):
        erase_turns(owner, some, now=now)
    return +counts


def find_conversations_to_lock(owner: Owner, ids: Collection[UUID], *, turns: Sequence[UUID]) -> set[UUID]:
    """Return the conversations of turns, of structured turns, and of work episodes that name one of the memories."""
    logs = Turn.objects.filter(account_id=owner.account_id, id__in=turns).order_by().values_list("log_id", flat=True)
    work = {*ids, *find_mentioning_episodes(owner, ids)}
    return {*logs.distinct(), *find_conversations_of_work(owner, work)}


def find_supported(account_id: UUID, ids: Collection[UUID]) -> set[UUID]:
    """Return the memories that lose a source or a mention, and may then have none: another erasure takes others."""
    return {row[0] for row in fetch_rows(FIND_SUPPORTED, {"account_id": account_id, "ids": list(ids)})}


def erase_turns(owner: Owner, turn_ids: Sequence[UUID], *, now: datetime) -> None:
    """Delete those of the turns whose conversation is being erased, and blank the others."""
    rows = Turn.objects.filter(account_id=owner.account_id, id__in=turn_ids)
    going = list(rows.filter(log__erasing=True).values_list("id", flat=True))
    erase_memories(owner, going)
    staying = sorted(set(turn_ids) - set(going))
    if staying:
        blank_turns(owner, staying, now=now)


def blank_turns(owner: Owner, turn_ids: Sequence[UUID], *, now: datetime) -> None:
    """Replace the content of turns, whose numbers stay: a conversation has no gaps. No search finds them.

    Their conversations are summarized again. The client's own id of a turn stays, so that a repeated import does not
    store it again.
    """
    rows = Turn.objects.filter(account_id=owner.account_id, id__in=turn_ids)
    logs = list(rows.order_by().values_list("log_id", flat=True).distinct())
    lock_conversations(owner, logs)
    turns = list(rows.order_by("id").select_for_update())
    update_texts(owner, [TextUpdate(row=turn, text=ERASED) for turn in turns], embedded=NO_VECTORS, now=now)
    for turn in turns:
        columns = {"payload": strip_payload_text(turn.payload), "name": "", "metadata": {}, "user_id": ""}
        rows.filter(id=turn.id).update(**columns, buried=True, embed_after=None)
    Link.objects.filter(account_id=owner.account_id, source_id__in=turn_ids).delete()
    Link.objects.filter(account_id=owner.account_id, target_id__in=turn_ids).delete()
    execute_statement(
        "UPDATE memories SET source_turn_id = NULL WHERE account_id = %s AND source_turn_id = ANY(%s)",
        [owner.account_id, list(turn_ids)],
    )
    summarize_again(owner.account_id, logs, now=now)
    Conversation.objects.filter(account_id=owner.account_id, id__in=logs).update(saved_session=None, saved_at=None)
    clear_session_buffers(owner, turn_ids)
    audit_memories(owner, "delete", turns)
