"""Answers already given to requests that carried an `Idempotency-Key`, kept with the write they answered.

For MEMORY_IDEMPOTENCY_HOURS, in plain text, and given again whatever has become of what they tell: a memory that is
erased or quarantined meanwhile is in them until then, for the key that was told of it. Lowering the policy of reasoning
forgets those that may tell one; raw traces are in none.
"""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models.functions import Now

from memory.models.accounts import Account, ApiKey
from memory_project.ids import uuid7


class IdempotentRequestQuerySet(models.QuerySet["IdempotentRequest"]):
    def fresh(self, now: datetime) -> Self:
        return self.filter(expires_at__gt=now)


class IdempotentRequest(models.Model):
    """One answered request: per key, method, path and `Idempotency-Key`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    api_key = models.ForeignKey(ApiKey, models.CASCADE, related_name="+", db_index=False)
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
