"""The embedding model that serves searches, the one that is being prepared, and the memories that it still lacks."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow
from memory.models.memory import Memory
from memory_project.tenancy import AccountForeignKey, AccountQuerySet, ReferenceInAccount

STATE_ID = 1


class ServingModelState(models.Model):
    """The one row that says which embedding model serves searches. Changing it is the switch from model to model.

    Models are JSON objects, each a `memory.providers.embeddings.ModelSpec` without any key. `former` served before and
    still has its vectors. `phase` and `cursor` say how far the change to `next`, or the removal of `former`, is.
    """

    class Phase(models.TextChoices):
        IDLE = "idle"
        """Nothing is changing."""
        WALK = "walk"
        """Memories get their vectors of the next model, account after account."""
        INDEX = "index"
        """Indexes of large accounts over these vectors are built."""
        SWITCH = "switch"
        """What was written meanwhile gets its vectors, then the next model serves."""
        DROP = "drop"
        """Vectors of the former model are dropped."""
        ABORT = "abort"
        """Vectors of a model that is not to serve after all are dropped."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=STATE_ID, editable=False)
    serving = models.JSONField()
    next: Any = models.JSONField(null=True)
    former: Any = models.JSONField(null=True)
    phase = models.CharField(max_length=20, choices=Phase, default=Phase.IDLE)
    cursor = models.CharField(max_length=200, blank=True, default="")
    done = models.PositiveBigIntegerField(default=0, help_text="Number of memories embedded, or vectors dropped.")
    failed = models.PositiveBigIntegerField(default=0, help_text="Number of failed attempts to embed a memory.")
    started_at = models.DateTimeField(null=True)
    switched_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "embedding_state"
        constraints = [
            models.CheckConstraint(condition=Q(id=STATE_ID), name="embedding_state_is_single"),
            models.CheckConstraint(
                condition=Q(next__isnull=False, phase__in=("walk", "index", "switch", "abort"))
                | Q(next=None, phase__in=("idle", "drop")),
                name="embedding_state_phase_of_next",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.serving['name']} {self.phase}"


class ReembedQueueQuerySet(AccountQuerySet["ReembedEntry"]):
    """Queued memories by account."""


class ReembedEntry(AccountRow):
    """A memory whose vector of the serving model is newer than that of the next one. Exists during a change only.

    The database function `memory_note_vectors` adds it in the transaction that stores the vector.
    """

    memory = AccountForeignKey(Memory, models.CASCADE, related_name="+")
    attempts = models.PositiveSmallIntegerField(db_default=0, help_text="Number of failed attempts to embed it.")
    due_at = models.DateTimeField(db_default=Now())

    objects = ReembedQueueQuerySet.as_manager()

    class Meta:
        db_table = "reembed_queue"
        verbose_name_plural = "reembed entries"
        constraints = [
            ReferenceInAccount("memory", name="reembed_queue_memory_in_account"),
            models.UniqueConstraint(fields=["account", "memory"], name="reembed_queued_once"),
        ]
        indexes = [models.Index(fields=["account", "due_at"], name="reembed_due")]

    def __str__(self) -> str:
        return str(self.memory_id)
