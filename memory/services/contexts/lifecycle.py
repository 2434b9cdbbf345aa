"""Lifecycle of context entries: a corrected text becomes the next version."""

from collections.abc import Sequence

from memory.models import Memory
from memory.services.contexts.versions import store_corrected_version
from memory.services.memories.lifecycle import Lifecycle


class EntryLifecycle(Lifecycle):
    """Entries of contexts, which keep their versions."""

    def propagate(self, rows: Sequence[Memory]) -> None:
        if "text" in self.operation.columns:
            for row in rows:
                store_corrected_version(self.owner, row.id, now=self.now)
