"""Work episodes (E5): adjacent structured turns of a goal merged into one text, which is shortened in time."""

from collections.abc import Mapping
from typing import Any

from django.db import models
from django.db.models import Q

from memory.models.conversations import Conversation
from memory.models.goals import Goal
from memory.models.memory import Memory
from memory.reasoning import ReasoningTier, is_deeper

TIERS = [(tier.value, tier.value.replace("_", " ")) for tier in ReasoningTier]
MEMORY_TIERS = [tier.value for tier in ReasoningTier if tier != ReasoningTier.RAW_TRACE]
"""Tiers of reasoning that a memory may contain."""


MIN_TIER_BY_FIELD = {
    **dict.fromkeys(("goal", "findings", "produced", "tools", "outcomes", "outcome"), ReasoningTier.NONE),
    **dict.fromkeys(("decisions", "corrections"), ReasoningTier.DECISION_SUMMARY),
}
"""The least tier of reasoning that may read a field of an episode's data. Other fields belong to the rationale."""


class CompressionLevel(models.IntegerChoices):
    """Levels of compression of structured turns. The rows that a level was made from are archived, not deleted."""

    RAW = 0, "raw"
    SLOT_SUMMARIZED = 1, "slot_summarized"
    MERGED = 2, "merged"
    ARCHIVED = 3, "archived"


class WorkEpisode(Memory):
    """The records `first_number` to `last_number` of a conversation, all of one goal, as the memory's `text`.

    `data` holds lists of texts: `decisions`, `rejected`, `constraints`, `findings`, `produced`, `corrections`,
    `blockers`, `open_ends`, `tools`; the texts `goal` and `outcome`; and `outcomes`, {"status", "text"} of each record
    but the last, whose status is the episode's. An episode of level ARCHIVED is DERIVED_FROM the merged one before it.
    `tier` is the deepest tier of reasoning that text and data contain.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        SUCCEEDED = "succeeded"
        FAILED = "failed"

    log = models.ForeignKey(Conversation, models.CASCADE, related_name="work_episodes", db_index=False)
    # the database clears it when the goal is deleted (see the migration)
    for_goal = models.ForeignKey(
        Goal, models.DO_NOTHING, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )
    level = models.PositiveSmallIntegerField(choices=CompressionLevel, default=CompressionLevel.MERGED)
    first_number = models.PositiveIntegerField()
    last_number = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=Status, default=Status.OPEN)
    tier = models.CharField(max_length=30, choices=TIERS, default=ReasoningTier.NONE.value)
    data = models.JSONField(default=dict, blank=True)
    raw_tokens = models.PositiveIntegerField(
        default=0, help_text="Size of the slots that it was made from, in tokens, as they were stored."
    )
    compressor = models.CharField(
        max_length=100, blank=True, default="", help_text="Name of the compressor that wrote the text."
    )

    class Meta:
        db_table = "work_episodes"
        constraints = [
            models.CheckConstraint(condition=Q(level__in=(2, 3)), name="work_episode_level_known"),
            models.CheckConstraint(condition=Q(tier__in=MEMORY_TIERS), name="work_episode_tells_no_trace"),
            models.CheckConstraint(
                condition=Q(last_number__gte=models.F("first_number")), name="work_episode_numbers_in_order"
            ),
            models.UniqueConstraint(fields=["log", "first_number", "level"], name="work_episode_once"),
        ]
        indexes = [models.Index(fields=["memory_ptr"], name="work_episode_to_archive", condition=Q(level=2))]

    def __str__(self) -> str:
        return f"work episode {self.pk}"


def data_within_tier(data: Mapping[str, Any], *, tier: str, allowed: ReasoningTier) -> dict[str, Any]:
    """Return the fields of an episode's data that the account's allowed tier may read. `tier` is the episode's."""
    if not is_deeper(tier, allowed):
        return dict(data)
    told_from = {name: MIN_TIER_BY_FIELD.get(name, ReasoningTier.STRUCTURED_RATIONALE) for name in data}
    return {name: value for name, value in data.items() if not is_deeper(told_from[name], allowed)}
