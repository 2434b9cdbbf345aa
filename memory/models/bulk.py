"""Bulk changes: what staff did to many rows at once, with the reason, the progress and what is needed to undo it."""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow
from memory_project.tenancy import AccountForeignKey, AccountQuerySet, ReferenceInAccount


class BulkChangeQuerySet(AccountQuerySet["BulkChange"]):
    def unfinished(self) -> Self:
        return self.filter(status__in=BulkChange.UNFINISHED)


class BulkChange(AccountRow):
    """An action on chosen rows of one account. The row is the queue of the job `change_in_bulk`.

    `model` and `action` name an action of `memory.services.bulk.actions`. Its rows are in its pages, so that they are
    those that staff were shown, whatever is written meanwhile.
    """

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETED = "completed"
        STOPPED = "stopped"
        """Staff stopped it, or it was refused. What was done until then stays."""

    UNFINISHED = (Status.QUEUED, Status.RUNNING)

    model = models.CharField(max_length=50)
    action = models.CharField(max_length=50)
    reason = models.CharField(max_length=500)
    requested_by = models.CharField(max_length=150)
    status = models.CharField(max_length=20, choices=Status, default=Status.QUEUED)
    undoes = models.UUIDField(null=True, blank=True, help_text="Id of the bulk change that this one undoes.")
    undone_by = models.UUIDField(null=True, blank=True, help_text="Id of the bulk change that undoes this one.")
    total = models.PositiveIntegerField(default=0, help_text="Number of rows that were chosen.")
    examined = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    refusals = models.JSONField(default=list, blank=True, help_text="Some of the reasons why rows were refused.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = BulkChangeQuerySet.as_manager()

    class Meta:
        db_table = "bulk_changes"
        indexes = [
            models.Index(
                fields=["account", "id"], name="bulk_change_unfinished", condition=Q(status__in=("queued", "running"))
            )
        ]

    def __str__(self) -> str:
        return f"{self.action.replace('_', ' ')} {self.total} of {self.model}"


class BulkChangePage(AccountRow):
    """Some rows of a bulk change, which are changed in one transaction, and which of them were changed."""

    change = AccountForeignKey(BulkChange, models.CASCADE, related_name="+")
    number = models.PositiveIntegerField()
    row_ids = ArrayField(models.UUIDField())
    changed_ids = ArrayField(models.UUIDField(), default=list)
    done_at = models.DateTimeField(null=True)

    objects = AccountQuerySet["BulkChangePage"].as_manager()

    class Meta:
        db_table = "bulk_change_pages"
        constraints = [
            ReferenceInAccount("change", name="bulk_change_pages_change_in_account"),
            models.UniqueConstraint(fields=["account", "change", "number"], name="bulk_change_page_once"),
        ]

    def __str__(self) -> str:
        return f"page {self.number}"
