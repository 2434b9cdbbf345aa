"""Memories of any kind by their id, and their erasure.

`find_memory` and `find_memories` read, `forget_memory` erases one, and `forget_user` erases what is known about a
user, after `count_memories_of_user` said how much that is.

Only knowledge is erased here. Turns, episodes, structured turns and what lies in contexts belong to a conversation or
a context, and are deleted with it or by routes of their own.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import CharField, Count, QuerySet
from django.db.models.expressions import RawSQL

from memory.errors import Forbidden, NotFound, Unprocessable, require_found
from memory.kinds import Audience, Kind, kinds_seen_by, kinds_where, spec_of
from memory.models import Memory
from memory.models.memory import model_of
from memory.owner import Owner
from memory.retrieval.timeline import STATUS
from memory.services.custody.memories import erase_derived
from memory.services.custody.single import erase_fact
from memory.services.entities.resolve import holds_memory
from memory_project.large_values import read_with_small_values

MAX_FORGOTTEN = 1_000
"""Memories that one call of `forget_user` deletes at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenMemories:
    """Numbers of memories by kind: those that are (or would be) deleted, and those that stay.

    `remaining` is the number of memories that are left to be deleted by further calls.
    """

    deleted: dict[str, int]
    kept: dict[str, int]
    remaining: int


def readable_kinds() -> frozenset[Kind]:
    """Return the kinds whose memories are read by their id alone: no log of readers, no policy about reasoning."""
    return kinds_where(lambda spec: not spec.has_access_log and not spec.has_reasoning_tier)


def forgettable_kinds() -> frozenset[Kind]:
    """Return the kinds that are knowledge, which belongs to no conversation and no context."""
    return kinds_seen_by(Audience.KNOWLEDGE)


def find_memory(owner: Owner, memory_id: UUID, *, now: datetime) -> Memory:
    """Return a live memory of one of the `readable_kinds`, with its `status` (`retrieval.timeline.STATUS`).

    Raises NotFound, also for facts that are not believed.
    """
    status = RawSQL(STATUS % {"now": "%s"}, [now, now], output_field=CharField())  # noqa: S611 - a constant
    rows = Memory.objects.visible_to(owner, *sorted(readable_kinds())).live(now).annotate(status=status)
    memory = require_found(rows.filter(id=memory_id).first(), "memory")
    if spec_of(memory.kind).has_beliefs:
        believed: Any = model_of(memory.kind).objects.filter(account_id=owner.account_id, id=memory.id)
        if not believed.filter(recorded_at__isnull=False, retracted_at=None).exists():
            raise NotFound("no such memory")
    return memory


def find_memories(owner: Owner, memory_ids: Collection[UUID]) -> list[Memory]:
    """Return the memories with these ids that the owner sees, in the order of the ids."""
    rows = Memory.objects.visible_to(owner, *sorted(readable_kinds())).filter(id__in=memory_ids)
    by_id = {row.id: row for row in read_with_small_values(rows)}
    return [by_id[memory_id] for memory_id in memory_ids if memory_id in by_id]


def check_writer(owner: Owner, memory: Memory) -> None:
    """Raise Forbidden for an owner that may only read this knowledge."""
    if owner.agent_id not in ("", memory.agent_id) and not holds_memory(owner, memory):
        raise Forbidden("a memory can be changed only by its holder, by the agent that stored it, or by the account")


def forget_memory(owner: Owner, memory_id: UUID, *, now: datetime) -> None:
    """Erase a memory with its traces, and what was derived from it alone. Facts may have any status (`erase_fact`).

    Raises NotFound, also if another call erased it meanwhile; Forbidden, Unprocessable, RedisError.
    """
    rows = Memory.objects.visible_to(owner, *sorted(readable_kinds())).live(now)
    memory = require_found(rows.filter(id=memory_id).first(), "memory")
    spec = spec_of(memory.kind)
    if memory.kind not in forgettable_kinds():
        raise Unprocessable(f"{spec.plural} are not deleted here, because they belong to a conversation or a context")
    if spec.has_beliefs:
        erase_fact(owner, memory.id, expected=None, now=now)
        return
    check_writer(owner, memory)
    if not erase_derived(owner, [memory.id], now=now)[memory.kind]:
        raise NotFound("no such memory")


def memories_of_user(owner: Owner, *, kinds: Collection[Kind] = (), channel: str = "") -> QuerySet[Memory]:
    """Return all memories of the owner's user that the owner sees, archived and expired ones included."""
    if not owner.user_id:
        raise Unprocessable("name the user whose memories are deleted")
    rows = Memory.objects.visible_to(owner, *sorted(kinds)).filter(user_id=owner.user_id)
    return rows.filter(channel=channel) if channel else rows


def count_memories_of_user(owner: Owner, *, kinds: Collection[Kind] = (), channel: str = "") -> ForgottenMemories:
    """Return what `forget_user` would delete, in as many calls as it takes."""
    counted = memories_of_user(owner, kinds=kinds, channel=channel).order_by().values_list("kind").annotate(Count("id"))
    numbers = dict(counted)
    deleted = {kind: number for kind, number in numbers.items() if kind in forgettable_kinds()}
    kept = {kind: number for kind, number in numbers.items() if kind not in deleted}
    return ForgottenMemories(deleted=deleted, kept=kept, remaining=sum(deleted.values()))


def forget_user(owner: Owner, *, kinds: Collection[Kind] = (), channel: str = "", now: datetime) -> ForgottenMemories:
    """Erase knowledge about the owner's user, at most MAX_FORGOTTEN memories, and what was derived from it alone.

    Call it again while `remaining` is not 0. Conversations, episodes and the user's profile stay. Raises RedisError.
    """
    counted = count_memories_of_user(owner, kinds=kinds, channel=channel)
    rows = memories_of_user(owner, kinds=[Kind(kind) for kind in counted.deleted], channel=channel).order_by("id")
    # no kinds would mean all of them
    wanted = list(rows.values_list("id", "kind")[:MAX_FORGOTTEN]) if counted.deleted else []
    erase_derived(owner, [memory_id for memory_id, _kind in wanted], now=now)
    deleted = {kind: sum(each == kind for _id, each in wanted) for kind in counted.deleted}
    return ForgottenMemories(
        deleted={kind: number for kind, number in deleted.items() if number},
        kept=counted.kept,
        remaining=counted.remaining - len(wanted),
    )
