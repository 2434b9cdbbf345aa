"""Lifecycle of artifacts: an erasure closes the gaps in chains of revisions."""

from collections.abc import Collection, Sequence
from uuid import UUID

from memory.models import Memory
from memory.services.artifacts.change import RevisionGaps, close_revision_gaps, lock_chains
from memory.services.memories.lifecycle import Lifecycle, Operation


class ArtifactLifecycle(Lifecycle):
    """Artifacts, each a revision in a chain."""

    def __init__(self, operation: Operation, memory_ids: Sequence[UUID]) -> None:
        super().__init__(operation, memory_ids)
        self.gaps = RevisionGaps(latest={}, links=())

    def prepare(self) -> None:
        if self.operation.is_erasure:
            self.gaps = lock_chains(self.owner, self.memory_ids)

    def find_rewritten(self) -> Collection[UUID]:
        return self.gaps.around

    def propagate(self, rows: Sequence[Memory]) -> None:
        close_revision_gaps(self.owner, self.gaps, now=self.now)
