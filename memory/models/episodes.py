"""Episodic memories: what a conversation came to, found again by meaning."""

from django.db import models

from memory.models.memory import Memory


class EpisodicMemory(Memory):
    """A conversation's summary (its `text`) with the documented fields."""

    key_decisions = models.JSONField(default=list, blank=True)
    entities_mentioned = models.JSONField(default=list, blank=True)
    tools_called = models.JSONField(default=list, blank=True)

    class Meta:
        db_table = "episodic_memories"
        verbose_name_plural = "episodic memories"
