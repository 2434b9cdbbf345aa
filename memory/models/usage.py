"""Usage of language models and its cost: one row per day, account, use and model."""

from django.db import models

from memory.models.accounts import Account
from memory_project.ids import uuid7
from memory_project.tenancy import AccountQuerySet


class ModelUsageQuerySet(AccountQuerySet["ModelUsage"]):
    """Usage by account."""


class ModelUsage(models.Model):
    """Sums of a day (UTC). Tokens are as the provider counted them, `cost` is by the prices at the time of the call."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
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
