"""Conversations: for now, who takes part in one. Written with every memory that names a conversation and an agent."""

from typing import Self

from django.db import models
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory.owner import Owner
from memory_project.ids import uuid7


class ParticipantQuerySet(models.QuerySet["Participant"]):
    def of_agent(self, owner: Owner) -> Self:
        return self.filter(account_id=owner.account_id, agent_id=owner.agent_id)


class Participant(models.Model):
    """An agent that wrote into a conversation, and may therefore read it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    conversation_id = models.CharField(max_length=100)
    agent_id = models.CharField(max_length=100)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ParticipantQuerySet.as_manager()

    class Meta:
        db_table = "conversation_participants"
        constraints = [
            models.UniqueConstraint(fields=["account", "conversation_id", "agent_id"], name="participant_once"),
        ]
        indexes = [models.Index(fields=["account", "agent_id", "conversation_id"], name="participant_agent")]

    def __str__(self) -> str:
        return f"{self.agent_id} in {self.conversation_id}"
