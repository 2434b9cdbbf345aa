"""Learnings: insights that agents publish to a team, with votes of the agents that used them."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory.models.memory import Memory
from memory_project.ids import uuid7


class Learning(Memory):
    """An insight (the memory's `text`). Its `context` is the team's shared one, so that the team's members see it.

    `score` is the lower bound of how often it helps (`scoring.wilson_lower_bound`). Each vote updates it.
    """

    helpful_count = models.PositiveIntegerField(default=0)
    unhelpful_count = models.PositiveIntegerField(default=0)
    score = models.FloatField(default=0.0)

    class Meta:
        db_table = "learnings"
        constraints = [models.CheckConstraint(condition=Q(score__range=(0, 1)), name="learning_score_in_range")]


class LearningVote(models.Model):
    """The vote of an agent on whether a learning helped. Voting again changes the vote."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    # the database deletes votes with their learning, by a foreign key within the account (see the migration)
    learning = models.ForeignKey(Learning, models.CASCADE, related_name="votes", db_index=False, db_constraint=False)
    agent_id = models.CharField(max_length=100)
    helpful = models.BooleanField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "learning_votes"
        constraints = [
            models.UniqueConstraint(fields=["account", "learning", "agent_id"], name="vote_once_an_agent"),
            models.CheckConstraint(condition=~Q(agent_id=""), name="vote_has_an_agent"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} {'+' if self.helpful else '-'}"
