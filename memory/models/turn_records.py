"""Structured turns (E2): the observation, reasoning, action and outcome of each turn of an agent.

A `TurnRecord` links the four slots of one turn to the conversation, the goal that was worked on, its tools and
artifacts. Each slot is a memory of its own (`TurnSlot`) that searches find. A raw trace is not a memory: it is
encrypted in `ReasoningTrace`, and no search reads it.

In time, adjacent turns of a goal are merged into a `WorkEpisode` (E5). What the work produces or uses outside of the
conversation is an `Artifact` (E9): files, documents, pages and data.
"""

from collections.abc import Mapping
from typing import Any, Self

from django.contrib.postgres.indexes import HashIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.kinds import Audience, Kind
from memory.models.accounts import AccountRow
from memory.models.conversations import Conversation
from memory.models.goals import Goal
from memory.models.memory import TABLE, MemoryRow, of_participants, within_user
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.reasoning import Provenance, ReasoningTier, is_deeper
from memory_project.fields import SealedJSONField, VerbatimJSONField
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

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


class WorkEpisode(MemoryRow):
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

    log = AccountForeignKey(Conversation, models.CASCADE, related_name="work_episodes")
    # code that deletes the goal clears it
    for_goal = AccountForeignKey(Goal, models.DO_NOTHING, null=True, blank=True, related_name="+")
    level = models.PositiveSmallIntegerField(choices=CompressionLevel, default=CompressionLevel.MERGED)
    first_number = models.PositiveIntegerField()
    last_number = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=Status, default=Status.OPEN)
    tier = models.CharField(max_length=30, choices=TIERS, default=ReasoningTier.NONE.value)
    data = VerbatimJSONField(default=dict, blank=True)
    raw_tokens = models.PositiveIntegerField(
        default=0, help_text="Size of the slots that it was made from, in tokens, as they were stored."
    )
    compressor = models.CharField(
        max_length=100, blank=True, default="", help_text="Name of the compressor that wrote the text."
    )

    class Meta:
        db_table = TABLE
        managed = False
        constraints = [
            ReferenceInAccount("log", name="work_episode_log_in_account"),
            ReferenceInAccount("for_goal", name="work_episode_for_goal_in_account"),
            models.CheckConstraint(condition=Q(level__in=(2, 3)), name="work_episode_level_known"),
            models.CheckConstraint(condition=Q(tier__in=MEMORY_TIERS), name="work_episode_tells_no_trace"),
            models.CheckConstraint(
                condition=Q(last_number__gte=models.F("first_number")), name="work_episode_numbers_in_order"
            ),
            models.UniqueConstraint(fields=["log", "first_number", "level"], name="work_episode_once"),
        ]
        indexes = [
            models.Index(
                fields=["account", "id"], name="work_episode_to_archive", condition=Q(kind=Kind.WORK_EPISODE, level=2)
            )
        ]

    def __str__(self) -> str:
        return f"work episode {self.pk}"


def data_within_tier(data: Mapping[str, Any], *, tier: str, allowed: ReasoningTier) -> dict[str, Any]:
    """Return the fields of an episode's data that the account's allowed tier may read. `tier` is the episode's."""
    if not is_deeper(tier, allowed):
        return dict(data)
    min_tiers = {name: MIN_TIER_BY_FIELD.get(name, ReasoningTier.STRUCTURED_RATIONALE) for name in data}
    return {name: value for name, value in data.items() if not is_deeper(min_tiers[name], allowed)}


PROVENANCES = [(each.value, each.value.replace("_", " ")) for each in Provenance]


class TurnRecordQuerySet(models.QuerySet["TurnRecord"]):
    """Chainable filters; every use starts at `visible_to`."""

    def visible_to(self, owner: Owner) -> Self:
        """Filter to conversations of the owner's agent, or to the whole account for an owner without an agent."""
        within = within_user(owner, Audience.PARTICIPANTS)
        return self.filter(Q(account_id=owner.account_id) & of_participants(owner) & within)

    def in_conversation(self, conversation_id: str) -> Self:
        return self.filter(conversation_id=conversation_id)


