"""Facts: claims, the time in which they were true, and the time in which the service believed them.

The tables are bitemporal (Snodgrass 1999): `valid_from` and `valid_to` say when the claim was true in the world (None:
since ever, still), `recorded_at` and `retracted_at` when the service believed it. All spans are half-open. A row of
`facts` is the current or last belief; every belief that the service ever had is a `FactVersion`.
"""

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models.accounts import AccountRow
from memory.models.memory import TABLE, Memory, MemoryRow, value_before_decay
from memory_project.tenancy import AccountForeignKey, ReferenceInAccount

ENDED = "ended"
"""The status of an active fact that is over, in answers."""


class Certainty(models.TextChoices):
    """Labels of an extractor. Their values as a confidence are in `scoring.CONFIDENCE_BY_CERTAINTY`."""

    EXPLICIT = "explicit"
    IMPLIED = "implied"
    INFERRED = "inferred"
    UNCERTAIN = "uncertain"


class Temporal(models.TextChoices):
    CURRENT = "current"
    PAST = "past"
    FUTURE = "future"


class ValidFromSource(models.TextChoices):
    """The source of the beginning of a fact: the time when it was said, or a statement of it."""

    SAID = "said"
    STATED = "stated"


class Fact(MemoryRow):
    """A claim (the memory's `text`), ABOUT entities and DERIVED_FROM turns by links.

    The `identity` of an open fact follows from its claim, that of a closed one from its claim and times. A fact that is
    no longer believed is only identical to itself, so that the same claim may be learned again.
    """

    class Status(models.TextChoices):
        ACTIVE = "active"
        PENDING = "pending"
        """It contradicts another fact and waits for staff to decide: it is not believed yet."""
        SUPERSEDED = "superseded"
        """Another fact replaced it. It is closed if the world changed, and retracted if it was wrong."""
        RETRACTED = "retracted"
        REJECTED = "rejected"
        """It is retracted, and extraction never brings it back (`FactTombstone`)."""

    confidence = models.FloatField(default=1.0)
    # as those of salience: the value before the job `decay` lowered it. Versions keep the value that was believed
    base_confidence = models.FloatField(null=True, blank=True, editable=False)
    faded_confidence = models.FloatField(null=True, blank=True, editable=False)
    certainty = models.CharField(max_length=20, choices=Certainty, blank=True, default="")
    temporal = models.CharField(max_length=20, choices=Temporal, default=Temporal.CURRENT)
    status = models.CharField(max_length=20, choices=Status, default=Status.ACTIVE)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_to = models.DateTimeField(null=True, blank=True)
    valid_from_source = models.CharField(  # noqa: DJ001 - as the column is in rows of other kinds
        max_length=10,
        choices=ValidFromSource,
        null=True,
        editable=False,
        help_text="Source of valid_from: stated in the fact, or the time when the fact was said. Null: no valid_from.",
    )
    recorded_at = models.DateTimeField(null=True, blank=True)
    retracted_at = models.DateTimeField(null=True, blank=True)
    attribute = models.CharField(  # noqa: DJ001 - a claim not read yet differs from one not understood
        max_length=200,
        null=True,
        editable=False,
        help_text="Subject and attribute of the claim, as `ana|residence`. Empty: not understood. Null: not read yet.",
    )
    # code that deletes the turn clears it
    source_turn = AccountForeignKey(Memory, models.DO_NOTHING, null=True, blank=True, related_name="+")
    belief_number = models.PositiveIntegerField(default=1, help_text="Number of the latest version.")

    class Meta:
        db_table = TABLE
        managed = False
        constraints = [
            ReferenceInAccount("source_turn", name="fact_source_turn_in_account"),
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="fact_confidence_in_range"),
            models.CheckConstraint(
                condition=Q(valid_from=None) | Q(valid_to=None) | Q(valid_to__gt=F("valid_from")),
                name="fact_ends_after_it_begins",
            ),
            models.CheckConstraint(
                condition=Q(retracted_at=None) | Q(retracted_at__gte=F("recorded_at")),
                name="fact_retracted_after_recorded",
            ),
            # a pending fact was never believed; a retracted or rejected one is not believed any more
            models.CheckConstraint(
                condition=Q(status="pending", recorded_at=None)
                | Q(status="active", recorded_at__isnull=False, retracted_at=None)
                | Q(status="superseded", recorded_at__isnull=False)
                | Q(status__in=("retracted", "rejected"), retracted_at__isnull=False)
                | Q(status__in=("retracted", "rejected"), recorded_at=None),
                name="fact_believed_by_status",
            ),
        ]
        indexes = [
            models.Index(
                fields=["account", "source_turn"], name="fact_of_turn", condition=Q(source_turn__isnull=False)
            ),
            models.Index(
                fields=["account", "attribute", "id"],
                name="fact_attribute",
                condition=Q(attribute__gt="", status="active"),
            ),
            # for rows that are older than the column
            models.Index(fields=["account", "id"], name="fact_unread", condition=Q(kind="fact", attribute=None)),
        ]

    @property
    def stated_from(self) -> datetime | None:
        """The beginning of the fact as far as it was stated; None if it only begins when it was said."""
        return None if self.valid_from_source == ValidFromSource.SAID else self.valid_from

    def status_at(self, now: datetime) -> str:
        """Return the status; `active` for a fact that another one replaces only later, ENDED for one that is over."""
        if self.valid_to is None or self.status not in (self.Status.ACTIVE, self.Status.SUPERSEDED):
            return self.status
        if self.valid_to > now:
            return self.Status.ACTIVE
        return ENDED if self.status == self.Status.ACTIVE else self.status

    @property
    def unfaded_confidence(self) -> float:
        return value_before_decay(self.confidence, base=self.base_confidence, faded=self.faded_confidence)


