"""Effects of operations on goals on the goals that wait for them."""

from collections.abc import Sequence

from memory.errors import Unprocessable
from memory.models import Memory
from memory.services.goals.plan import blocks_open_goal
from memory.services.goals.store import lock_goal_graph, recompute_waiters
from memory.services.memories.lifecycle import Lifecycle

HIDING_COLUMNS = frozenset({"archived", "quarantined"})
"""Columns that take a goal out of the way of those that wait for it."""


class GoalLifecycle(Lifecycle):
    """Goals, which block one another."""

    @property
    def _is_hidden_or_shown(self) -> bool:
        return not HIDING_COLUMNS.isdisjoint(self.operation.columns)

    def prepare(self) -> None:
        if self.operation.is_erasure or self._is_hidden_or_shown:
            lock_goal_graph(self.owner.account_id)
        if self.operation.is_erasure and blocks_open_goal(self.owner, self.memory_ids):
            raise Unprocessable("others wait for one of these goals: delete it from the list of goals")

    def propagate(self, rows: Sequence[Memory]) -> None:
        if self._is_hidden_or_shown:
            recompute_waiters(self.owner, self.memory_ids, now=self.now)
