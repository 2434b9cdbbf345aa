"""Audit log: a table partitioned by day (see the migration), with the documented columns and indexes."""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory_project.ids import uuid7
from memory_project.tenancy import AccountQuerySet

ERASED = "payload_erased_at"
"""Key in `metadata` of an entry whose texts were erased. Its value is the time of the erasure."""


class AuditQuerySet(AccountQuerySet["AuditEntry"]):
    """Entries by account."""

    def with_payload(self) -> Self:
        """Filter to entries with texts that an erasure would blank."""
        erased = Q(query_text="", error_message="", metadata__has_key=ERASED)
        return self.exclude(query_text="", error_message="", metadata={}).exclude(erased)


class AuditEntry(models.Model):
    """An operation on memories and its actor. Entries outlive the rows they name, so they have no foreign keys.

    Triggers refuse every change of an entry except the erasure of its texts by the database function made for it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    timestamp = models.DateTimeField(db_default=Now())
    account_id = models.UUIDField()
    actor = models.CharField(max_length=150, blank=True, default="")
    agent_id = models.CharField(max_length=100, blank=True, default="")
    operation = models.CharField(max_length=50)
    memory_type = models.CharField(max_length=50)
    affected_ids = ArrayField(models.CharField(max_length=200), default=list)
    user_id = models.CharField(max_length=100, blank=True, default="")
    session_id = models.CharField(max_length=100, blank=True, default="")
    conversation_id = models.CharField(max_length=100, blank=True, default="")
    source_channel = models.CharField(max_length=100, blank=True, default="")
    target_channels = ArrayField(models.CharField(max_length=100), default=list)
    query_text = models.TextField(blank=True, default="")
    result_count = models.IntegerField(null=True)
    cross_channel_count = models.IntegerField(
        null=True, help_text="Number of results from channels other than the active one."
    )
    latency_ms = models.IntegerField(null=True)
    success = models.BooleanField(default=True)
    error_message = models.TextField(blank=True, default="")
    promoted_from_channel = models.CharField(max_length=100, blank=True, default="")
    promotion_confidence = models.FloatField(null=True)
    promotion_access_count = models.IntegerField(null=True)
    promotion_conversation_count = models.IntegerField(null=True)
    config_snapshot = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)

    objects = AuditQuerySet.as_manager()

    class Meta:
        db_table = "memory_audit_log"
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["account_id", "timestamp"], name="idx_audit_account"),
            models.Index(fields=["account_id", "user_id", "timestamp"], name="idx_audit_user"),
            models.Index(fields=["account_id", "session_id", "timestamp"], name="idx_audit_session"),
            models.Index(fields=["account_id", "operation", "timestamp"], name="idx_audit_operation"),
            models.Index(fields=["account_id", "memory_type", "timestamp"], name="idx_audit_memory_type"),
            models.Index(fields=["account_id", "source_channel", "timestamp"], name="idx_audit_source_channel"),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.memory_type} {self.timestamp:%Y-%m-%d %H:%M:%S}"
