"""Facts: what is held to be true, when it was true, and when that was believed.

Two times, as in any bitemporal table (Snodgrass 1999): `valid_from` and `valid_to` say when the claim was true in the
world (none: always was, still is), `recorded_at` and `retracted_at` when the service believed it. All spans are
half-open. A row of `facts` is what is believed now, or was last; every belief that there ever was is a `FactVersion`.
"""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models.accounts import Account
from memory.models.memory import Memory, unfaded
from memory_project.ids import uuid7


class Certainty(models.TextChoices):
    """How the extractor labelled it; what each is worth as a confidence is in `scoring.CONFIDENCE_OF`."""

    EXPLICIT = "explicit"
    IMPLIED = "implied"
    INFERRED = "inferred"
    UNCERTAIN = "uncertain"


class Temporal(models.TextChoices):
    CURRENT = "current"
    PAST = "past"
    FUTURE = "future"


class Fact(Memory):
    """A claim (the memory's `text`), ABOUT entities and DERIVED_FROM turns by links.

    The `identity` of an open one is what it claims, of one that is closed that and its times; one that is no longer
    believed is only itself, so that the same may be learnt again.
    """

    class Status(models.TextChoices):
        ACTIVE = "active"
        PENDING = "pending"
        """Contradicts another, and waits for staff to decide: not believed yet."""
        SUPERSEDED = "superseded"
        """Another took its place: closed where the world changed, retracted where it was wrong."""
        RETRACTED = "retracted"
        REJECTED = "rejected"
        """Retracted, and never to come back by extraction (`FactTombstone`)."""

    confidence = models.FloatField(default=1.0)
    # as those of salience: what it was before the job `decay` lowered it; versions keep what was believed
    base_confidence = models.FloatField(null=True, blank=True, editable=False)
    faded_confidence = models.FloatField(null=True, blank=True, editable=False)
    certainty = models.CharField(max_length=20, choices=Certainty, blank=True, default="")
    temporal = models.CharField(max_length=20, choices=Temporal, default=Temporal.CURRENT)
    status = models.CharField(max_length=20, choices=Status, default=Status.ACTIVE)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_to = models.DateTimeField(null=True, blank=True)
    recorded_at = models.DateTimeField(null=True, blank=True)
    retracted_at = models.DateTimeField(null=True, blank=True)
    # the database empties it with the turn (see the migration)
    source_turn = models.ForeignKey(
        Memory, models.DO_NOTHING, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )
    belief_number = models.PositiveIntegerField(default=1, help_text="The number of its latest version.")

    class Meta:
        db_table = "facts"
        constraints = [
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="fact_confidence_in_range"),
            models.CheckConstraint(
                condition=Q(valid_from=None) | Q(valid_to=None) | Q(valid_to__gt=F("valid_from")),
                name="fact_ends_after_it_begins",
            ),
            models.CheckConstraint(
                condition=Q(retracted_at=None) | Q(retracted_at__gte=F("recorded_at")),
                name="fact_retracted_after_recorded",
            ),
            # what is pending was never believed; what is retracted or rejected is not believed any more
            models.CheckConstraint(
                condition=Q(status="pending", recorded_at=None)
                | Q(status="active", recorded_at__isnull=False, retracted_at=None)
                | Q(status="superseded", recorded_at__isnull=False)
                | Q(status__in=("retracted", "rejected"), retracted_at__isnull=False)
                | Q(status__in=("retracted", "rejected"), recorded_at=None),
                name="fact_believed_by_status",
            ),
        ]

    def __str__(self) -> str:
        return f"fact {self.pk}"

    @property
    def unfaded_confidence(self) -> float:
        return unfaded(self.confidence, base=self.base_confidence, faded=self.faded_confidence)


