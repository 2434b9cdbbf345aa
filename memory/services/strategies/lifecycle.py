"""Effects of a correction of a strategy on its text, its identity and its tools."""

from collections.abc import Mapping, Sequence

from memory.models import Memory
from memory.services.memories.lifecycle import Lifecycle
from memory.services.strategies.learn import (
    changed_strategy_text,
    check_strategy_correction,
    propagate_strategy_correction,
)


class StrategyLifecycle(Lifecycle):
    """Strategies, whose text follows from description and pattern."""

    def derive_columns(self, row: Memory) -> Mapping[str, str]:
        check_strategy_correction(self.operation.columns)
        return changed_strategy_text(row.id, self.operation.columns)

    def propagate(self, rows: Sequence[Memory]) -> None:
        if self.operation.name == "update":
            for row in rows:
                propagate_strategy_correction(row.id)
