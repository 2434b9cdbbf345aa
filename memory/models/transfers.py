"""Exports and imports of archives: their progress, the parts of the archive, and rows that an import left alone."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow
from memory_project.fields import SealedJSONField
from memory_project.tenancy import AccountForeignKey, AccountQuerySet, ReferenceInAccount


class TransferQuerySet(AccountQuerySet["Transfer"]):
    def unfinished(self) -> Self:
        return self.filter(status__in=Transfer.UNFINISHED)

    def resumable(self) -> Self:
        """Filter to those that are not completed, and imports that failed after they had stored rows."""
        return self.filter(Q(status__in=Transfer.UNFINISHED) | Q(status=Transfer.Status.FAILED) & ~Q(position=""))

    def exports(self) -> Self:
        return self.filter(direction=Transfer.Direction.EXPORT)

    def imports(self) -> Self:
        return self.filter(direction=Transfer.Direction.IMPORT)


class Transfer(AccountRow):
    """An export to an archive, or an import of one.

    The row is the queue of the jobs `export_archives` and `import_archives`. An import goes on at `position`. The
    archive itself is in the parts, unless a command reads or writes a file.
    """

    class Direction(models.TextChoices):
        EXPORT = "export"
        IMPORT = "import"

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"

    UNFINISHED = (Status.QUEUED, Status.RUNNING)

    direction = models.CharField(max_length=10, choices=Direction)
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    agent_id = models.CharField(max_length=100, blank=True, default="", help_text="Agent whose rows are exported.")
    user_id = models.CharField(max_length=100, blank=True, default="", help_text="User whose rows are exported.")
    include_vectors = models.BooleanField(default=False)
    dry_run = models.BooleanField(default=False)
    in_parts = models.BooleanField(default=True, help_text="False where a command reads or writes a file.")
    requested_by = models.CharField(max_length=150, blank=True, default="")
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    size_bytes = models.PositiveBigIntegerField(default=0, help_text="Size of the archive.")
    digest = models.CharField(
        max_length=64, blank=True, default="", help_text="SHA-256 of the archive or its manifest."
    )
    remaps = models.BooleanField(null=True, help_text="True if rows get new ids. Empty until that is known.")
    position = models.CharField(max_length=100, blank=True, default="")
    counts = models.JSONField(default=dict, blank=True, help_text="Numbers of rows written or stored, by table.")
    existing = models.JSONField(default=dict, blank=True, help_text="Numbers of rows left alone, by table.")
    left_out = models.JSONField(
        default=dict, blank=True, help_text="Numbers of rows that the account lacks and that were not stored, by table."
    )
    error = models.CharField(max_length=1000, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TransferQuerySet.as_manager()

    class Meta:
        db_table = "transfers"
        constraints = [models.UniqueConstraint(fields=["account", "id"], name="transfer_of_account")]
        indexes = [
            models.Index(
                fields=["account", "id"], name="transfer_unfinished", condition=Q(status__in=("queued", "running"))
            ),
            models.Index(fields=["account", "expires_at"], name="transfer_expires"),
        ]

    def __str__(self) -> str:
        return f"{self.direction} {self.pk}"


class TransferPart(AccountRow):
    """A part of an archive, encrypted at rest: in base64, as JSON."""

    transfer = AccountForeignKey(Transfer, models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    data = SealedJSONField()

    class Meta:
        db_table = "transfer_parts"
        constraints = [
            ReferenceInAccount("transfer", name="transfer_parts_transfer_in_account"),
            models.UniqueConstraint(fields=["account", "transfer", "number"], name="transfer_part_once"),
        ]

    def __str__(self) -> str:
        return f"part {self.number} of {self.transfer_id}"


class UnstoredRow(AccountRow):
    """A row of an archive that an import left alone, and the row that the account has instead of it, if any."""

    transfer = AccountForeignKey(Transfer, models.CASCADE, related_name="unstored_rows")
    row_id = models.UUIDField()
    existing_id = models.UUIDField(null=True)

    class Meta:
        db_table = "transfer_unstored_rows"
        constraints = [
            ReferenceInAccount("transfer", name="transfer_unstored_rows_transfer_in_account"),
            models.UniqueConstraint(fields=["account", "transfer", "row_id"], name="unstored_row_once"),
        ]

    def __str__(self) -> str:
        return f"{self.row_id} of {self.transfer_id}"
