"""User profiles: preferences, expertise and communication style of users."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory_project.ids import uuid7


class UserProfile(models.Model):
    """The profile of a user of the account, the same for every agent. It is looked up by the user's id.

    `provenance` maps the name of a preference that was derived from a fact to the fact, its turns and the time.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    user_id = models.CharField(max_length=100)
    preferences = models.JSONField(default=dict, blank=True)
    expertise_areas = models.JSONField(default=list, blank=True)
    communication_style = models.JSONField(default=dict, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    provenance = models.JSONField(default=dict, blank=True, editable=False)
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "user_profiles"
        constraints = [
            models.UniqueConstraint(fields=["account", "user_id"], name="profile_once"),
            models.CheckConstraint(condition=~Q(user_id=""), name="profile_has_a_user"),
        ]

    def __str__(self) -> str:
        return f"profile {self.pk}"
