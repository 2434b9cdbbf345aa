"""Erasures of users, filters and accounts: progress, the mark that keeps an erased user away, the signed receipt."""

from typing import Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow
from memory_project.fields import SealedJSONField
from memory_project.tenancy import AccountQuerySet


class ErasureQuerySet(AccountQuerySet["Erasure"]):
    def unfinished(self) -> Self:
        return self.filter(status__in=Erasure.UNFINISHED)

    def refusing(self, account_id: UUID, subject_digest: str) -> Self:
        """Filter to erasures of this user whose mark still refuses what names the user."""
        return self.filter(account_id=account_id, subject_digest=subject_digest, lifted_at=None)


class Erasure(AccountRow):
    """A request to erase all that is known of a user, the memories that a filter finds, or the account itself.

    The row is the queue of the job `erase`: `step` and `cursor` say where it goes on, `found` what the current pass has
    erased. `selection` has the user id or the filter, encrypted, until the erasure is completed; `subject_digest` is a
    keyed hash of account and user. The completed row is the receipt: `receipt` under `signature`. The row of a deleted
    account goes with it, and the audit log has that receipt.
    """

    class Scope(models.TextChoices):
        SUBJECT = "subject"
        FILTER = "filter"
        ACCOUNT = "account"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETED = "completed"

    UNFINISHED = (Status.QUEUED, Status.RUNNING)

    scope = models.CharField(max_length=20, choices=Scope)
    status = models.CharField(max_length=20, choices=Status, default=Status.QUEUED)
    subject_digest = models.CharField(
        max_length=64, blank=True, default="", help_text="Keyed hash of account and user. Empty for a filter."
    )
    selection = SealedJSONField(null=True, blank=True, editable=False)
    reason = models.CharField(max_length=500, blank=True, default="")
    requested_by = models.CharField(max_length=150, blank=True, default="")
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    lifted_at = models.DateTimeField(
        null=True, blank=True, help_text="Time from which the user may be written to again. Empty: not allowed."
    )
    step = models.CharField(max_length=50, blank=True, default="")
    cursor = models.CharField(max_length=200, blank=True, default="")
    passes = models.PositiveIntegerField(default=0, help_text="Number of complete passes over all stores.")
    found = models.PositiveIntegerField(default=0, help_text="Number of things erased in the current pass.")
    counts = models.JSONField(default=dict, blank=True, help_text="Numbers of things erased, by store.")
    receipt = models.JSONField(null=True, blank=True)
    signature = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ErasureQuerySet.as_manager()

    class Meta:
        db_table = "erasures"
        constraints = [
            models.UniqueConstraint(
                fields=["account", "subject_digest"],
                name="erasure_of_subject_once_at_a_time",
                condition=Q(status__in=("queued", "running")) & ~Q(subject_digest=""),
            ),
            models.CheckConstraint(
                condition=Q(status="completed", completed_at__isnull=False, selection=None)
                | (~Q(status="completed") & Q(completed_at=None, selection__isnull=False)),
                name="erasure_forgets_its_selection",
            ),
        ]
        indexes = [
            models.Index(fields=["account", "subject_digest"], name="erasure_of_subject"),
            models.Index(fields=["account", "id"], name="erasure_unfinished", condition=~Q(status="completed")),
        ]

    def __str__(self) -> str:
        return f"erasure {self.pk}"
