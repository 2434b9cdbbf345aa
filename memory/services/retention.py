"""Rules of retention: what is archived and deleted, by the settings of each account (docs/lifecycle.md).

Each rule is a queryset of the rows that are due at a time. The job `cleanup` works them off, and `preview_rules` counts
them with examples. A legal hold, of the account or of a conversation, keeps all of them but archiving.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import (
    Case,
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from ledger.models import Injection
from memory import conf
from memory.audit import record_audit
from memory.models import Conversation, Entity, Link, ModelUsage, Strategy, ToolInvocation
from memory.owner import Owner
from memory.services.conversations.staff_edits import archive_locked_conversation
from memory.services.custody.conversations import erase_conversation

ACTOR = "job:cleanup"
FORGOTTEN_SALIENCE = 0.1
"""Salience below which an entity that nobody reads is deleted."""
EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """A rule: the rows that are due, the reason in words, and how a row is named in a preview."""

    name: str
    reason: str
    find: Callable[[datetime], QuerySet[Any]]
    example: str
    """Column that names a row in a preview: never a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPreview:
    """The number of rows of an account that a rule is about to archive or delete, with some of them."""

    rule: str
    reason: str
    rows: int
    examples: Sequence[str]


def cut_at(now: datetime, days: Combinable | str) -> Combinable:
    """Return the time so many days before `now`; null for no days."""
    span = ExpressionWrapper(
        (F(days) if isinstance(days, str) else days) * Value(timedelta(days=1)), output_field=DurationField()
    )
    return ExpressionWrapper(Value(now, output_field=DateTimeField()) - span, output_field=DateTimeField())


def idle_conversations(now: datetime) -> QuerySet[Conversation]:
    """Return the conversations to archive."""
    days = Coalesce("account__archive_after_days", Value(conf.RETENTION_DAYS))
    last = Case(When(account__archive_by="turn", then=Coalesce("last_turn_at", "started_at")), default=F("updated_at"))
    return (
        Conversation.objects.filter(archived=False, erasing=False).alias(last=last).filter(last__lt=cut_at(now, days))
    )


def expired_conversations(now: datetime) -> QuerySet[Conversation]:
    """Return the archived conversations to erase."""
    return Conversation.objects.filter(archived=True, legal_hold=False, account__legal_hold=False).filter(
        archived_at__lt=cut_at(now, "account__erase_after_days")
    )


def unread_since(cut: Combinable) -> Q:
    return Q(updated_at__lt=cut) & (Q(last_accessed=None) | Q(last_accessed__lt=cut))


def is_held() -> Exists:
    """Return the condition that a row's conversation is under a legal hold."""
    same = {"account_id": OuterRef("account_id"), "conversation_id": OuterRef("conversation_id")}
    return Exists(Conversation.objects.filter(**same, legal_hold=True))


def is_linked_to_held() -> Exists:
    """Return the condition that a memory of a conversation under a legal hold, such as a turn, has a link to a row."""
    own = {"account_id": OuterRef("account_id"), "target_id": OuterRef("id")}
    conversation = {"account_id": OuterRef("account_id"), "conversation_id": OuterRef("source__conversation_id")}
    return Exists(Link.objects.filter(Exists(Conversation.objects.filter(**conversation, legal_hold=True)), **own))


def forgotten_entities(now: datetime) -> QuerySet[Entity]:
    """Return the entities to delete with their links: of low salience, and neither read nor changed for long.

    Those that a conversation under a legal hold mentions stay.
    """
    rows = Entity.objects.filter(~is_linked_to_held(), account__legal_hold=False, salience__lt=FORGOTTEN_SALIENCE)
    return rows.filter(
        unread_since(cut_at(now, "account__entity_days")), pinned=False, archived=False, quarantined=False
    )


def unused_strategies(now: datetime) -> QuerySet[Strategy]:
    rows = Strategy.objects.filter(account__legal_hold=False, pinned=False, quarantined=False)
    return rows.filter(~is_held(), unread_since(cut_at(now, "account__strategy_days")))


def old_invocations(now: datetime) -> QuerySet[ToolInvocation]:
    rows = ToolInvocation.objects.filter(account__legal_hold=False)
    return rows.filter(~is_held(), timestamp__lt=cut_at(now, "account__tool_days"))


def marks_before_end(now: datetime) -> QuerySet[Injection]:
    """Return the journal's old entries from before the end of their ledger: no ledger is restored from them."""
    ended = of_same_ledger().filter(event=Injection.Event.ENDED, stream_id__gt=OuterRef("stream_id"))
    return old_marks(now).filter(Exists(ended))


