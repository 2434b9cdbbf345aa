"""Vectors: the embeddings of memories, one row per memory and embedding model.

Another embedding model means more rows, not another column. A row repeats the owner's columns of the memory, so that
filters need no join, and `live`; a trigger copies their changes. Vectors are stored in half precision and out of
TOAST: a row fits a page up to 4,000 dimensions.

The table has hash partitions by account (migration 0025). Statements name the account as a constant, so that the
planner looks at one partition; jobs for all accounts look rows up one by one, or read all of them, but do not join.
"""

from datetime import datetime
from typing import Self

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from memory.kinds import Kind
from memory.models.accounts import Account
from memory.models.memory import Memory, visible_rows
from memory.owner import Owner
from memory.providers.embeddings import WIDEST
from memory_project.ids import uuid7
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

MAX_WIDTH = WIDEST


class VectorQuerySet(models.QuerySet["Vector"]):
    def visible_to(self, owner: Owner, *kinds: Kind) -> Self:
        """Filter to vectors of memories that the owner may see, of these kinds if any are named."""
        return self.filter(visible_rows(owner, *kinds))

    def in_channels(self, owner: Owner) -> Self:
        return self.filter(channel__in=owner.channels)

    def live(self, now: datetime) -> Self:
        """Filter to vectors of the memories in `MemoryQuerySet.recallable`. A trigger keeps `live` up to date."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), live=True)

    def of_model(self, model: str, width: int) -> Self:
        """Filter to vectors of one model and width. A search never mixes models."""
        return self.filter(model=model, width=width)


class Vector(models.Model):
    """The embedding of a memory by a model. It has `width` dimensions and unit length."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    memory = AccountForeignKey(Memory, models.CASCADE, related_name="vectors")
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=20, choices=Kind)
    agent_id = models.CharField(max_length=100, default="")
    user_id = models.CharField(max_length=100, default="")
    channel = models.CharField(max_length=100)
    conversation_id = models.CharField(max_length=100, default="")
    context_id = models.UUIDField(null=True)
    live = models.BooleanField(default=True)
    event_time = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    model = models.CharField(max_length=100)
    width = models.PositiveSmallIntegerField()
    vector = HalfVectorField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = VectorQuerySet.as_manager()

    class Meta:
        db_table = "memory_vectors"
        constraints = [
            ReferenceInAccount("memory", name="memory_vectors_memory_in_account"),
            models.UniqueConstraint(fields=["account", "memory", "model"], name="vector_once_a_model"),
            models.CheckConstraint(condition=Q(width__range=(1, MAX_WIDTH)), name="vector_width_in_range"),
        ]
        indexes = [
            # deduplication reads new vectors
            BrinIndex(fields=["created_at"], name="vector_created"),
            models.Index(fields=["account", "agent_id", "kind", "model"], name="vector_owner"),
            models.Index(fields=["account", "conversation_id", "kind", "model"], name="vector_conversation"),
            models.Index(fields=["account", "user_id", "kind", "model"], name="vector_user"),
            models.Index(
                fields=["account", "context_id", "kind", "model"],
                name="vector_context",
                condition=Q(context_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} of {self.memory_id}"
