"""Goals for tests, added through the service."""

from typing import Any
from uuid import UUID

from memory.models import Goal
from memory.owner import Owner
from memory.services.goals.plan import GoalDraft, add_goal, complete_goal
from memory.services.memories.store import ClientVector
from tests.memory.episodes import MODEL, NOTHING, NOW, direction


def aim(owner: Owner, description: str = "Plant the roses.", **fields: Any) -> Goal:
    """Added without the embedder. `fields` are those of the draft; with an `angle`, its vector is known."""
    angle = fields.pop("angle", None)
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    return add_goal(owner, GoalDraft(description=description, own=own, **fields), embedded=NOTHING, now=NOW)


def finish(owner: Owner, goal: Goal, **fields: Any) -> list[UUID]:
    """Completed; what goes on then."""
    return list(complete_goal(owner, goal.id, **{"status": "completed", "now": NOW, **fields}).unblocked)


def status_of(goal: Goal) -> str:
    """Return the stored status of the goal."""
    return str(Goal.objects.values_list("status", flat=True).get(pk=goal.pk))


def version_of(goal: Goal) -> int:
    """Return the stored version of the goal."""
    return int(Goal.objects.values_list("version", flat=True).get(pk=goal.pk))
