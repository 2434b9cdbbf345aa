"""Tables of the service's operation: audit log, usage of language models, metrics, kept responses, and the canary."""

from datetime import datetime
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow, ApiKey
from memory_project.fields import SealedJSONField
from memory_project.ids import uuid7
from memory_project.tenancy import AccountQuerySet


class AuditQuerySet(AccountQuerySet["AuditEntry"]):
    """Entries by account."""


class AuditEntry(models.Model):
    """An operation on memories and its actor. Entries outlive the rows they name, so they have no foreign keys.

    The table is partitioned by day (see the migration), and has the documented columns and indexes. Triggers refuse
    every change of an entry except the erasure of its texts by the database function made for it.
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


class ModelUsageQuerySet(AccountQuerySet["ModelUsage"]):
    """Usage by account."""


class ModelUsage(AccountRow):
    """Usage of language models and its cost: one row per day (UTC), account, use and model.

    Tokens are as the provider counted them, `cost` is by the prices at the time of the call.
    """

    day = models.DateField()
    use = models.CharField(max_length=50, help_text="Purpose of the calls, such as summary or extraction.")
    model = models.CharField(max_length=100)
    calls = models.PositiveIntegerField(default=0)
    failed_calls = models.PositiveIntegerField(
        default=0, help_text="Calls that were refused, not answered, or answered with an unusable response."
    )
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(
        max_digits=18, decimal_places=8, default=0, help_text="Cost in the currency of the configured prices."
    )

    objects = ModelUsageQuerySet.as_manager()

    class Meta:
        db_table = "model_usage"
        verbose_name_plural = "model usage"
        constraints = [
            models.UniqueConstraint(fields=["account", "day", "use", "model"], name="model_usage_once_a_day")
        ]

    def __str__(self) -> str:
        return f"{self.use} {self.model} {self.day}"


class MetricSample(models.Model):
    """The value of a metric at a time. `name` is that of `/metrics`; `label` is a kind, a quantile or empty."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField()
    name = models.CharField(max_length=100)
    label = models.CharField(max_length=100, blank=True, default="")
    value = models.FloatField()

    class Meta:
        db_table = "metric_samples"
        constraints = [models.UniqueConstraint(fields=["name", "label", "at"], name="sample_once")]
        indexes = [models.Index(fields=["at"], name="sample_time")]

    def __str__(self) -> str:
        return f"{self.name} {self.label} {self.at:%Y-%m-%d %H:%M}"


class IdempotentRequestQuerySet(models.QuerySet["IdempotentRequest"]):
    def fresh(self, now: datetime) -> Self:
        return self.filter(expires_at__gt=now)


class IdempotentRequest(AccountRow):
    """The response to one request, unique by API key, method, path and `Idempotency-Key`.

    It is stored in the transaction of the write that it reports, kept in plain text for MEMORY_IDEMPOTENCY_HOURS, and
    returned again whatever happened to the memories in it: a memory that is quarantined meanwhile stays readable there
    for the same API key. Erasing a memory, its conversation or its user deletes the responses about it. Lowering the
    account's reasoning tier deletes responses that may contain reasoning. Raw traces are in none.
    """

    api_key = models.ForeignKey(ApiKey, models.CASCADE, related_name="+", db_index=False)
    # whose erasure deletes it: the body may quote both without naming them
    user_id = models.CharField(max_length=100, blank=True, default="", editable=False)
    conversation_id = models.CharField(max_length=100, blank=True, default="", editable=False)
    request_hash = models.CharField(max_length=64)
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    content_type = models.CharField(max_length=100)
    etag = models.CharField(max_length=100, blank=True, default="")
    body = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(db_index=True)

    objects = IdempotentRequestQuerySet.as_manager()

    class Meta:
        db_table = "idempotent_requests"
        constraints = [
            models.UniqueConstraint(fields=["account", "api_key", "request_hash"], name="request_answered_once"),
        ]

    def __str__(self) -> str:
        return self.request_hash[:12]


CANARY_ID = 1


class EncryptionCanary(models.Model):
    """The one row that shows at start whether the configured keys are those of this database.

    Key rotation re-encrypts it like any other encrypted column.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=CANARY_ID, editable=False)
    value = SealedJSONField()

    class Meta:
        db_table = "encryption_canary"
        constraints = [models.CheckConstraint(condition=Q(id=CANARY_ID), name="encryption_canary_is_single")]

    def __str__(self) -> str:
        return "encryption canary"
