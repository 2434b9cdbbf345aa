"""User profiles: what is known of how a user wants to be served."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory_project.ids import uuid7


class UserProfile(models.Model):
    """One user of the account. Looked up by the user's id, whichever agent asks: no memory.

    `provenance` says where a preference comes from that nobody set by hand: name to fact, turns and time.
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
