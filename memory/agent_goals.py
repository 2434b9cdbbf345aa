"""Goals of the in-process API (`agent_memory`), and tasks: goals that last as long as a block of code runs."""

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseTrouble
from redis.exceptions import RedisError

from memory.agent_tiers import AgentPart
from memory.errors import Conflict, MemoryServiceError, NotFound
from memory.identity import holder_key
from memory.models import Goal
from memory.owner import Owner
from memory.retrieval.goals import GoalResults, GoalTree, read_goal_tree
from memory.services.accounts.access import ExpectedVersions
from memory.services.embedding.embed import embed_texts
from memory.services.goals.plan import (
    EndedGoal,
    GoalDraft,
    add_goal,
    block_goal,
    change_goal,
    complete_goal,
    delete_goal,
    unblock_goal,
)
from memory.services.goals.store import GoalView, active_goals, find_goals, get_goal
from memory.services.memories.store import ClientVector
from memory.services.sessions.hybrid import join_session, open_session
from memory.tiers.session import SessionMemory

logger = logging.getLogger(__name__)

SHOWN_TO_SESSION = 1_000
"""Characters of a task's description that its session has as the active goal."""


@dataclass(slots=True, kw_only=True)
class Task:
    """A goal that something works on. `result` may be set; it is the goal's once that is completed."""

    owner: Owner
    goal: Goal
    result: str = ""
    is_open: bool = True


TASKS: ContextVar[tuple[Task, ...]] = ContextVar("tasks", default=())
"""Those that the running code (of this thread, or asynchronous task) is in, outermost first."""


