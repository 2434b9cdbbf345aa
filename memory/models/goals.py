"""Goals: work items in trees (SUBGOAL_OF) that may block one another (BLOCKED_BY).

Both relations are links of the graph. The database keeps them free of cycles, and each goal free of a second parent.
"""

from uuid import UUID

from django.db import models
from django.db.models import Q

from memory.kinds import Kind
from memory.models.memory import TABLE, MemoryRow

SUBGOAL_OF = "SUBGOAL_OF"
BLOCKED_BY = "BLOCKED_BY"


class Goal(MemoryRow):
    """A goal, which the memory's `text` describes. Goals of a greater `priority` come first.

    A goal is blocked until every goal that it is BLOCKED_BY is completed. Services keep `status` up to date.
    """

    class Status(models.TextChoices):
        ACTIVE = "active"
        BLOCKED = "blocked"
        COMPLETED = "completed"
        ABANDONED = "abandoned"

    OPEN = (Status.ACTIVE, Status.BLOCKED)

    parent_id: UUID | None = None
    """The goal that it is a subgoal of, if a service has loaded it."""

    status = models.CharField(max_length=20, choices=Status, default=Status.ACTIVE)
    priority = models.IntegerField(default=0)
    deadline = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    result = models.TextField(blank=True, default="")
    patterns_extracted_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        db_table = TABLE
        managed = False
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=("active", "blocked"), completed_at=None)
                | Q(status__in=("completed", "abandoned"), completed_at__isnull=False),
                name="goal_closed_at_a_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["account", "status", "deadline"],
                name="goal_deadline",
                condition=Q(kind=Kind.GOAL, completed_at=None),
            ),
            models.Index(
                fields=["account", "completed_at"],
                name="goal_for_patterns",
                condition=Q(kind=Kind.GOAL, status="completed", patterns_extracted_at=None),
            ),
        ]
