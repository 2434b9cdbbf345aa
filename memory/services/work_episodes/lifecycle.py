"""Lifecycles of slots and work episodes, and of the goals and artifacts that they name."""

from collections.abc import Collection, Sequence
from uuid import UUID

from memory.errors import Unprocessable
from memory.models import Memory
from memory.services.memories.correct import chunk_ids, erase_memories
from memory.services.memories.lifecycle import Lifecycle, Operation
from memory.services.work_episodes.propagate import (
    MENTIONED_COLUMNS,
    clear_work_data,
    find_conversations_of_work,
    find_deleted_along,
    find_marked_along,
    find_mentioning_episodes,
    find_other_versions,
    find_records_of_slots,
    find_replaced,
    recompute_records,
    remove_mentions,
    update_mentions,
)


class WorkLifecycle(Lifecycle):
    """Slots and work episodes, which exist at several levels of compression."""

    def __init__(self, operation: Operation, memory_ids: Sequence[UUID]) -> None:
        super().__init__(operation, memory_ids)
        self.along: list[UUID] = []
        self.records: dict[UUID, bool] = {}

    def find_conversations(self) -> Collection[UUID]:
        return find_conversations_of_work(self.memory_ids)

    def find_along(self) -> Collection[UUID]:
        if self.operation.is_erasure:
            self.along = find_deleted_along(self.owner, self.memory_ids)
            return self.along
        return find_marked_along(self.owner, self.memory_ids, self.operation.name)

    def leave_out(self, rows: Sequence[Memory]) -> Collection[UUID]:
        """Keep rows archived that another level replaced, since both have the same content."""
        return find_replaced([row.id for row in rows]) if self.operation.name == "unarchive" else ()

    def before_erasure(self) -> None:
        self.records = find_records_of_slots(self.along)

    def propagate(self, rows: Sequence[Memory]) -> None:
        if self.operation.is_erasure:
            recompute_records(self.records)
        elif "text" in self.operation.columns:
            for row in rows:
                self._erase_other_versions(row.id)

    def _erase_other_versions(self, memory_id: UUID) -> None:
        """Erase everything that still says what the text said before its correction.

        Raises Unprocessable for a memory that another level stands for: nobody would read the corrected text.
        """
        if find_replaced([memory_id]):
            raise Unprocessable("another level stands for it: correct that one")
        others = find_other_versions(self.owner, memory_id)
        records = find_records_of_slots([memory_id, *others])
        clear_work_data(memory_id)
        for ids in chunk_ids(others):
            erase_memories(self.owner, ids)
        recompute_records(records)


class MentionLifecycle(Lifecycle):
    """Goals and artifacts, which work episodes name."""

    def __init__(self, operation: Operation, memory_ids: Sequence[UUID]) -> None:
        super().__init__(operation, memory_ids)
        self.mentions: list[UUID] = []

    @property
    def _is_renamed(self) -> bool:
        return not MENTIONED_COLUMNS.isdisjoint(self.operation.columns)

    def find_conversations(self) -> Collection[UUID]:
        if self.operation.is_erasure or self.operation.name == "quarantine" or self._is_renamed:
            self.mentions = find_mentioning_episodes(self.owner, self.memory_ids)
        return find_conversations_of_work(self.mentions) if self.mentions else ()

    def find_along(self) -> Collection[UUID]:
        """Hide the episodes that name what is quarantined."""
        return self.mentions if self.operation.name == "quarantine" else ()

    def find_rewritten(self) -> Collection[UUID]:
        return self.mentions

    def before_erasure(self) -> None:
        remove_mentions(self.owner, self.memory_ids, now=self.now)

    def propagate(self, rows: Sequence[Memory]) -> None:
        if self._is_renamed:
            update_mentions(self.owner, self.memory_ids, now=self.now)
