"""Effects of operations on entities on those that were merged into them."""

from collections.abc import Collection, Sequence
from uuid import UUID

from memory.models import Memory
from memory.services.entities.change import find_merged_entities, lock_entity_parts
from memory.services.memories.lifecycle import Lifecycle


class EntityLifecycle(Lifecycle):
    """Entities, whose names are unique and may have been taken over by a merge."""

    def find_along(self) -> Collection[UUID]:
        return lock_entity_parts(self.owner, self.memory_ids) if self.operation.is_erasure else ()

    def leave_out(self, rows: Sequence[Memory]) -> Collection[UUID]:
        """Keep archived what was merged into another entity and has no name of its own: a split brings it back.

        Raises Unprocessable for an entity without a name that was not merged: nothing would find it again.
        """
        is_restored = rows and self.operation.name == "unarchive"
        return find_merged_entities([row.id for row in rows]) if is_restored else ()
