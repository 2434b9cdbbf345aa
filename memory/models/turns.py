"""Turns: the conversation log. What was said, by whom, in which order; a memory like any other besides."""

from typing import Any

from django.db import models
from django.db.models import Q

from memory.models.conversations import Conversation
from memory.models.memory import Memory
from memory_project.fields import VerbatimJSONField

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class Turn(Memory):
    """One message of a conversation. Its `text` is what is searched; `payload` what a chat message has beyond text.

    Numbered from 0 without gaps in its conversation. `client_id` is the client's own name for it: sent again, it is
    the same turn.
    """

    class Role(models.TextChoices):
        SYSTEM = "system"
        DEVELOPER = "developer"
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"
        FUNCTION = "function"

    # `conversation_id` is the memory's column already, and holds the client's id
    log = models.ForeignKey(Conversation, models.CASCADE, related_name="turns", db_index=False)
    index = models.PositiveIntegerField()
    role = models.CharField(max_length=20, choices=Role)
    name = models.CharField(max_length=100, blank=True, default="", help_text="The speaker.")
    model = models.CharField(max_length=100, blank=True, default="", help_text="The model that wrote it.")
    client_id = models.CharField(max_length=100, blank=True, default="")
    payload = VerbatimJSONField(null=True, blank=True)

    class Meta:
        db_table = "turns"
        constraints = [
            models.UniqueConstraint(fields=["log", "index"], name="turn_index_once"),
            models.UniqueConstraint(
                fields=["log", "client_id"], name="turn_client_id_once", condition=~Q(client_id="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.index} of {self.conversation_id}"

    @property
    def content(self) -> Any:
        """As it was sent: a text, or the parts of a chat message, or null beside tool calls."""
        return (self.payload or {}).get("content", self.text)