class FactVersion(AccountRow):
    """A belief of the service about a fact, from `recorded_at` until `retracted_at`. A row is only changed to close it.

    The spans of a fact's versions do not overlap: each one ends when the next begins, or before.
    """

    class Reason(models.TextChoices):
        """Why the service began to believe it."""

        LEARNED = "learned"
        CONFIRMED = "confirmed"
        CORRECTED = "corrected"
        SUPERSEDED = "superseded"
        ACCEPTED = "accepted"
        PROMOTED = "promoted"

    # the database deletes versions with their fact
    fact = AccountForeignKey(Fact, models.CASCADE, related_name="versions")
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
            ReferenceInAccount("fact", name="fact_versions_fact_in_account"),
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


class FactTombstone(AccountRow):
    """A rejected fact, as keyed hashes, so that nothing of its text is left when the fact itself is erased.

    `claim_digest` is the hash of holder and normalized claim, `entity_digests` are those of the normalized names of the
    entities it is about, because the same claim about other entities is another fact. `met_count` counts how often
    extraction has met it since.
    """

    claim_digest = models.CharField(max_length=64)
    entity_digests = models.JSONField(default=list)
    meaning_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="Hash of holder, subject, attribute and value, which refuses paraphrases. Empty: not understood.",
    )
    fact_digest = models.CharField(max_length=64, help_text="Hash of the claim and entity digests together.")
    rejected_by = models.CharField(max_length=150, blank=True, default="")
    rejected_at = models.DateTimeField()
    met_count = models.PositiveIntegerField(default=0)
    last_met_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "fact_tombstones"
        constraints = [models.UniqueConstraint(fields=["account", "fact_digest"], name="tombstone_once")]
        indexes = [
            models.Index(fields=["account", "claim_digest"], name="tombstone_claim"),
            models.Index(
                fields=["account", "meaning_digest"], name="tombstone_meaning", condition=Q(meaning_digest__gt="")
            ),
        ]

    def __str__(self) -> str:
        return f"tombstone {self.fact_digest[:12]}"


class FactReview(AccountRow):
    """Two facts that contradict each other, for staff to decide on. The new one is pending until then."""

    class Status(models.TextChoices):
        OPEN = "open"
        ACCEPTED_NEW = "accepted_new"
        KEPT_OLD = "kept_old"
        BOTH_TRUE = "both_true"

    # the database deletes reviews with their facts
    old_fact = AccountForeignKey(Fact, models.CASCADE, related_name="+")
    new_fact = AccountForeignKey(Fact, models.CASCADE, related_name="+")
    similarity = models.FloatField(
        null=True, blank=True, help_text="1 - cosine distance of the two vectors. Empty if one of the facts had none."
    )
    status = models.CharField(max_length=20, choices=Status, default=Status.OPEN)
    decided_by = models.CharField(max_length=150, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "fact_reviews"
        constraints = [
            ReferenceInAccount("old_fact", name="fact_reviews_old_fact_in_account"),
            ReferenceInAccount("new_fact", name="fact_reviews_new_fact_in_account"),
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
    """Return the condition on facts that were true at `as_of`, as believed now; with `known_at`, on versions as then.

    `prefix` leads to the columns through a relation, as `fact__`.
    """
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
