"""Memories: every remembered thing is one row of the table `memories`, whatever its kind.

A kind with columns of its own has a model of its own over the same table. `memory.models.table` derives the table from
these models: their columns are NULL in rows of other kinds. So a row is written by one statement and read without
joins, and a row of any kind is distributed by its account. `docs/decisions` has the measurements.

The database generates the column `lexemes`, the words of `text` with their account's prefix, so that the words of one
account never slow down the searches of another. Django does not know the column, so that no model loads it.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from django.apps import apps
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.base import ModelState
from django.db.models.functions import Now

from memory.kinds import Audience, Kind, all_kinds, all_specs, kinds_seen_by, kinds_where, spec_of
from memory.models.accounts import Account, AccountRow
from memory.models.contexts import PersistentContext
from memory.models.conversations import Participant
from memory.owner import GLOBAL_CHANNEL, Owner
from memory_project.tenancy import AccountForeignKey

EXTRACTED_SOURCE = "extraction"
"""`source` of facts and entities that were learned from turns."""


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
            of_kinds = Q(kind__in=group) if len(group) > 1 else Q(kind=group[0])
            rows |= of_kinds & rule(owner) & within_user(owner, audience)
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
    """Return the condition on knowledge of the owner's user, of its agent and of the account (see `Audience`).

    Written as a list of users, or of agents, that an index can look up, and a further condition on the rows found.
    """
    if not owner.agent_id:
        return Q(user_id__in=("", owner.user_id)) if owner.user_id else Q()
    of_agents = Q(agent_id__in=("", owner.agent_id))
    if owner.user_id:
        return Q(user_id__in=("", owner.user_id)) & (Q(user_id=owner.user_id) | of_agents)
    return of_agents & (Q(agent_id=owner.agent_id) | Q(user_id=""))


def within_user(owner: Owner, audience: Audience) -> Q:
    """Return the condition on rows that an owner limited to its user may see. For other owners, no condition.

    Entries of a context that name no user may still be about one, as those of stores that keep users apart by names of
    their own are. The rule of knowledge has the user already.
    """
    is_limited = owner.limited_to_user and audience is not Audience.KNOWLEDGE
    return Q(user_id=owner.user_id) if is_limited else Q()


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

TABLE = "memories"
"""The table of all kinds. `memory.models.table.MemoryTable` manages it, the models of kinds read and write it."""


def model_of(kind: str) -> type["MemoryRow"]:
    """Return the model of the rows of a kind. Raises LookupError for a kind that is not registered."""
    model: type[MemoryRow] = apps.get_model(spec_of(kind).model)
    return model


Row = TypeVar("Row", bound="MemoryRow", covariant=True)


class MemoryQuerySet(models.QuerySet[Row]):
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


@cache
def kind_of(model: type[models.Model]) -> Kind | None:
    """Return the kind whose rows a model holds, or None for `Memory`, which holds all of them."""
    return next((Kind(spec.name) for spec in all_specs() if spec.model == model._meta.label != "memory.Memory"), None)


MemoryRowManagerBase = models.Manager.from_queryset(MemoryQuerySet)


class MemoryRowManager(MemoryRowManagerBase[Row]):
    """The manager of the models over `memories`. That of a kind's model sees the rows of the kind alone."""

    def get_queryset(self) -> MemoryQuerySet[Row]:
        rows: MemoryQuerySet[Row] = MemoryQuerySet(self.model, using=self._db)
        kind = kind_of(self.model)
        return rows.filter(kind=kind) if kind else rows


class MemoryRow(AccountRow):
    """The columns of every memory. `identity` is unique per account and kind: the same thing again finds its row."""

    LARGE_COLUMNS: ClassVar[tuple[str, ...]] = ("text",)

    # the database deletes memories with their account and context: Django would look through the model of every kind
    account = models.ForeignKey(Account, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    kind = models.CharField(max_length=20, choices=Kind)
    identity = models.CharField(max_length=300)
    agent_id = models.CharField(max_length=100, blank=True, default="")
    user_id = models.CharField(max_length=100, blank=True, default="")
    channel = models.CharField(max_length=100, default=GLOBAL_CHANNEL)
    conversation_id = models.CharField(max_length=100, blank=True, default="")
    # for kinds that live in contexts
    context = AccountForeignKey(
        PersistentContext,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
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
    has_secret = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its text held what looks like a secret when it was stored. Known only where the account marks them.",
    )
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

    objects = MemoryRowManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"

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


R = TypeVar("R", bound=MemoryRow)


class Memory(MemoryRow):
    """A remembered thing of any kind, with the columns that all kinds have."""

    class Meta:
        db_table = TABLE
        managed = False
        verbose_name_plural = "memories"


@cache
def column_defaults(model: type[models.Model]) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """Return the values of a new row's columns, and what makes those that are not shared between rows."""
    shared, made = {}, {}
    for each in model._meta.concrete_fields:
        if each.has_default() and callable(each.default):
            made[each.attname] = each.get_default
        else:
            shared[each.attname] = each.get_default()
    return shared, made


def make_row(model: type[R], values: Mapping[str, Any]) -> R:
    """Return `model(**values)`, values by column, four times as fast: Django looks at each field of each row."""
    shared, made = column_defaults(model)
    row = model.__new__(model)
    row._state = ModelState()
    row.__dict__.update(shared, **values)
    row.__dict__ |= {name: make() for name, make in made.items() if name not in values}
    return row


def value_before_decay(value: float, *, base: float | None, faded: float | None) -> float:
    """Return the value before it decayed: `base` if the value is the decayed one, otherwise the value itself."""
    return value if base is None or value != faded else base


class TermCount(models.Model):
    """Document frequencies of words, by account, for BM25. Changes are appended and read as their sum.

    A row is a change by `docs`, which may be negative, of the number of memories that contain a term. A term is a
    lexeme with the prefix of its account. The rows of an account and term add up. The empty term counts the memories
    themselves and their `tokens`. Memories that are archived, quarantined or buried are not counted; expired ones are.
    Each write appends rows, so that writers do not wait for one another: the insert of `memory.models.writer` its own,
    triggers those of updates and deletions. The job `recall_statistics` replaces the rows of a term by their sum.
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