def ends_of_ledgers(now: datetime) -> QuerySet[Injection]:
    """Return the journal's old entries of ledgers' ends, once the entries before them are gone."""
    earlier = of_same_ledger().filter(stream_id__lt=OuterRef("stream_id"))
    return old_marks(now).filter(~Exists(earlier), event=Injection.Event.ENDED)


def of_same_ledger() -> QuerySet[Injection]:
    return Injection.objects.filter(account_id=OuterRef("account_id"), conversation_id=OuterRef("conversation_id"))


def old_marks(now: datetime) -> QuerySet[Injection]:
    """Return the journal's old entries, without the newest of each account.

    From the newest of all on, a flush knows which entries of the stream are stored.
    """
    later = Injection.objects.filter(account_id=OuterRef("account_id"), stream_id__gt=OuterRef("stream_id"))
    rows = Injection.objects.filter(Exists(later), ~is_held(), account__legal_hold=False)
    return rows.filter(at__lt=cut_at(now, "account__journal_days"))


def old_usage(now: datetime) -> QuerySet[ModelUsage]:
    return ModelUsage.objects.filter(account__legal_hold=False, day__lt=cut_at(now, "account__usage_days"))


RULES = (
    RetentionRule(
        name="conversations",
        reason="nobody wrote to it for archive_after_days: it is archived",
        find=idle_conversations,
        example="conversation_id",
    ),
    RetentionRule(
        name="expired_conversations",
        reason="it was archived erase_after_days ago: it is erased with what was derived from it alone",
        find=expired_conversations,
        example="conversation_id",
    ),
    RetentionRule(
        name="entities",
        reason="its salience is below 0.1, and nobody read or changed it for entity_days: it is deleted with its links",
        find=forgotten_entities,
        example="id",
    ),
    RetentionRule(
        name="strategies",
        reason="nobody read or changed it for strategy_days: it is deleted",
        find=unused_strategies,
        example="id",
    ),
    RetentionRule(
        name="tool_invocations",
        reason="it is older than tool_days: it is deleted",
        find=old_invocations,
        example="id",
    ),
    RetentionRule(
        name="injections",
        reason="its ledger ended, and it is older than journal_days: it is deleted",
        find=marks_before_end,
        example="conversation_id",
    ),
    # a rule of its own, not an alternative: a distributed database refuses alternatives of lookups in one statement
    RetentionRule(
        name="ledger_ends",
        reason="its ledger's entries are deleted, and it is older than journal_days: it is deleted",
        find=ends_of_ledgers,
        example="conversation_id",
    ),
    RetentionRule(
        name="model_usage", reason="it is older than usage_days: it is deleted", find=old_usage, example="day"
    ),
)


def preview_rules(account_id: UUID, *, now: datetime) -> list[RetentionPreview]:
    """Return what the rules would archive and delete in an account. Changes nothing."""
    found = []
    for rule in RULES:
        rows = rule.find(now).filter(account_id=account_id).order_by("id")
        examples = [str(each) for each in rows.values_list(rule.example, flat=True)[:EXAMPLES]]
        found.append(RetentionPreview(rule=rule.name, reason=rule.reason, rows=rows.count(), examples=examples))
    return found


def archive_idle_conversation(account_id: UUID, conversation_id: UUID, *, now: datetime) -> bool:
    """Archive a conversation and its turns in one transaction; return False if it was written to meanwhile."""
    with transaction.atomic():
        rows = idle_conversations(now).filter(account_id=account_id, id=conversation_id)
        # locked as writers lock it, so that no turn comes between; what was saved of its session may be large
        conversation = rows.defer("saved_session").select_for_update(no_key=True, of=("self",)).first()
        if conversation is None:
            return False
        owner = Owner(account_id=conversation.account_id, channel=conversation.channel, actor=ACTOR)
        archive_locked_conversation(owner, conversation, now=now)
        record_audit(
            owner, operation="archive", memory_type="conversation", conversation_id=conversation.conversation_id
        )
    return True


def erase_expired_conversation(account_id: UUID, conversation_id: UUID, *, now: datetime) -> bool:
    """Erase a conversation as a client would; return False if it was brought back or kept meanwhile."""
    with transaction.atomic():
        rows = expired_conversations(now).filter(account_id=account_id, id=conversation_id)
        found = rows.defer("saved_session").select_for_update(of=("self",)).first()
        if found is None:
            return False
        # from here on nothing can be written to it
        Conversation.objects.filter(account_id=account_id, id=conversation_id).update(erasing=True)
    erase_conversation(Owner(account_id=account_id, actor=ACTOR), found.conversation_id, now=now)
    return True
