"""Work episodes (E5): adjacent turns of one goal merged to what they came to, and in time archived to less."""

from collections.abc import Mapping
from typing import Any

from django.db import models
from django.db.models import Q

from memory.models.conversations import Conversation
from memory.models.goals import Goal
from memory.models.memory import Memory
from memory.reasoning import ReasoningTier, is_deeper

TIERS = [(tier.value, tier.value.replace("_", " ")) for tier in ReasoningTier]
TOLD_TIERS = [tier.value for tier in ReasoningTier if tier != ReasoningTier.RAW_TRACE]
"""Those that a memory may tell."""


TOLD_FROM = {
    **dict.fromkeys(("goal", "findings", "produced", "tools", "outcomes", "outcome"), ReasoningTier.NONE),
    **dict.fromkeys(("decisions", "corrections"), ReasoningTier.DECISION_SUMMARY),
}
"""From which tier of reasoning on the lists of an episode's data are told; all others are of the rationale."""


class CompressionLevel(models.IntegerChoices):
    """How far structured turns are compressed. What a level was made of is archived, not deleted."""

    RAW = 0, "raw"
    SLOT_SUMMARIZED = 1, "slot_summarized"
    MERGED = 2, "merged"
    ARCHIVED = 3, "archived"


class WorkEpisode(Memory):
    """Records `first_number` to `last_number` of a conversation, all of one goal; the memory's `text` tells them.

    `data` holds lists of texts: `decisions`, `rejected`, `constraints`, `findings`, `produced`, `corrections`,
    `blockers`, `open_ends`, `tools`; `goal`, `outcome`; and `outcomes`, {"status", "text"} of each record but the last,
    whose status is the episode's. One of level ARCHIVED is DERIVED_FROM the merged one before it. `tier`
    is the deepest of reasoning that text and data tell.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        SUCCEEDED = "succeeded"
        FAILED = "failed"

    log = models.ForeignKey(Conversation, models.CASCADE, related_name="work_episodes", db_index=False)
    # the database empties it with the goal (see the migration)
    for_goal = models.ForeignKey(
        Goal, models.DO_NOTHING, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )
    level = models.PositiveSmallIntegerField(choices=CompressionLevel, default=CompressionLevel.MERGED)
    first_number = models.PositiveIntegerField()
    last_number = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=Status, default=Status.OPEN)
    tier = models.CharField(max_length=30, choices=TIERS, default=ReasoningTier.NONE.value)
    data = models.JSONField(default=dict, blank=True)
    raw_tokens = models.PositiveIntegerField(default=0, help_text="Of all that it was made of, as it came.")
    compressor = models.CharField(max_length=100, blank=True, default="", help_text="Who wrote it.")

    class Meta:
        db_table = "work_episodes"
        constraints = [
            models.CheckConstraint(condition=Q(level__in=(2, 3)), name="work_episode_level_known"),
            models.CheckConstraint(condition=Q(tier__in=TOLD_TIERS), name="work_episode_tells_no_trace"),
            models.CheckConstraint(
                condition=Q(last_number__gte=models.F("first_number")), name="work_episode_numbers_in_order"
            ),
            models.UniqueConstraint(fields=["log", "first_number", "level"], name="work_episode_once"),
        ]
        indexes = [models.Index(fields=["memory_ptr"], name="work_episode_to_archive", condition=Q(level=2))]

    def __str__(self) -> str:
        return f"work episode {self.pk}"


def told_data(data: Mapping[str, Any], *, tier: str, allowed: ReasoningTier) -> dict[str, Any]:
    """What may be told of the data of an episode of that tier, where no deeper one than `allowed` may."""
    if not is_deeper(tier, allowed):
        return dict(data)
    told_from = {name: TOLD_FROM.get(name, ReasoningTier.STRUCTURED_RATIONALE) for name in data}
    return {name: value for name, value in data.items() if not is_deeper(told_from[name], allowed)}
