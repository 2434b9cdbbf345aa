"""Procedural memory: tools, their invocations, strategies learned from what succeeded, and learnings of teams."""

from datetime import datetime
from typing import Self

from django.contrib.postgres.indexes import BrinIndex, HashIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.kinds import Audience
from memory.models.accounts import AccountRow
from memory.models.conversations import Conversation
from memory.models.memory import TABLE, MemoryRow, of_participants, within_user
from memory.owner import GLOBAL_CHANNEL, Owner
from memory_project.fields import SealedJSONField
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount


class Tool(AccountRow):
    """A tool that agents call, with totals over all invocations in the account. It is looked up by name."""

    name = models.CharField(max_length=100)
    description = models.TextField(blank=True, default="")
    usage_count = models.PositiveBigIntegerField(default=0)
    success_count = models.PositiveBigIntegerField(default=0)
    failure_count = models.PositiveBigIntegerField(default=0)
    timed_count = models.PositiveBigIntegerField(default=0, help_text="Number of invocations whose latency is known.")
    total_latency_ms = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    last_used = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "tools"
        constraints = [
            models.UniqueConstraint(fields=["account", "name"], name="tool_once"),
            models.CheckConstraint(condition=~Q(name=""), name="tool_has_a_name"),
            models.CheckConstraint(
                condition=Q(usage_count__gte=F("success_count") + F("failure_count")), name="tool_counts_add_up"
            ),
        ]

    def __str__(self) -> str:
        return f"tool {self.pk}"

    @property
    def avg_latency_ms(self) -> float | None:
        """The mean latency of the timed invocations, None if there are none."""
        return self.total_latency_ms / self.timed_count if self.timed_count else None


class ToolInvocationQuerySet(models.QuerySet["ToolInvocation"]):
    def visible_to(self, owner: Owner) -> Self:
        """Filter to conversations of the owner's agent, or to the whole account for an owner without an agent."""
        within = within_user(owner, Audience.PARTICIPANTS)
        return self.filter(Q(account_id=owner.account_id) & of_participants(owner) & within)

    def since(self, moment: datetime) -> Self:
        return self.filter(timestamp__gte=moment)


class ToolInvocation(AccountRow):
    """One call of a tool in a conversation. Input, output and error message are encrypted at rest."""

    agent_id = models.CharField(max_length=100, blank=True, default="")
    user_id = models.CharField(max_length=100, blank=True, default="")
    channel = models.CharField(max_length=100, default=GLOBAL_CHANNEL)
    conversation_id = models.CharField(max_length=100)
    # with the conversation's id, since the index of a turn may be known before the turn is stored
    turn_index = models.PositiveIntegerField(null=True, blank=True)
    # code that deletes the record clears it
    record = AccountForeignKey(
        "TurnRecord",
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="invocations",
    )
    tool = AccountForeignKey(Tool, models.CASCADE, related_name="invocations")
    tool_name = models.CharField(max_length=100)
    task_type = models.CharField(max_length=100, blank=True, default="")
    tool_input = SealedJSONField(null=True, blank=True)
    tool_output = SealedJSONField(null=True, blank=True)
    error_message = SealedJSONField(null=True, blank=True)
    success = models.BooleanField(null=True, blank=True, help_text="True if the call succeeded. Empty: unknown.")
    latency_ms = models.PositiveIntegerField(null=True, blank=True)
    timestamp = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ToolInvocationQuerySet.as_manager()

    class Meta:
        db_table = "tool_invocations"
        constraints = [
            ReferenceInAccount("record", name="tool_invocations_record_in_account"),
            ReferenceInAccount("tool", name="tool_invocations_tool_in_account"),
            models.CheckConstraint(condition=~Q(conversation_id=""), name="invocation_in_a_conversation"),
        ]
        indexes = [
            BrinIndex(fields=["timestamp"], name="invocation_timestamp"),
            models.Index(fields=["account", "conversation_id", "timestamp"], name="invocation_conversation"),
            models.Index(fields=["account", "tool_name", "timestamp"], name="invocation_tool"),
            models.Index(fields=["account", "channel", "timestamp"], name="invocation_channel"),
            models.Index(fields=["account", "timestamp", "id"], name="invocation_latest"),
        ]

    def __str__(self) -> str:
        return f"invocation {self.pk}"


