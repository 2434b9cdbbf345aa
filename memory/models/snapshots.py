"""Snapshots of contexts: the entries with their versions, importance and confidence at one time."""

from django.db import models
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory.models.contexts import PersistentContext
from memory.models.entries import ContextEntry
from memory_project.ids import uuid7


class ContextSnapshot(models.Model):
    """The entries of a context at one time."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    context = models.ForeignKey(PersistentContext, models.CASCADE, related_name="snapshots", db_index=False)
    name = models.CharField(max_length=200, blank=True, default="")
    agent_id = models.CharField(max_length=100, blank=True, default="", help_text="Agent that made the snapshot.")
    entry_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "context_snapshots"
        indexes = [models.Index(fields=["account", "context", "created_at"], name="snapshot_of_context")]

    def __str__(self) -> str:
        return self.name or f"snapshot {self.pk}"


class SnapshotEntry(models.Model):
    """One entry of a snapshot. Its content is that of the version, which exists as long as the entry does."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    # the database deletes these with both, by foreign keys within the account (see the migration)
    snapshot = models.ForeignKey(
        ContextSnapshot, models.CASCADE, related_name="entries", db_index=False, db_constraint=False
    )
    entry = models.ForeignKey(ContextEntry, models.CASCADE, related_name="+", db_index=False, db_constraint=False)
    number = models.PositiveIntegerField(help_text="Number of the version of the entry.")
    importance = models.FloatField()
    confidence = models.FloatField()
    attributes = models.JSONField(default=dict, help_text="Types, source and metadata of the entry, by column.")

    class Meta:
        db_table = "context_snapshot_entries"
        verbose_name_plural = "snapshot entries"
        constraints = [models.UniqueConstraint(fields=["account", "snapshot", "entry"], name="snapshot_entry_once")]
        indexes = [
            models.Index(fields=["account", "entry"], name="snapshot_entry_of"),
            # for the database, when it deletes them with their snapshot
            models.Index(fields=["snapshot"], name="snapshot_entry_in"),
        ]

    def __str__(self) -> str:
        return f"{self.entry_id} at {self.number}"
