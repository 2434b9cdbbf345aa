"""Context entries: what a persistent context holds, each with all of its versions, and snapshots of them."""

from datetime import datetime

from django.db import models
from django.db.models import DurationField, ExpressionWrapper, F, FloatField, Q, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Extract, Greatest, Least, Now, Power

from memory import scoring
from memory.models.accounts import AccountRow
from memory.models.contexts import PersistentContext
from memory.models.memory import TABLE, MemoryRow
from memory_project.fields import VerbatimJSONField
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

SECONDS_PER_DAY = 86_400.0
MAX_AGE_DAYS = 10_000.0
"""Age at which recency is 0 to 200 digits. PostgreSQL raises an error for a power that Python rounds to zero."""


class ContextEntry(MemoryRow):
    """The current state of an entry. The memory's `text` is its content, `context` the context that holds it.

    An archived entry was removed: its history is kept, and restoring a snapshot brings it back. `key` names an entry in
    its context, if it has one. `value` is the JSON that was stored under the key, None if there is only the content.
    `content_version` is the number of the latest version, while `version` of the row counts every change, boosts too.
    """

    class EntryType(models.TextChoices):
        FACT = "fact"
        OBSERVATION = "observation"
        REFLECTION = "reflection"
        DECISION = "decision"
        PLAN = "plan"
        TOOL_OUTPUT = "tool_output"
        CONVERSATION_SUMMARY = "conversation_summary"

    class SourceType(models.TextChoices):
        AGENT = "agent"
        USER = "user"
        SYSTEM = "system"
        TOOL = "tool"
        WORKFLOW = "workflow"

    class MemoryType(models.TextChoices):
        FACTUAL = "factual"
        EXPERIENTIAL = "experiential"
        WORKING = "working"

    key = models.CharField(max_length=200, blank=True, default="")
    value = VerbatimJSONField(null=True, blank=True)
    entry_type = models.CharField(max_length=30, choices=EntryType, default=EntryType.OBSERVATION)
    source_type = models.CharField(max_length=20, choices=SourceType, default=SourceType.AGENT)
    memory_type = models.CharField(max_length=20, choices=MemoryType, default=MemoryType.FACTUAL)
    importance = models.FloatField(default=0.5)
    confidence = models.FloatField(default=1.0)
    content_version = models.PositiveIntegerField(default=1)

    class Meta:
        db_table = TABLE
        managed = False
        verbose_name_plural = "context entries"
        constraints = [
            models.CheckConstraint(condition=Q(importance__range=(0, 1)), name="entry_importance_in_range"),
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="entry_confidence_in_range"),
            models.CheckConstraint(condition=Q(content_version__gte=1), name="entry_versions_from_one"),
        ]

    def __str__(self) -> str:
        return self.key or f"entry {self.pk}"

    def effective_relevance_score(self, now: datetime) -> float:
        """Return importance, confidence and recency as one number in [0, 1] (see `scoring`)."""
        used_at = max(self.updated_at, self.last_accessed or self.updated_at)
        age_days = (now - used_at).total_seconds() / SECONDS_PER_DAY
        return scoring.effective_relevance_score(
            importance=self.importance, confidence=self.confidence, age_days=age_days
        )


class ContextEntryVersion(AccountRow):
    """One version of an entry, the latest one included. Rows are never changed.

    It refers to the version before it. `restored_from` is the number of the version whose content it restored.
    """

    # the database deletes versions with their entry
    entry = AccountForeignKey(ContextEntry, models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    previous_version = AccountForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="newer_versions",
    )  # fmt: skip
    content = models.TextField()
    value = VerbatimJSONField(null=True, blank=True)
    editor = models.CharField(max_length=150, blank=True, default="")
    restored_from = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "context_entry_versions"
        constraints = [
            ReferenceInAccount("entry", name="context_entry_versions_entry_in_account"),
            ReferenceInAccount("previous_version", name="context_entry_versions_previous_version_in_account"),
            models.UniqueConstraint(fields=["account", "entry", "number"], name="entry_version_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="entry_version_from_one"),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


def effective_relevance(now: datetime) -> Combinable:
    """Return `ContextEntry.effective_relevance_score` in SQL, to order lists of entries by it."""
    used_at = Greatest("updated_at", "last_accessed")
    age_seconds = Extract(ExpressionWrapper(Value(now) - used_at, DurationField()), "epoch")
    # as a float: powers of the numeric that seconds are take PostgreSQL ten times as long, and may be too small
    elapsed_days = Cast(age_seconds / Value(SECONDS_PER_DAY), FloatField())
    age_days = Least(Greatest(elapsed_days, Value(0.0)), Value(MAX_AGE_DAYS), output_field=FloatField())
    return (
        Value(scoring.IMPORTANCE_WEIGHT) * F("importance")
        + Value(scoring.CONFIDENCE_WEIGHT) * F("confidence")
        + Value(scoring.RECENCY_WEIGHT) * Power(Value(scoring.DAILY_DECAY), age_days)
    )


class ContextSnapshot(AccountRow):
    """The entries of a context, with their versions, importance and confidence, at one time."""

    context = AccountForeignKey(PersistentContext, models.CASCADE, related_name="snapshots")
    name = models.CharField(max_length=200, blank=True, default="")
    agent_id = models.CharField(max_length=100, blank=True, default="", help_text="Agent that made the snapshot.")
    entry_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "context_snapshots"
        constraints = [
            ReferenceInAccount("context", name="context_snapshots_context_in_account"),
        ]
        indexes = [models.Index(fields=["account", "context", "created_at"], name="snapshot_of_context")]

    def __str__(self) -> str:
        return self.name or f"snapshot {self.pk}"


class SnapshotEntry(AccountRow):
    """One entry of a snapshot. Its content is that of the version, which exists as long as the entry does."""

    # the database deletes these with both
    snapshot = AccountForeignKey(ContextSnapshot, models.CASCADE, related_name="entries")
    entry = AccountForeignKey(ContextEntry, models.CASCADE, related_name="+")
    number = models.PositiveIntegerField(help_text="Number of the version of the entry.")
    importance = models.FloatField()
    confidence = models.FloatField()
    attributes = models.JSONField(default=dict, help_text="Types, source and metadata of the entry, by column.")

    class Meta:
        db_table = "context_snapshot_entries"
        verbose_name_plural = "snapshot entries"
        constraints = [
            ReferenceInAccount("snapshot", name="context_snapshot_entries_snapshot_in_account"),
            ReferenceInAccount("entry", name="context_snapshot_entries_entry_in_account"),
            models.UniqueConstraint(fields=["account", "snapshot", "entry"], name="snapshot_entry_once"),
        ]
        indexes = [
            models.Index(fields=["account", "entry"], name="snapshot_entry_of"),
            # for the database, when it deletes them with their snapshot
            models.Index(fields=["snapshot"], name="snapshot_entry_in"),
        ]

    def __str__(self) -> str:
        return f"{self.entry_id} at {self.number}"
