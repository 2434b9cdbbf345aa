"""Limits of staff to some accounts."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models


class StaffLimit(models.Model):
    """The accounts that a member of staff sees in the admin. One without such a row sees all, a superuser always.

    Ids of accounts that are gone may stay in the list: nobody gets such an id again, and an empty list shows nothing.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="staff_limit")
    account_ids = ArrayField(models.UUIDField(), default=list, blank=True)

    class Meta:
        db_table = "staff_limits"
        verbose_name = "limit to accounts"
        verbose_name_plural = "limits to accounts"

    def __str__(self) -> str:
        return f"limit of {self.user_id}"