class AgentGoals(AgentPart):
    """Goals of the agent.

    >>> garden = memory.goals.add_goal("plant roses", priority=2)
    >>> digging = memory.goals.add_goal("dig holes", parent_id=garden.id)
    >>> memory.goals.block_goal(garden.id, by=digging.id).status
    'blocked'
    >>> memory.goals.complete_goal(digging.id, result="three holes").unblocked == [garden.id]
    True
    >>> with memory.goals.task("water them") as task:
    ...     task.result = "watered"
    >>> [goal.text for goal in memory.goals.active_goals()]
    ['plant roses']
    """

    def add_goal(
        self,
        description: str,
        *,
        priority: int = 0,
        deadline: datetime | None = None,
        parent_id: UUID | None = None,
        blocked_by: Sequence[UUID] = (),
        now: datetime | None = None,
    ) -> Goal:
        """Add a goal. Raises Unprocessable for a parent or blocker that is missing or closed (see `add_goal`)."""
        draft = GoalDraft(
            description=description,
            priority=priority,
            deadline=deadline,
            parent_id=parent_id,
            blocked_by=blocked_by,
        )
        return add_goal(self._owner, draft, embedded=embed_texts([description]), now=self._clock(now))

    def get_goal(self, goal_id: UUID, *, now: datetime | None = None) -> GoalView:
        """Return a goal with its parent, its children, its blockers and what it blocks. Raises NotFound."""
        return get_goal(self._owner, goal_id, now=self._clock(now))

    def goal_tree(self, goal_id: UUID, *, now: datetime | None = None) -> GoalTree:
        """Return a goal with everything below it. Raises NotFound."""
        return read_goal_tree(self._owner, goal_id, now=self._clock(now))

    def active_goals(self, *, now: datetime | None = None) -> list[Goal]:
        """Return the open goals, blocked ones included: by priority, then by deadline."""
        return list(active_goals(self._owner, now=self._clock(now)))

    def find_goals(
        self, query: str, *, top_k: int = 10, own: ClientVector | None = None, now: datetime | None = None
    ) -> GoalResults:
        """Return the open goals nearest to the query, or to a vector of one's own."""
        return find_goals(self._owner, text=query, top_k=top_k, own=own, now=self._clock(now))

    def change_goal(
        self,
        goal_id: UUID,
        changes: Mapping[str, Any],
        *,
        expected: ExpectedVersions = None,
        now: datetime | None = None,
    ) -> Goal:
        """Another `description`, `priority`, `deadline`, `metadata`, `parent` (an id, or None).

        Raises NotFound, Forbidden, StaleVersion, Unprocessable.
        """
        made = embed_texts([changes["description"]] if "description" in changes else [])
        moment = self._clock(now)
        return change_goal(self._owner, goal_id, changes=changes, embedded=made, expected=expected, now=moment)

    def complete_goal(
        self,
        goal_id: UUID,
        status: str = Goal.Status.COMPLETED.value,
        result: str = "",
        *,
        expected: ExpectedVersions = None,
        now: datetime | None = None,
    ) -> EndedGoal:
        """`completed` or `abandoned`. Raises NotFound, Forbidden, StaleVersion, Conflict for one that is closed."""
        moment = self._clock(now)
        return complete_goal(self._owner, goal_id, status=status, result=result, expected=expected, now=moment)

    def block_goal(
        self, goal_id: UUID, *, by: UUID, expected: ExpectedVersions = None, now: datetime | None = None
    ) -> Goal:
        """Block a goal by another one.

        Raises NotFound, Forbidden, StaleVersion, Conflict for a closed goal, and Unprocessable for a ring.
        """
        return block_goal(self._owner, goal_id, by=by, expected=expected, now=self._clock(now))

    def unblock_goal(
        self, goal_id: UUID, *, by: UUID, expected: ExpectedVersions = None, now: datetime | None = None
    ) -> Goal:
        """Unblock a goal. Raises NotFound, Forbidden, StaleVersion."""
        return unblock_goal(self._owner, goal_id, by=by, expected=expected, now=self._clock(now))

    def delete_goal(
        self, goal_id: UUID, *, expected: ExpectedVersions = None, now: datetime | None = None
    ) -> list[UUID]:
        """Delete a goal for good, and return the ids of the goals that are no longer blocked.

        Raises NotFound, Forbidden, StaleVersion.
        """
        return delete_goal(self._owner, goal_id, expected=expected, now=self._clock(now))

    @contextmanager
    def task(
        self,
        description: str,
        *,
        priority: int = 0,
        deadline: datetime | None = None,
        parent_id: UUID | None = None,
        conversation_id: str = "",
        now: datetime | None = None,
    ) -> Generator[Task, None, None]:
        """Add a goal for as long as the block runs: completed at its end, abandoned if an exception leaves it.

        The exception goes on; the goal's result is the name of its type (a message may hold secrets). Inside another
        task of the same user (or agent, without a user) it is a subgoal of that task, unless it names a parent. With
        a `conversation_id` it is the active goal of that session meanwhile. Closed inside the block, it stays so.
        """
        above = parent_id or enclosing_goal(self._owner)
        goal = self.add_goal(description, priority=priority, deadline=deadline, parent_id=above, now=now)
        task = Task(owner=self._owner, goal=goal)
        try:
            with entered(task), self._active_in(conversation_id, task):
                yield task
        except BaseException as err:
            self._abandon(task, reason=type(err).__name__)
            raise
        self._close(task, status=Goal.Status.COMPLETED, result=task.result)

    def _abandon(self, task: Task, *, reason: str) -> None:
        try:
            self._close(task, status=Goal.Status.ABANDONED, result=reason)
        except (MemoryServiceError, DatabaseTrouble) as err:
            # what went wrong in the task is what the caller is to see
            logger.warning("goal %s was not abandoned: %s", task.goal.id, type(err).__name__)

    def _close(self, task: Task, *, status: str, result: str) -> None:
        try:
            task.goal = self.complete_goal(task.goal.id, status, result).goal
        except (Conflict, NotFound) as err:
            logger.info("goal %s was left as it is: %s", task.goal.id, err.code)

    @contextmanager
    def _active_in(self, conversation_id: str, task: Task) -> Generator[None, None, None]:
        """Make it the session's active goal, and what was there before afterwards."""
        if not conversation_id:
            yield
            return
        session = join_session(self._owner, conversation_id, now=self._clock(None))
        before = session.get_active_goal()
        session.set_active_goal(str(task.goal.id), task.goal.text[:SHOWN_TO_SESSION])
        try:
            yield
        finally:
            self._bring_back(conversation_id, before, task)

    def _bring_back(self, conversation_id: str, before: dict[str, Any] | None, task: Task) -> None:
        """Unless somebody set another goal in between."""
        try:
            session = open_session(self._owner, conversation_id, now=self._clock(None))
            restore_goal(session, before, instead_of=str(task.goal.id))
        except (RedisError, MemoryServiceError, DatabaseTrouble) as err:
            logger.warning("the active goal of a session was not brought back: %s", type(err).__name__)


def restore_goal(session: SessionMemory, before: dict[str, Any] | None, *, instead_of: str) -> None:
    shown = session.get_active_goal()
    if shown is None or shown["goal_id"] != instead_of:
        return
    if before is None:
        session.clear_active_goal()
    else:
        session.set_active_goal(before["goal_id"], before["goal_description"])


def enclosing_goal(owner: Owner) -> UUID | None:
    """Return the goal of the innermost task around the running code that has the same holder as the owner's goals."""
    held = (owner.account_id, holder_key(owner))
    for task in reversed(TASKS.get()):
        if task.is_open and (task.owner.account_id, holder_key(task.owner)) == held:
            return task.goal.id
    return None


@contextmanager
def entered(task: Task) -> Generator[None, None, None]:
    """Among TASKS. Taken out by name: a generator may be closed in another context than the one it began in."""
    TASKS.set((*TASKS.get(), task))
    try:
        yield
    finally:
        task.is_open = False
        TASKS.set(tuple(other for other in TASKS.get() if other is not task))
