"""The journal of injections: append-only rows from which a lost ledger is restored."""

from typing import Self

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from memory_project.ids import uuid7
from memory_project.tenancy import AccountQuerySet

CONVERSATION_ID_LENGTH = 100
AGENT_ID_LENGTH = 100
ITEM_KEY_LENGTH = 300
VALUE_LENGTH = 200


class InjectionQuerySet(AccountQuerySet["Injection"]):
    def in_conversation(self, conversation_id: str) -> Self:
        return self.filter(conversation_id=conversation_id)

    def in_order(self) -> Self:
        """Order by account and conversation, then by the order of events."""
        return self.order_by("account_id", "conversation_id", "stream_id")


class Injection(models.Model):
    """One change of one ledger. Rows are never updated."""

    class Event(models.TextChoices):
        MARKED = "marked"
        EVICTED = "evicted"
        ENDED = "ended"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey("memory.Account", models.CASCADE, related_name="+", db_index=False)
    conversation_id = models.CharField(max_length=CONVERSATION_ID_LENGTH)
    item_key = models.CharField(max_length=ITEM_KEY_LENGTH, blank=True, default="")
    value = models.CharField(max_length=VALUE_LENGTH, blank=True, default="")
    agent_id = models.CharField(max_length=AGENT_ID_LENGTH, blank=True, default="")
    event = models.CharField(max_length=10, choices=Event)
    at = models.DateTimeField()
    # fixed width, so that sorting the texts sorts the events
    stream_id = models.CharField(max_length=41, editable=False)

    objects = InjectionQuerySet.as_manager()

    class Meta:
        db_table = "injections"
        constraints = [
            models.UniqueConstraint(fields=["account", "stream_id"], name="injection_once"),
            models.CheckConstraint(condition=Q(event__in=["marked", "evicted", "ended"]), name="injection_event_known"),
            models.CheckConstraint(condition=Q(event="ended") | ~Q(item_key=""), name="injection_names_its_item"),
        ]
        indexes = [
            models.Index(fields=["account", "conversation_id", "stream_id"], name="injection_history"),
            # where a memory was injected
            models.Index(fields=["account", "item_key", "stream_id"], name="injection_by_item"),
            BrinIndex(fields=["at"], name="injection_at"),
            # the newest change of all accounts, which each flush asks for
            models.Index(fields=["stream_id"], name="injection_order"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.item_key} in {self.conversation_id}"
