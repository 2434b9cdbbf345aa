"""Memories: every remembered thing is one row, whatever its kind. A kind with more columns has a child table.

The database generates the column `lexemes`, the words of `text` with their account's prefix, so that the words of one
account never slow down the searches of another. Django does not know the column, so that no model loads it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Self, TypeVar

from django.apps import apps
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from memory.kinds import Audience, Kind, all_kinds, kinds_seen_by, kinds_where, spec_of
from memory.models.accounts import Account, AccountRow
from memory.models.contexts import PersistentContext
from memory.models.conversations import Participant
from memory.owner import GLOBAL_CHANNEL, Owner


def visible_rows(owner: Owner, *kinds: Kind) -> Q:
    """Return the condition on what the owner may see, for tables with the owner's columns: memories and their vectors.

    The audience of each kind decides (see `memory.kinds.Audience`). With `kinds`, rows of these only, under fewer
    conditions. Raises LookupError for a kind that is not registered.
    """
    wanted = kinds or all_kinds()
    rows = Q()
    for audience, rule in RULES.items():
        group = sorted({kind for kind in wanted if spec_of(kind).audience is audience})
        if group:
            rows |= (Q(kind__in=group) if len(group) > 1 else Q(kind=group[0])) & rule(owner)
    return Q(account_id=owner.account_id) & rows


def of_author(owner: Owner) -> Q:
    """Return the condition on rows that the owner's agent wrote."""
    return Q(agent_id=owner.agent_id) if owner.agent_id else Q()


def of_participants(owner: Owner) -> Q:
    """Return the condition on rows of conversations that the owner's agent takes part in."""
    if not owner.agent_id:
        return Q()
    return Q(Exists(Participant.objects.of_agent(owner).filter(conversation_id=OuterRef("conversation_id"))))


def in_readable_contexts(owner: Owner) -> Q:
    """Return the condition on rows of contexts that the owner's agent may read."""
    if not owner.agent_id:
        return Q()
    return Q(Exists(PersistentContext.objects.visible_to(owner).filter(id=OuterRef("context_id"))))


def of_knowledge(owner: Owner) -> Q:
    """Return the condition on rows that hold for the owner's user; without a user, on those of the agent."""
    return Q(user_id__in=("", owner.user_id)) if owner.user_id else of_author(owner)


RULES: Mapping[Audience, Callable[[Owner], Q]] = {
    Audience.AUTHOR: of_author,
    Audience.CONTEXT_READERS: in_readable_contexts,
    Audience.PARTICIPANTS: of_participants,
    Audience.KNOWLEDGE: of_knowledge,
}
"""The condition on what an audience sees, in the order in which statements have them."""

# constraints and indexes name these kinds: another one needs a migration
IN_CONTEXTS = tuple(sorted(kind.value for kind in kinds_seen_by(Audience.CONTEXT_READERS)))
DEDUPLICATED = sorted(kind.value for kind in kinds_where(lambda spec: spec.merging))


def model_of(kind: str) -> type["Memory"]:
    """Return the model that holds the rows of a kind. Raises LookupError for a kind that is not registered."""
    model: type[Memory] = apps.get_model(spec_of(kind).model)
    return model


M = TypeVar("M", bound="Memory")


