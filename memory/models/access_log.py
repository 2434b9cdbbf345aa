"""Access log of contexts: which agent read or wrote which entry, and when."""

from django.db import models

from memory.models.accounts import Account
from memory.models.contexts import PersistentContext
from memory_project.ids import uuid7


class ContextAccessLog(models.Model):
    """One line of the log. It outlives its entry. A line with the action `lost` counts lines that were never written.

    `id` is made where the access happens, so that a line that is written twice is stored once.
    """

    class Action(models.TextChoices):
        READ = "read"
        SEARCH = "search"
        CREATE = "create"
        UPDATE = "update"
        BOOST = "boost"
        REDUCE = "reduce"
        ARCHIVE = "archive"
        RESTORE = "restore"
        LOST = "lost"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    # the database deletes lines with their context, by a foreign key within the account (see the migration)
    context = models.ForeignKey(
        PersistentContext, models.CASCADE, null=True, related_name="access_logs", db_index=False, db_constraint=False
    )
    entry_id = models.UUIDField(null=True)
    agent_id = models.CharField(max_length=100, blank=True, default="")
    actor = models.CharField(max_length=150, blank=True, default="")
    action = models.CharField(max_length=20, choices=Action)
    count = models.PositiveIntegerField(default=1)
    accessed_at = models.DateTimeField()

    class Meta:
        db_table = "context_access_logs"
        indexes = [
            models.Index(fields=["account", "context", "accessed_at"], name="access_of_context"),
            models.Index(fields=["account", "entry_id", "accessed_at"], name="access_of_entry"),
            models.Index(fields=["accessed_at"], name="access_time"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.action} {self.entry_id}"
