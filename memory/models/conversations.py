"""Conversations: the durable side of sessions, their participants, and the work queues that their rows are."""

from typing import Self
from uuid import UUID

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow
from memory.owner import GLOBAL_CHANNEL, Owner


class ParticipantQuerySet(models.QuerySet["Participant"]):
    def of_agent(self, owner: Owner) -> Self:
        return self.filter(account_id=owner.account_id, agent_id=owner.agent_id)

    def of_conversation(self, account_id: UUID, conversation_id: str) -> Self:
        return self.filter(account_id=account_id, conversation_id=conversation_id)


class Participant(AccountRow):
    """An agent that wrote into a conversation, so that it may read it."""

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


class ConversationQuerySet(models.QuerySet["Conversation"]):
    """Chainable filters; every use starts at `visible_to`."""

    def visible_to(self, owner: Owner) -> Self:
        """Filter to conversations of the owner's agent, or of the whole account for an owner without an agent.

        An owner that is limited to its user sees only this user's.
        """
        rows = self.filter(account_id=owner.account_id)
        if owner.limited_to_user:
            rows = rows.filter(user_id=owner.user_id)
        if not owner.agent_id:
            return rows
        mine = Participant.objects.of_agent(owner).filter(conversation_id=OuterRef("conversation_id"))
        return rows.filter(Exists(mine))

    def ended_uncleared(self) -> Self:
        """Filter to ended conversations whose live side (session, working memory, ledger) still exists."""
        return self.filter(ended_at__isnull=False, cleared_at=None)


class Conversation(AccountRow):
    """A conversation in the database. Its live side is the session in Redis, under the same id.

    User and channel are those of the first write and never change, because they are part of the session's keys. Turns
    are numbered from 0 without gaps: those below `summarized_count` are in the summary, those from `buffer_from` on are
    in the session's buffer, and those below `extracted_count` were searched for knowledge.
    """

    class Outcome(models.TextChoices):
        SUCCESS = "success"
        FAILURE = "failure"

    conversation_id = models.CharField(max_length=100)
    agent_id = models.CharField(
        max_length=100, blank=True, default="", help_text="Agent that started the conversation."
    )
    user_id = models.CharField(max_length=100, blank=True, default="")
    channel = models.CharField(max_length=100, default=GLOBAL_CHANNEL)
    title = models.CharField(max_length=200, blank=True, default="")
    continues = models.CharField(
        max_length=100, blank=True, default="", help_text="Id of the conversation that this one resumes."
    )
    metadata = models.JSONField(default=dict, blank=True)
    outcome = models.CharField(max_length=20, choices=Outcome, blank=True, default="")
    started_at = models.DateTimeField()
    last_turn_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    cleared_at = models.DateTimeField(null=True, blank=True, editable=False)
    archived = models.BooleanField(default=False)
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)
    legal_hold = models.BooleanField(
        db_default=False, editable=False, help_text="Retention deletes nothing of the conversation."
    )
    consolidated_at = models.DateTimeField(null=True, blank=True)
    patterns_extracted_at = models.DateTimeField(null=True, blank=True)
    turn_count = models.PositiveIntegerField(default=0, editable=False)
    record_count = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text="Number of structured turns ever recorded, which is the number of the next one.",
    )
    summarized_count = models.PositiveIntegerField(default=0, editable=False)
    buffer_from = models.PositiveIntegerField(default=0, editable=False)
    # the row is an item of the summary queue: when it is due, up to which turn it was requested, and its lease
    summarize_after = models.DateTimeField(null=True, blank=True, editable=False)
    summarize_to = models.PositiveIntegerField(null=True, blank=True, editable=False)
    summary_lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    summary_attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    summary_error = models.CharField(max_length=100, blank=True, default="", editable=False)
    summary_parked_at = models.DateTimeField(null=True, blank=True, editable=False)
    # and an item of the extraction queue, in the same way
    extracted_count = models.PositiveIntegerField(default=0, editable=False)
    extract_after = models.DateTimeField(null=True, blank=True, editable=False)
    extract_lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    extract_attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    extract_error = models.CharField(max_length=100, blank=True, default="", editable=False)
    extract_parked_at = models.DateTimeField(null=True, blank=True, editable=False)
    erasing = models.BooleanField(
        db_default=False, editable=False, help_text="True while it is erased: nothing can be written to it."
    )
    replacements_due = models.BooleanField(
        db_default=False,
        editable=False,
        help_text="True for one of a former version, until the job link_replacements has compared its turns.",
    )
    saved_session = models.JSONField(null=True, blank=True, editable=False)
    saved_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        db_table = "conversations"
        constraints = [
            models.UniqueConstraint(fields=["account", "conversation_id"], name="conversation_once_in_account"),
            models.CheckConstraint(condition=~Q(conversation_id=""), name="conversation_has_an_id"),
            models.CheckConstraint(condition=~Q(continues=F("conversation_id")), name="conversation_resumes_another"),
            models.CheckConstraint(
                condition=Q(summarized_count__lte=F("turn_count"), buffer_from__lte=F("turn_count")),
                name="conversation_counts_in_range",
            ),
            models.CheckConstraint(
                condition=Q(extracted_count__lte=F("turn_count")), name="conversation_extracted_in_range"
            ),
            models.CheckConstraint(
                condition=Q(summarize_to=None) | Q(summarize_to__lte=F("turn_count"), summarize_after__isnull=False),
                name="conversation_summary_asked_for",
            ),
            models.CheckConstraint(
                condition=Q(cleared_at=None) | Q(ended_at__isnull=False), name="conversation_cleared_after_its_end"
            ),
            models.CheckConstraint(condition=~Q(channel=""), name="conversation_has_a_channel"),
            models.CheckConstraint(
                condition=Q(outcome__in=("", "success", "failure")), name="conversation_outcome_known"
            ),
        ]
        indexes = [
            models.Index(fields=["account", "user_id", "channel"], name="conversation_user_channel"),
            models.Index(fields=["account", "channel"], name="conversation_channel"),
            models.Index(fields=["account", "continues"], name="conversation_resumed", condition=~Q(continues="")),
            models.Index(
                fields=["account", "summarize_after", "id"],
                name="conversation_to_summarize",
                condition=Q(summarize_after__isnull=False),
            ),
            models.Index(
                fields=["account", "extract_after", "id"],
                name="conversation_to_extract",
                condition=Q(extract_after__isnull=False),
            ),
            models.Index(
                fields=["extract_parked_at"],
                name="conversation_parked",
                condition=Q(extract_parked_at__isnull=False),
            ),
            models.Index(
                fields=["summary_parked_at"],
                name="conversation_summary_parked",
                condition=Q(summary_parked_at__isnull=False),
            ),
            models.Index(
                fields=["account", "id"],
                name="conversation_to_link",
                condition=Q(replacements_due=True),
            ),
            models.Index(
                fields=["ended_at"],
                name="conversation_for_patterns",
                condition=Q(ended_at__isnull=False, patterns_extracted_at=None),
            ),
            models.Index(
                fields=["ended_at"],
                name="conversation_to_clear",
                condition=Q(ended_at__isnull=False, cleared_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"conversation {self.pk}"
