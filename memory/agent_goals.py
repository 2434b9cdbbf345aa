"""Goals of `AgentMemory`, and tasks: goals that last as long as a block of code runs."""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import Error as DatabaseTrouble
from redis.exceptions import RedisError

from memory.agent_tiers import AgentPart, Clock
from memory.errors import Conflict, MemoryServiceError, NotFound
from memory.identity import holder_key
from memory.models import Goal
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.goals.plan import EndedGoal, GoalDraft, add_goal, complete_goal
from memory.services.goals.store import GoalView, get_goal
from memory.services.sessions import join_session, open_session
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
    """Goals of an agent: the part of `AgentMemory` that works on them.

    >>> garden = memory.add_goal("plant roses", priority=2)
    >>> digging = memory.add_goal("dig holes", parent_id=garden.id)
    >>> memory.complete_goal(digging.id, result="three holes").goal.status
    'completed'
    >>> with memory.task("water them", parent_id=garden.id) as task:
    ...     task.result = "watered"
    >>> [child.text for child in memory.get_goal(garden.id).children]
    ['dig holes', 'water them']
    """

    def add_goal(
        self,
        description: str,
        *,
        priority: int = 0,
        deadline: datetime | None = None,
        parent_id: UUID | None = None,
        blocked_by: Sequence[UUID] = (),
        event_time: datetime | None = None,
        now: datetime | None = None,
    ) -> Goal:
        """Add a goal. The greater the priority, the more it matters. It was set at `event_time`, by default now.

        Raises Unprocessable for a parent or blocker that is missing or closed, and for an `event_time` in the future.
        """
        draft = GoalDraft(
            description=description,
            priority=priority,
            deadline=deadline,
            parent_id=parent_id,
            blocked_by=blocked_by,
            event_time=event_time,
        )
        return add_goal(self._owner, draft, embedded=embed_texts([description]), now=self._moment(now))

    def get_goal(self, goal_id: UUID, *, now: datetime | None = None) -> GoalView:
        """Return a goal with its parent, its children, its blockers and what it blocks. Raises NotFound."""
        return get_goal(self._owner, goal_id, now=self._moment(now))

    def complete_goal(
        self,
        goal_id: UUID,
        status: str = "completed",
        result: str = "",
        *,
        force: bool = False,
        now: datetime | None = None,
    ) -> EndedGoal:
        """End a goal as `completed` or `abandoned`. Completing it unblocks the goals that waited for it alone.

        A blocked goal is completed only with `force`. Raises NotFound, Forbidden; Conflict for a goal that is closed or
        blocked.
        """
        return complete_goal(self._owner, goal_id, status=status, result=result, force=force, now=self._moment(now))

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
        a `conversation_id` it is the active goal of that session meanwhile. Closed or blocked inside the
        block, it stays so.
        """
        goal = self.add_goal(
            description,
            priority=priority,
            deadline=deadline,
            parent_id=parent_id or enclosing_goal(self._owner),
            now=now,
        )
        task = Task(owner=self._owner, goal=goal)
        try:
            with entered(task), shown_to_session(task, conversation_id, self._clock):
                yield task
        except BaseException as err:
            try:
                close_task(task, status=Goal.Status.ABANDONED, result=type(err).__name__, now=self._clock())
            except (MemoryServiceError, DatabaseTrouble) as trouble:
                # what went wrong in the task is what the caller is to see
                logger.warning("goal %s was not abandoned: %s", task.goal.id, type(trouble).__name__)
            raise
        close_task(task, status=Goal.Status.COMPLETED, result=task.result, now=self._clock())


def close_task(task: Task, *, status: str, result: str, now: datetime) -> None:
    """Close the task's goal, unless it was closed, blocked or deleted inside the block."""
    try:
        task.goal = complete_goal(task.owner, task.goal.id, status=status, result=result, now=now).goal
    except (Conflict, NotFound) as err:
        logger.info("goal %s was left as it is: %s", task.goal.id, err.code)


def enclosing_goal(owner: Owner) -> UUID | None:
    """Return the goal of the innermost task around the running code that has the same holder as the owner's goals."""
    held = (owner.account_id, holder_key(owner))
    for task in reversed(TASKS.get()):
        if task.is_open and (task.owner.account_id, holder_key(task.owner)) == held:
            return task.goal.id
    return None


@contextmanager
def entered(task: Task) -> Generator[None, None, None]:
    """Add the task to TASKS for the duration of the block.

    It is removed by identity: a generator may be closed in another context than the one it began in.
    """
    TASKS.set((*TASKS.get(), task))
    try:
        yield
    finally:
        task.is_open = False
        TASKS.set(tuple(other for other in TASKS.get() if other is not task))


@contextmanager
def shown_to_session(task: Task, conversation_id: str, clock: Clock) -> Generator[None, None, None]:
    """Make the goal the session's active one, and afterwards the one that it had before."""
    if not conversation_id:
        yield
        return
    session = join_session(task.owner, conversation_id, now=clock())
    before = session.get_active_goal()
    session.set_active_goal(str(task.goal.id), task.goal.text[:SHOWN_TO_SESSION])
    try:
        yield
    finally:
        try:
            session = open_session(task.owner, conversation_id, now=clock())
            restore_goal(session, before, instead_of=str(task.goal.id))
        except (RedisError, MemoryServiceError, DatabaseTrouble) as err:
            logger.warning("the active goal of a session was not brought back: %s", type(err).__name__)


def restore_goal(session: SessionMemory, before: dict[str, Any] | None, *, instead_of: str) -> None:
    """Make `before` the active goal again, unless somebody set another one than `instead_of` meanwhile."""
    shown = session.get_active_goal()
    if shown is None or shown["goal_id"] != instead_of:
        return
    if before is None:
        session.clear_active_goal()
    else:
        session.set_active_goal(before["goal_id"], before["goal_description"])
