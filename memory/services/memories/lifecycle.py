"""Hooks by which a kind updates what depends on its memories when these are corrected, marked or erased."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.module_loading import import_string

from memory.kinds import all_specs
from memory.models import Conversation, Memory
from memory.owner import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A correction, mark or erasure of memories of one account.

    `name` is the operation in the audit log: `update`, `delete` or a mark (see `correct.MARKS`). `columns` are the new
    values that a correction or mark gives; empty for `delete`.
    """

    owner: Owner
    name: str
    columns: Mapping[str, Any] = field(default_factory=dict)
    now: datetime

    @property
    def is_erasure(self) -> bool:
        return self.name == "delete"


class Lifecycle:
    """Consequences of an operation on memories beyond their own rows. Subclasses override the hooks they need.

    One instance serves one operation, in its transaction. `memory_ids` are those of the memories asked for whose kind
    names the class in `KindSpec.lifecycles`, whether the owner sees them or not. The hooks run in the order in which
    they stand here; each of them runs for all lifecycles before the next one does.
    """

    def __init__(self, operation: Operation, memory_ids: Sequence[UUID]) -> None:
        self.operation = operation
        self.owner, self.now = operation.owner, operation.now
        self.memory_ids = memory_ids

    def find_conversations(self) -> Collection[UUID]:
        """Return primary keys of conversations to lock before everything else."""
        return ()

    def prepare(self) -> None:
        """Take locks that come before those of memories, and raise Unprocessable to refuse the operation."""

    def find_along(self) -> Collection[UUID]:
        """Return other memories that are marked or erased along with these."""
        return ()

    def find_rewritten(self) -> Collection[UUID]:
        """Return other memories that a correction or erasure rewrites, to be locked together with these."""
        return ()

    def derive_columns(self, row: Memory) -> Mapping[str, Any]:
        """Return shared columns that a correction of the locked row changes as well. Raises Unprocessable."""
        return {}

    def leave_out(self, rows: Sequence[Memory]) -> Collection[UUID]:
        """Return those of the locked rows that the mark does not apply to."""
        return ()

    def before_erasure(self) -> None:
        """Change what refers to the locked memories while they still exist."""

    def propagate(self, rows: Sequence[Memory]) -> None:
        """Bring what depends on the memories up to date. `rows` are those of them that were corrected or marked."""


def lock_conversations(owner: Owner, conversation_ids: Collection[UUID]) -> None:
    """Lock rows of conversations by primary key, in one order, as those who store turns in them do."""
    rows = Conversation.objects.filter(account_id=owner.account_id, id__in=conversation_ids).order_by("id")
    list(rows.select_for_update(no_key=True).values_list("id", flat=True))


def open_lifecycles(operation: Operation, memory_ids: Collection[UUID]) -> list[Lifecycle]:
    """Return the lifecycles of the kinds among these memories, in the order of the kinds, prepared for the operation.

    Conversations are locked first, then whatever else comes before memories. Raises Unprocessable for an operation that
    one of the kinds refuses.
    """
    rows = Memory.objects.filter(account_id=operation.owner.account_id, id__in=memory_ids)
    kinds: dict[str, list[UUID]] = {}
    for memory_id, kind in rows.order_by().values_list("id", "kind"):
        kinds.setdefault(kind, []).append(memory_id)
    served: dict[str, list[UUID]] = {}
    for spec in all_specs():
        for path in spec.lifecycles if spec.name in kinds else ():
            served.setdefault(path, []).extend(kinds[spec.name])
    lifecycles: list[Lifecycle] = [import_string(path)(operation, ids) for path, ids in served.items()]
    lock_conversations(operation.owner, {pk for each in lifecycles for pk in each.find_conversations()})
    for each in lifecycles:
        each.prepare()
    return lifecycles
