"""Episodic memories: summaries of conversations, which are searched by meaning."""

from django.db import models

from memory.models.memory import Memory


class EpisodicMemory(Memory):
    """The summary of a conversation (the memory's `text`) with the documented fields."""

    key_decisions = models.JSONField(default=list, blank=True)
    entities_mentioned = models.JSONField(default=list, blank=True)
    tools_called = models.JSONField(default=list, blank=True)

    class Meta:
        db_table = "episodic_memories"
        verbose_name_plural = "episodic memories"