class FactVersion(models.Model):
    """What was believed of a fact from `recorded_at` until `retracted_at`: written once, and closed once.

    The spans of a fact's versions do not overlap: one ends where the next begins, or before.
    """

    class Reason(models.TextChoices):
        """Why it was believed from then on."""

        LEARNED = "learned"
        CONFIRMED = "confirmed"
        CORRECTED = "corrected"
        SUPERSEDED = "superseded"
        ACCEPTED = "accepted"
        PROMOTED = "promoted"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    # the database takes versions along with their fact, by a key that stays in the account (see the migration)
    fact = models.ForeignKey(Fact, models.CASCADE, related_name="versions", db_index=False, db_constraint=False)
    number = models.PositiveIntegerField()
    claim = models.TextField()
    confidence = models.FloatField()
    temporal = models.CharField(max_length=20, choices=Temporal)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_to = models.DateTimeField(null=True, blank=True)
    recorded_at = models.DateTimeField()
    retracted_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=20, choices=Reason)
    actor = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        db_table = "fact_versions"
        constraints = [
            models.UniqueConstraint(fields=["account", "fact", "number"], name="fact_version_once"),
            models.UniqueConstraint(
                fields=["account", "fact"], name="fact_version_open_once", condition=Q(retracted_at=None)
            ),
            models.CheckConstraint(
                condition=Q(retracted_at=None) | Q(retracted_at__gte=F("recorded_at")),
                name="fact_version_ends_after_it_begins",
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class FactTombstone(models.Model):
    """A fact that was rejected. Keyed hashes, so that nothing of its text is left when the fact itself is erased.

    `claim_digest` is that of holder and normalized claim, `entity_digests` those of the normalized names of what it is
    about: the same claim about other entities is another fact. `met_count` counts how often extraction met it since.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    claim_digest = models.CharField(max_length=64)
    entity_digests = models.JSONField(default=list)
    fact_digest = models.CharField(max_length=64, help_text="Of both together.")
    rejected_by = models.CharField(max_length=150, blank=True, default="")
    rejected_at = models.DateTimeField()
    met_count = models.PositiveIntegerField(default=0)
    last_met_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "fact_tombstones"
        constraints = [models.UniqueConstraint(fields=["account", "fact_digest"], name="tombstone_once")]
        indexes = [models.Index(fields=["account", "claim_digest"], name="tombstone_claim")]

    def __str__(self) -> str:
        return f"tombstone {self.fact_digest[:12]}"


class FactReview(models.Model):
    """Two facts that contradict each other, for staff to decide on: the new one is pending meanwhile."""

    class Status(models.TextChoices):
        OPEN = "open"
        ACCEPTED_NEW = "accepted_new"
        KEPT_OLD = "kept_old"
        BOTH_TRUE = "both_true"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, models.CASCADE, related_name="+", db_index=False)
    # the database takes reviews along with their facts, by keys that stay in the account (see the migration)
    old_fact = models.ForeignKey(Fact, models.CASCADE, related_name="+", db_index=False, db_constraint=False)
    new_fact = models.ForeignKey(Fact, models.CASCADE, related_name="+", db_index=False, db_constraint=False)
    similarity = models.FloatField(null=True, blank=True, help_text="1 - cosine distance, where both had vectors.")
    status = models.CharField(max_length=20, choices=Status, default=Status.OPEN)
    decided_by = models.CharField(max_length=150, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "fact_reviews"
        constraints = [
            models.UniqueConstraint(fields=["account", "old_fact", "new_fact"], name="review_once"),
            models.CheckConstraint(condition=~Q(old_fact=F("new_fact")), name="review_of_two"),
            models.CheckConstraint(
                condition=Q(status="open", decided_at=None) | (~Q(status="open") & Q(decided_at__isnull=False)),
                name="review_decided_or_open",
            ),
        ]
        indexes = [
            models.Index(fields=["account", "id"], name="review_open", condition=Q(status="open")),
            models.Index(fields=["account", "new_fact"], name="review_of_new"),
        ]

    def __str__(self) -> str:
        return f"review {self.pk}"


def true_at(as_of: datetime, known_at: datetime | None = None, *, prefix: str = "") -> Q:
    """The facts (or, with `known_at`, the versions) that hold at `as_of`, as believed now, or at `known_at`."""
    names: dict[str, Any] = {
        name: f"{prefix}{name}" for name in ("valid_from", "valid_to", "recorded_at", "retracted_at")
    }
    began = Q(**{names["valid_from"]: None}) | Q(**{f"{names['valid_from']}__lte": as_of})
    lasts = Q(**{names["valid_to"]: None}) | Q(**{f"{names['valid_to']}__gt": as_of})
    believed = Q(**{f"{names['recorded_at']}__isnull": False, names["retracted_at"]: None})
    if known_at is not None:
        kept = Q(**{names["retracted_at"]: None}) | Q(**{f"{names['retracted_at']}__gt": known_at})
        believed = Q(**{f"{names['recorded_at']}__lte": known_at}) & kept
    return began & lasts & believed