class MemoryQuerySet(models.QuerySet[M]):
    """Chainable filters. Every use starts at `visible_to`."""

    def visible_to(self, owner: Owner, *kinds: Kind) -> Self:
        """Filter to memories that the owner may see, of these kinds if any are named."""
        return self.filter(visible_rows(owner, *kinds))

    def in_channels(self, owner: Owner) -> Self:
        """Filter to the active channel and `_global`. Channels are labels, not an access rule."""
        return self.filter(channel__in=owner.channels)

    def in_conversation(self, conversation_id: str) -> Self:
        return self.filter(conversation_id=conversation_id)

    def live(self, now: datetime) -> Self:
        """Filter to memories that may be read: not archived, not quarantined, not expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), archived=False, quarantined=False)

    def recallable(self, now: datetime) -> Self:
        """Filter to memories that searches may find: live and not buried."""
        return self.live(now).filter(buried=False)

    def awaiting_embedding(self) -> Self:
        return self.filter(embed_after__isnull=False)


class Memory(AccountRow):
    """One remembered thing. `identity` is unique per account and kind: storing the same thing again finds its row."""

    kind = models.CharField(max_length=20, choices=Kind)
    identity = models.CharField(max_length=300)
    agent_id = models.CharField(max_length=100, blank=True, default="")
    user_id = models.CharField(max_length=100, blank=True, default="")
    channel = models.CharField(max_length=100, default=GLOBAL_CHANNEL)
    conversation_id = models.CharField(max_length=100, blank=True, default="")
    # for kinds that live in contexts, with a foreign key within the account (see the migration)
    context = models.ForeignKey(
        PersistentContext, models.CASCADE, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )
    text = models.TextField()
    # the database replaces an empty one by the account's (see the migration)
    language = models.CharField(
        max_length=20, blank=True, default="", help_text="Language of the text. Empty: the account's language."
    )
    content_hash = models.CharField(max_length=64, editable=False)
    # for deduplicated kinds: a hash that near-duplicate texts have in common
    wording = models.BigIntegerField(null=True, editable=False)
    token_count = models.PositiveIntegerField(default=0)
    salience = models.FloatField(default=0.5)
    # the value before the job `decay` lowered it to `faded_salience`. If salience differs from that, it was set since
    base_salience = models.FloatField(null=True, blank=True, editable=False)
    faded_salience = models.FloatField(null=True, blank=True, editable=False)
    access_count = models.PositiveIntegerField(default=0)
    last_accessed = models.DateTimeField(null=True, blank=True)
    event_time = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    archived = models.BooleanField(default=False)
    quarantined = models.BooleanField(default=False)
    buried = models.BooleanField(default=False, help_text="Searches do not find it, but lists show it.")
    pinned = models.BooleanField(default=False, help_text="Every recall of an agent that may see it returns it.")
    source = models.CharField(max_length=50, blank=True, default="")
    trust = models.FloatField(default=1.0)
    version = models.PositiveIntegerField(default=1)
    metadata = models.JSONField(default=dict, blank=True)
    # the row is an item of the embedding queue: when it is due, empty once its vector is stored
    embed_after = models.DateTimeField(null=True, blank=True, editable=False)
    embed_attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    embed_error = models.CharField(max_length=100, blank=True, default="", editable=False)

    objects = MemoryQuerySet.as_manager()

    class Meta:
        db_table = "memories"
        verbose_name_plural = "memories"
        constraints = [
            models.UniqueConstraint(fields=["account", "kind", "identity"], name="memory_identity"),
            models.UniqueConstraint(fields=["account", "id"], name="memory_of_account"),
            models.CheckConstraint(condition=Q(salience__range=(0, 1)), name="memory_salience_in_range"),
            models.CheckConstraint(condition=Q(trust__range=(0, 1)), name="memory_trust_in_range"),
            models.CheckConstraint(condition=~Q(text=""), name="memory_has_text"),
            models.CheckConstraint(
                condition=Q(context__isnull=False, kind__in=IN_CONTEXTS) | (Q(context=None) & ~Q(kind__in=IN_CONTEXTS)),
                name="memory_in_context_by_kind",
            ),
        ]
        indexes = [
            models.Index(fields=["account", "conversation_id", "kind", "event_time"], name="memory_conversation"),
            models.Index(fields=["account", "agent_id", "kind", "event_time"], name="memory_agent"),
            models.Index(fields=["account", "user_id", "channel", "kind"], name="memory_user_channel"),
            models.Index(fields=["account", "channel", "kind"], name="memory_channel"),
            models.Index(
                # in the order of lists
                fields=["account", "context", "kind", "id"],
                name="memory_context",
                condition=Q(context__isnull=False),
            ),
            BrinIndex(fields=["event_time"], name="memory_event_time"),
            # for timelines of archived memories
            models.Index(fields=["account", "kind", "event_time"], name="memory_archived", condition=Q(archived=True)),
            # for the latest memories of a kind: BRIN has no order and knows no account
            models.Index(fields=["account", "kind", "event_time"], name="memory_latest"),
            models.Index(fields=["embed_after", "id"], name="memory_to_embed", condition=Q(embed_after__isnull=False)),
            # no index has counted or decaying columns, so that updating them rewrites no index
            models.Index(
                fields=["account", "wording", "user_id", "agent_id"],
                name="memory_wording",
                condition=Q(wording__isnull=False),
            ),
            # for rows that are older than the column
            models.Index(
                fields=["account", "id"],
                name="memory_unworded",
                condition=Q(wording=None, kind__in=DEDUPLICATED),
            ),
            models.Index(fields=["account", "id"], name="memory_pinned", condition=Q(pinned=True)),
            models.Index(fields=["account", "agent_id"], name="memory_pending", condition=Q(embed_after__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def unfaded_salience(self) -> float:
        """The salience before the job `decay` lowered it, or the current one if it was set since."""
        return value_before_decay(self.salience, base=self.base_salience, faded=self.faded_salience)

    @property
    def item_key(self) -> str:
        """The name of the memory in the injection ledger."""
        return f"{self.kind}:{self.id}"


def value_before_decay(value: float, *, base: float | None, faded: float | None) -> float:
    """Return the value before it decayed: `base` if the value is the decayed one, otherwise the value itself."""
    return value if base is None or value != faded else base


class TermCount(models.Model):
    """Document frequencies of words, by account, for BM25. Changes are appended and read as their sum.

    A row is a change by `docs`, which may be negative, of the number of memories that contain a term. A term is a
    lexeme with the prefix of its account. The rows of an account and term add up. The empty term counts the memories
    themselves and their `tokens`. Memories that are archived, quarantined or buried are not counted; expired ones are.
    Triggers append a row with each write, so that writers do not wait for one another. The job `recall_statistics`
    replaces the rows of a term by their sum.
    """

    # a trigger deletes the rows with their account: a foreign key would be checked for every row
    account = models.ForeignKey(Account, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    term = models.TextField()
    docs = models.IntegerField()
    tokens = models.BigIntegerField(default=0)

    class Meta:
        db_table = "memory_terms"
        indexes = [models.Index(fields=["account", "term"], include=["docs", "tokens"], name="term_count")]

    def __str__(self) -> str:
        return f"{self.docs:+d}"
