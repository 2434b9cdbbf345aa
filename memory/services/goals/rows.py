"""Goals as rows: seen, locked, stored by who may. What they do is in `goals`, how they are linked in `goal_links`."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery

from memory.audit import record
from memory.errors import NotFound, Unprocessable
from memory.identity import holder
from memory.models import Goal, Kind, Link, Memory
from memory.models.goals import SUBGOAL_OF
from memory.owner import Owner
from memory.services.accounts.access import Versions, check_version, refuse_reader
from memory.services.goals.links import lock_rows


def visible_goals(owner: Owner, *, now: datetime) -> QuerySet[Goal]:
    """Those that the owner sees, in whichever channel, closed ones too, each with its `parent_id`."""
    parents = Link.objects.filter(account_id=OuterRef("account_id"), source_id=OuterRef("pk"), type=SUBGOAL_OF)
    rows: Any = Goal.objects.visible_to(owner, Kind.GOAL).live(now)
    found: QuerySet[Goal] = rows.annotate(parent_id=Subquery(parents.values("target_id")))
    return found


def find_goal(owner: Owner, goal_id: UUID, *, now: datetime) -> Goal:
    """Raises NotFound."""
    goal = visible_goals(owner, now=now).filter(id=goal_id).first()
    if goal is None:
        raise NotFound("no such goal")
    return goal


def lock_goal(owner: Owner, goal_id: UUID, *, expected: Versions = None, now: datetime) -> Goal:
    """One that the owner may change, until the transaction ends. Raises NotFound, Forbidden, StaleVersion."""
    rows = visible_goals(owner, now=now).filter(id=goal_id)
    # memories before what their kinds hold, as everybody locks them
    goal = rows.select_for_update(no_key=True, of=("memory_ptr", "self")).first()
    if goal is None:
        raise NotFound("no such goal")
    refuse_reader(owner, goal, what="goal")
    check_version(goal.version, expected)
    return goal


def lock_linkable(owner: Owner, held_by: str, goal_ids: Collection[UUID], *, now: datetime) -> dict[UUID, Goal]:
    """Goals that one of this holder's may be linked to, by id, until the transaction ends.

    Raises Unprocessable where one of them is not there, or is another holder's.
    """
    visible = visible_goals(owner, now=now).filter(id__in=goal_ids).values("id")
    locked = lock_rows(owner.account_id, Q(id__in=visible))
    if set(goal_ids) - set(locked):
        raise Unprocessable("there is no such goal to be linked to")
    if any(holder_of(goal) != held_by for goal in locked.values()):
        raise Unprocessable("a goal is linked to goals of the same user only, or of the same agent where there is none")
    return locked


def holder_of(goal: Goal) -> str:
    """As `identity.holder`, of a row."""
    return holder(Owner(account_id=goal.account_id, agent_id=goal.agent_id, user_id=goal.user_id))


def refuse_closed(blockers: Sequence[Goal]) -> None:
    """Raise Unprocessable where one of them is closed."""
    if any(goal.completed_at is not None for goal in blockers):
        raise Unprocessable("a goal that is closed blocks nothing")


def save_goal(goal: Goal, *, now: datetime, **columns: Any) -> None:
    """Store columns of a locked goal, at its next version."""
    for name, value in columns.items():
        setattr(goal, name, value)
    goal.version, goal.updated_at = goal.version + 1, now
    shared = {"metadata": columns.pop("metadata")} if "metadata" in columns else {}
    Memory.objects.filter(id=goal.id).update(version=goal.version, updated_at=now, **shared)
    if columns:
        rows: Any = Goal.objects.filter(pk=goal.id)
        rows.update(**columns)


def record_goals(owner: Owner, operation: str, goals: Sequence[Goal], **columns: Any) -> None:
    record(owner, operation=operation, memory_type="semantic", affected_ids=[goal.id for goal in goals], **columns)
