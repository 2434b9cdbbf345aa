"""Turns: the messages of conversations, in order, and the summaries of conversations. Each one is a memory as well."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from memory.models.conversations import Conversation
from memory.models.memory import TABLE, MemoryRow
from memory_project.fields import VerbatimJSONField
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class Turn(MemoryRow):
    """One message of a conversation. Searches read its `text`; `payload` has the other parts of a chat message.

    Turns are numbered from 0 without gaps in their conversation. `client_id` is the id that the client gave it; the
    same id again is the same turn.
    """

    LARGE_COLUMNS: ClassVar[tuple[str, ...]] = ("text", "payload")

    class Role(models.TextChoices):
        SYSTEM = "system"
        DEVELOPER = "developer"
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"
        FUNCTION = "function"

    # not called `conversation`: the memory's column `conversation_id` holds the client's id
    log = AccountForeignKey(Conversation, models.CASCADE, related_name="turns")
    index = models.PositiveIntegerField()
    role = models.CharField(max_length=20, choices=Role)
    name = models.CharField(max_length=100, blank=True, default="", help_text="Name of the speaker.")
    model = models.CharField(max_length=100, blank=True, default="", help_text="Language model that wrote the message.")
    client_id = models.CharField(max_length=100, blank=True, default="")
    payload = VerbatimJSONField(null=True, blank=True)

    class Meta:
        db_table = TABLE
        managed = False
        constraints = [
            ReferenceInAccount("log", name="turn_log_in_account"),
            # with work episodes: a condition that the database's deletion of turns with their conversation meets
            models.UniqueConstraint(fields=["log", "index"], name="turn_index_once", condition=Q(log__isnull=False)),
            models.UniqueConstraint(
                fields=["log", "client_id"], name="turn_client_id_once", condition=~Q(client_id="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.index} of {self.conversation_id}"

    @property
    def content(self) -> Any:
        """The content as it was sent: a text, the parts of a chat message, or None if there are only tool calls."""
        return (self.payload or {}).get("content", self.text)


class EpisodicMemory(MemoryRow):
    """The summary of a conversation (the memory's `text`) with the documented fields. Searches find it by meaning."""

    key_decisions = models.JSONField(default=list, blank=True)
    entities_mentioned = models.JSONField(default=list, blank=True)
    tools_called = models.JSONField(default=list, blank=True)

    class Meta:
        db_table = TABLE
        managed = False
        verbose_name_plural = "episodic memories"