class TurnRecord(AccountRow):
    """One structured turn. Records are numbered from 0 without gaps in their conversation.

    `client_id` is the id that the runtime gave it; the same id again is the same record. `level` is the compression of
    its slots; from MERGED on, `episode` replaces them. `tokens` is the size of its slots now, `raw_tokens` the size at
    which they were stored.
    """

    class Status(models.TextChoices):
        OPEN = "open"
        SUCCEEDED = "succeeded"
        FAILED = "failed"

    agent_id = models.CharField(max_length=100, blank=True, default="")
    user_id = models.CharField(max_length=100, blank=True, default="")
    channel = models.CharField(max_length=100, default=GLOBAL_CHANNEL)
    conversation_id = models.CharField(max_length=100)
    log = AccountForeignKey(Conversation, models.CASCADE, related_name="records")
    number = models.PositiveIntegerField()
    client_id = models.CharField(max_length=100, blank=True, default="")
    first_index = models.PositiveIntegerField(
        null=True, blank=True, help_text="Index of the first turn of the conversation that the record is about."
    )
    last_index = models.PositiveIntegerField(null=True, blank=True)
    # code that deletes their targets clears both
    goal = AccountForeignKey(Goal, models.DO_NOTHING, null=True, blank=True, related_name="+")
    episode = AccountForeignKey(WorkEpisode, models.DO_NOTHING, null=True, blank=True, related_name="+")
    status = models.CharField(max_length=20, choices=Status, default=Status.OPEN)
    reasoning_tier = models.CharField(max_length=30, choices=TIERS, default=ReasoningTier.NONE.value)
    level = models.PositiveSmallIntegerField(choices=CompressionLevel, default=CompressionLevel.RAW)
    tokens = models.PositiveIntegerField(default=0)
    raw_tokens = models.PositiveIntegerField(default=0)
    event_time = models.DateTimeField()
    metadata = models.JSONField(default=dict, blank=True)
    version = models.PositiveIntegerField(default=1)
    # time of the next attempt after a failed compression
    compress_after = models.DateTimeField(null=True, blank=True, editable=False)
    compress_attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    compress_error = models.CharField(max_length=100, blank=True, default="", editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TurnRecordQuerySet.as_manager()

    class Meta:
        db_table = "turn_records"
        constraints = [
            ReferenceInAccount("log", name="turn_records_log_in_account"),
            ReferenceInAccount("goal", name="turn_records_goal_in_account"),
            ReferenceInAccount("episode", name="turn_records_episode_in_account"),
            models.UniqueConstraint(fields=["account", "log", "number"], name="turn_record_number_once"),
            models.UniqueConstraint(
                fields=["account", "log", "client_id"], name="turn_record_client_id_once", condition=~Q(client_id="")
            ),
            models.CheckConstraint(condition=Q(level__range=(0, 3)), name="turn_record_level_known"),
            models.CheckConstraint(
                condition=Q(reasoning_tier__in=[tier.value for tier in ReasoningTier]), name="turn_record_tier_known"
            ),
            models.CheckConstraint(
                condition=Q(first_index=None, last_index=None)
                | Q(first_index__isnull=False, last_index__gte=F("first_index")),
                name="turn_record_indexes_in_order",
            ),
        ]
        indexes = [
            models.Index(fields=["account", "conversation_id", "number"], name="turn_record_conversation"),
            models.Index(
                fields=["account", "goal", "event_time"], name="turn_record_goal", condition=Q(goal__isnull=False)
            ),
            models.Index(fields=["account", "event_time", "id"], name="turn_record_latest"),
            models.Index(
                fields=["level", "event_time", "id"], name="turn_record_to_compress", condition=Q(level__lt=2)
            ),
        ]

    def __str__(self) -> str:
        return f"turn record {self.pk}"


class TurnSlot(MemoryRow):
    """One of the four slots of a record, with the memory's `text` and structured `data`.

    For a reasoning, `tier` is the deepest tier that text and data contain, never a raw trace. A compressed slot is a
    row of its own that is DERIVED_FROM the one before, which is archived.
    """

    class Slot(models.TextChoices):
        OBSERVATION = "observation"
        REASONING = "reasoning"
        ACTION = "action"
        OUTCOME = "outcome"

    record = AccountForeignKey(TurnRecord, models.CASCADE, related_name="slots")
    slot = models.CharField(max_length=20, choices=Slot)
    level = models.PositiveSmallIntegerField(choices=CompressionLevel, default=CompressionLevel.RAW)
    data = VerbatimJSONField(default=dict, blank=True)
    tier = models.CharField(max_length=30, blank=True, default="", choices=TIERS)
    provenance = models.CharField(max_length=30, blank=True, default="", choices=PROVENANCES)

    class Meta:
        db_table = TABLE
        managed = False
        constraints = [
            ReferenceInAccount("record", name="turn_slot_record_in_account"),
            # a condition that the database's deletion of slots with their record meets
            models.UniqueConstraint(
                fields=["record", "slot", "level"], name="turn_slot_once_a_level", condition=Q(record__isnull=False)
            ),
            models.CheckConstraint(condition=Q(level__range=(0, 1)), name="turn_slot_level_known"),
            models.CheckConstraint(
                condition=Q(slot="reasoning", tier__in=MEMORY_TIERS)
                | (~Q(slot="reasoning") & Q(tier="", provenance="")),
                name="turn_slot_tells_no_trace",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slot} {self.pk}"


class ReasoningTrace(AccountRow):
    """The reasoning that a provider returned in a turn. It is encrypted at rest, and only deep replay returns it."""

    record = AccountForeignKey(TurnRecord, models.CASCADE, related_name="traces")
    trace = SealedJSONField()
    tokens = models.PositiveIntegerField(default=0)
    provenance = models.CharField(max_length=30, choices=PROVENANCES, default=Provenance.PROVIDER_TRACE.value)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "reasoning_traces"
        constraints = [
            ReferenceInAccount("record", name="reasoning_traces_record_in_account"),
            models.UniqueConstraint(fields=["account", "record"], name="trace_once_a_record"),
        ]

    def __str__(self) -> str:
        return f"trace {self.pk}"


class Artifact(MemoryRow):
    """One revision of something with a path or URI. The memory's `text` describes it.

    The next revision is a row of its own that SUPERSEDES this one. `digest` is the hash of its content.
    """

    uri = models.TextField()
    artifact_type = models.CharField(max_length=50, blank=True, default="")
    title = models.CharField(max_length=500, blank=True, default="")
    digest = models.CharField(max_length=200, blank=True, default="")
    revision = models.PositiveIntegerField(default=1)
    label = models.CharField(
        max_length=100, blank=True, default="", help_text="Name that the client gave to the revision."
    )
    is_latest = models.BooleanField(default=True)
    # code that deletes their targets clears both
    source_record = AccountForeignKey(TurnRecord, models.DO_NOTHING, null=True, blank=True, related_name="+")
    for_goal = AccountForeignKey(Goal, models.DO_NOTHING, null=True, blank=True, related_name="+")

    class Meta:
        db_table = TABLE
        managed = False
        constraints = [
            ReferenceInAccount("source_record", name="artifact_source_record_in_account"),
            ReferenceInAccount("for_goal", name="artifact_for_goal_in_account"),
            models.CheckConstraint(condition=~Q(uri=""), name="artifact_has_a_uri"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="artifact_revision_counts"),
        ]
        indexes = [
            # a URI may be longer than an entry of a B-tree
            HashIndex(fields=["uri"], name="artifact_uri"),
            models.Index(
                fields=["account", "source_record"], name="artifact_of_record", condition=Q(source_record__isnull=False)
            ),
            # of work episodes too
            models.Index(fields=["account", "for_goal"], name="work_for_goal", condition=Q(for_goal__isnull=False)),
        ]