class Strategy(MemoryRow):
    """A way of doing something that worked (`description`), with counts of later successes and failures.

    `context_pattern` says when it applies, `tool_sequence` names its tools in order. The memory's `text` has the
    pattern and the description (`strategy_text`), because the description of a task is more similar to the pattern.
    """

    description = models.TextField()
    context_pattern = models.TextField(blank=True, default="")
    task_type = models.CharField(max_length=100, blank=True, default="")
    tool_sequence = models.JSONField(default=list, blank=True)
    success_count = models.PositiveIntegerField(default=0)
    failure_count = models.PositiveIntegerField(default=0)
    last_used = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = TABLE
        managed = False
        verbose_name_plural = "strategies"
        constraints = [models.CheckConstraint(condition=~Q(description=""), name="strategy_has_a_description")]
        # the search for patterns looks up whole sequences
        indexes = [HashIndex(fields=["tool_sequence"], name="strategy_sequence")]


class StrategyTool(AccountRow):
    """A tool that a strategy calls: the documented relation USES_TOOL."""

    strategy = AccountForeignKey(Strategy, models.CASCADE, related_name="tools")
    tool = AccountForeignKey(Tool, models.CASCADE, related_name="strategies")

    class Meta:
        db_table = "strategy_tools"
        constraints = [
            ReferenceInAccount("strategy", name="strategy_tools_strategy_in_account"),
            ReferenceInAccount("tool", name="strategy_tools_tool_in_account"),
            models.UniqueConstraint(fields=["account", "strategy", "tool"], name="strategy_tool_once"),
        ]
        indexes = [models.Index(fields=["account", "tool"], name="strategy_tool_used")]

    def __str__(self) -> str:
        return f"{self.strategy_id} uses {self.tool_id}"


class StrategyUse(AccountRow):
    """A use of a strategy, possibly in a conversation: the documented relation SUCCEEDED_IN if it succeeded."""

    strategy = AccountForeignKey(Strategy, models.CASCADE, related_name="uses")
    # code that deletes the conversation clears it
    conversation = AccountForeignKey(Conversation, models.DO_NOTHING, null=True, blank=True, related_name="+")
    agent_id = models.CharField(max_length=100, blank=True, default="")
    success = models.BooleanField()
    used_at = models.DateTimeField()

    class Meta:
        db_table = "strategy_uses"
        constraints = [
            ReferenceInAccount("strategy", name="strategy_uses_strategy_in_account"),
            ReferenceInAccount("conversation", name="strategy_uses_conversation_in_account"),
        ]
        indexes = [
            models.Index(fields=["account", "strategy", "used_at"], name="strategy_use_of"),
            models.Index(fields=["conversation"], name="strategy_use_in", condition=Q(conversation__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.strategy_id} {'+' if self.success else '-'}"


class Learning(MemoryRow):
    """An insight (the memory's `text`) that an agent publishes to a team, with votes of the agents that used it.

    Its `context` is the team's shared one, so that the team's members see it. `score` is the lower bound of how
    often it helps (`scoring.wilson_lower_bound`). Each vote updates it.
    """

    helpful_count = models.PositiveIntegerField(default=0)
    unhelpful_count = models.PositiveIntegerField(default=0)
    score = models.FloatField(default=0.0)

    class Meta:
        db_table = TABLE
        managed = False
        constraints = [models.CheckConstraint(condition=Q(score__range=(0, 1)), name="learning_score_in_range")]


class LearningVote(AccountRow):
    """The vote of an agent on whether a learning helped. Voting again changes the vote."""

    # the database deletes votes with their learning
    learning = AccountForeignKey(Learning, models.CASCADE, related_name="votes")
    agent_id = models.CharField(max_length=100)
    helpful = models.BooleanField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "learning_votes"
        constraints = [
            ReferenceInAccount("learning", name="learning_votes_learning_in_account"),
            models.UniqueConstraint(fields=["account", "learning", "agent_id"], name="vote_once_an_agent"),
            models.CheckConstraint(condition=~Q(agent_id=""), name="vote_has_an_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} {'+' if self.helpful else '-'}"
