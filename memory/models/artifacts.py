"""Artifacts (E9): files, documents, pages and data that work produces or uses outside of the conversation."""

from django.contrib.postgres.indexes import HashIndex
from django.db import models
from django.db.models import Q

from memory.models.goals import Goal
from memory.models.memory import Memory
from memory.models.turn_records import TurnRecord


class Artifact(Memory):
    """One revision of something with a path or URI. The memory's `text` describes it.

    The next revision is a row of its own that SUPERSEDES this one. `digest` is the hash of its content.
    """

    uri = models.TextField()
    artifact_type = models.CharField(max_length=50, blank=True, default="")
    title = models.CharField(max_length=500, blank=True, default="")
    digest = models.CharField(max_length=200, blank=True, default="")
    revision = models.PositiveIntegerField(default=1)
    label = models.CharField(
        max_length=100, blank=True, default="", help_text="Name that the client gave to the revision."
    )
    is_latest = models.BooleanField(default=True)
    # the database clears both when their target is deleted (see the migration)
    record = models.ForeignKey(
        TurnRecord, models.DO_NOTHING, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )
    for_goal = models.ForeignKey(
        Goal, models.DO_NOTHING, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )

    class Meta:
        db_table = "artifacts"
        constraints = [
            models.CheckConstraint(condition=~Q(uri=""), name="artifact_has_a_uri"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="artifact_revision_counts"),
        ]
        indexes = [
            # a URI may be longer than an entry of a B-tree
            HashIndex(fields=["uri"], name="artifact_uri"),
            models.Index(fields=["record"], name="artifact_of_record", condition=Q(record__isnull=False)),
            models.Index(fields=["for_goal"], name="artifact_of_goal", condition=Q(for_goal__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"artifact {self.pk}"
