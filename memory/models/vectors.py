"""Vectors: the embeddings of memories by embedding models: one row for the whole text, and one for each passage of it.

A text that fits one passage (`providers.passages`) has no row but that of the whole. Passages are rows of the same
table, so that one search, one index, and one set of filters serve both.

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
from django.db.models import F, Q
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
IS_WHOLE = Q(passage=0, passage_start=None, passage_end=None)
IS_PASSAGE = Q(passage__gt=0, passage_start__gte=0, passage_end__gt=F("passage_start"))


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

    def whole(self) -> Self:
        """Filter to vectors of whole texts."""
        return self.filter(passage=0)


class Vector(models.Model):
    """The embedding of a memory, or of a passage of it, by a model. It has `width` dimensions and unit length."""

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
    passage = models.SmallIntegerField(db_default=0, help_text="Number of the passage, from 1. 0: the whole text.")
    passage_start = models.IntegerField(null=True, help_text="First character of the passage in the text.")
    passage_end = models.IntegerField(null=True, help_text="Character after the passage.")
    is_given = models.BooleanField(db_default=False, help_text="The client sent it, so no passages are added.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = VectorQuerySet.as_manager()

    class Meta:
        db_table = "memory_vectors"
        constraints = [
            ReferenceInAccount("memory", name="memory_vectors_memory_in_account"),
            models.UniqueConstraint(fields=["account", "memory", "model", "passage"], name="vector_once_a_passage"),
            models.CheckConstraint(condition=IS_WHOLE | IS_PASSAGE, name="vector_of_whole_or_passage"),
            models.CheckConstraint(condition=Q(width__range=(1, MAX_WIDTH)), name="vector_width_in_range"),
        ]
        indexes = [
            # deduplication reads new vectors
            BrinIndex(fields=["created_at"], name="vector_created"),
            models.Index(fields=["account", "agent_id", "kind", "model"], name="vector_owner"),
            models.Index(fields=["account", "conversation_id", "kind", "model"], name="vector_conversation"),
            models.Index(fields=["account", "user_id", "kind", "model"], name="vector_user"),
            # searches ask whether an account has any
            models.Index(fields=["account", "model"], name="vector_passages", condition=Q(passage__gt=0)),
            models.Index(
                fields=["account", "context_id", "kind", "model"],
                name="vector_context",
                condition=Q(context_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} of {self.memory_id}"
