"""Responses to requests with an `Idempotency-Key`, stored in the transaction of the write they report.

They are kept in plain text for MEMORY_IDEMPOTENCY_HOURS and returned again whatever happened to the memories in them: a
memory that is erased or quarantined meanwhile stays readable there for the same API key. Lowering the account's
reasoning tier deletes responses that may contain reasoning. Raw traces are in none.
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
    """The response to one request, unique by API key, method, path and `Idempotency-Key`."""

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
