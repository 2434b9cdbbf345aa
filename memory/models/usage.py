"""What language models were asked for and what it cost: one row a day, account, use and model."""

from django.db import models

from memory.models.accounts import Account
from memory_project.ids import uuid7
from memory_project.walls import OfAccount


class ModelUsageQuerySet(OfAccount["ModelUsage"]):
    """Usage by account."""


class ModelUsage(models.Model):
    """Sums of a day (UTC). Tokens are the provider's own count; `cost` is reckoned by the prices of that moment."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    use = models.CharField(max_length=50, help_text="What for: summary, extraction, …")
    model = models.CharField(max_length=100)
    calls = models.PositiveIntegerField(default=0)
    failed_calls = models.PositiveIntegerField(default=0, help_text="Refused, unanswered, or answered with garbage.")
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=18, decimal_places=8, default=0, help_text="In the currency of the prices.")

    objects = ModelUsageQuerySet.as_manager()

    class Meta:
        db_table = "model_usage"
        verbose_name_plural = "model usage"
        constraints = [
            models.UniqueConstraint(fields=["account", "day", "use", "model"], name="model_usage_once_a_day")
        ]

    def __str__(self) -> str:
        return f"{self.use} {self.model} {self.day}"
