"""Erasing whole conversations and single turns, for the account and for those whose they are."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from ledger.journal import flush_everything
from ledger.models import Injection
from memory.errors import Forbidden, NotFound, require_found
from memory.kinds import Audience, Kind, kinds_seen_by
from memory.models import (
    Conversation,
    IdempotentRequest,
    Memory,
    Participant,
    Strategy,
    StrategyUse,
    ToolInvocation,
    Turn,
    TurnRecord,
)
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation, lock_conversation_to_erase
from memory.services.conversations.staff_edits import delete_conversation_and_episodes
from memory.services.custody.histories import erase_histories_of
from memory.services.custody.memories import erase_derived
from memory.services.custody.traces import erase_texts_audited_in
from memory.services.strategies.learn import FAILURE_SOURCE, PATTERN_SOURCE

BATCH_ROWS = 500
"""Memories of a conversation that are erased in one transaction."""

LEASES = ("summary_lease_until", "extract_lease_until")
RELEASED = {
    "erasing": True,
    "summarize_to": None,
    **dict.fromkeys(("summarize_after", "extract_after", *LEASES)),
}
"""Columns of a conversation that is being erased. Work on it that has begun has lost its claim and stores nothing."""


def begin_erasing(owner: Owner, conversation_id: str) -> Conversation:
    """Refuse writes to a conversation from now on, and cancel running summaries and extraction of it.

    Raises NotFound, and Forbidden for an agent that did not start it.
    """
    with transaction.atomic():
        find_conversation(owner, conversation_id)
        found = require_found(lock_conversation_to_erase(owner, conversation_id), "conversation")
        if owner.agent_id and found.agent_id != owner.agent_id:
            raise Forbidden("only the agent that started the conversation, or the account, may erase it")
        Conversation.objects.filter(account_id=owner.account_id, id=found.id).update(**RELEASED)
    return found


def erase_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> Counter[str]:
    """Erase a conversation with its live side, all that it holds, and what was derived from that alone.

    Batches of one transaction each, unless the caller opened one. If it is interrupted, nothing can be written to the
    conversation, and erasing it again continues. Raises NotFound, Forbidden, RedisError.
    """
    conversation = begin_erasing(owner, conversation_id)
    whole = Owner(account_id=owner.account_id, actor=owner.actor)
    # the database deletes them with the conversation
    counts = Counter({model._meta.db_table: rows.count() for model, rows in records_of(conversation)})
    held = held_memories(owner.account_id, conversation_id)
    strategies = list(strategies_of(conversation))
    while ids := list(held.order_by("id").values_list("id", flat=True)[:BATCH_ROWS]):
        counts += erase_derived(whole, ids, now=now)
    counts += erase_derived(whole, strategies, now=now)
    counts["audit_payloads"] += erase_texts_audited_in(conversation)
    counts["staff_history"] += erase_histories_of(rows_of(conversation))
    with transaction.atomic():
        delete_conversation_and_episodes(whole, conversation_id)
        flush_everything()
        marks = Injection.objects.in_account(owner.account_id).in_conversation(conversation_id)
        counts["injections"] += marks.delete()[0]
        # an answer may quote what was said, without an id of it
        quoting = Q(conversation_id=conversation_id) | Q(body__contains=f'"{conversation_id}"')
        answers = IdempotentRequest.objects.filter(quoting, account_id=owner.account_id)
        counts["idempotent_requests"] += answers.delete()[0]
    return +(counts + Counter(conversations=1))


def rows_of(conversation: Conversation) -> Iterator[UUID]:
    """Yield the ids of a conversation and of its rows that are no memories."""
    yield conversation.id
    for _, rows in records_of(conversation):
        yield from rows.values_list("id", flat=True)


def records_of(conversation: Conversation) -> Iterator[tuple[type[Model], QuerySet[Any]]]:
    """Yield the tables whose rows belong to a conversation and are no memories, each with its rows."""
    for model in (Participant, TurnRecord, ToolInvocation):
        rows = model._default_manager.filter(account_id=conversation.account_id)
        yield model, rows.filter(conversation_id=conversation.conversation_id)


def held_memories(account_id: UUID, conversation_id: str) -> QuerySet[Memory]:
    """Return the memories that go with a conversation: its turns, slots, work episodes and episodes."""
    kinds = sorted({*kinds_seen_by(Audience.PARTICIPANTS), Kind.EPISODE})
    return Memory.objects.filter(account_id=account_id, conversation_id=conversation_id, kind__in=kinds)


def strategies_of(conversation: Conversation) -> list[UUID]:
    """Return the strategies that were learned in the conversation and used in no other."""
    elsewhere = StrategyUse.objects.filter(account_id=conversation.account_id, strategy_id=OuterRef("id"))
    elsewhere = elsewhere.filter(~Q(conversation=None)).exclude(conversation_id=conversation.id)
    rows = Strategy.objects.filter(account_id=conversation.account_id, conversation_id=conversation.conversation_id)
    learned = rows.filter(source__in=(PATTERN_SOURCE, FAILURE_SOURCE)).exclude(Exists(elsewhere))
    return list(learned.values_list("id", flat=True))


def erase_turn(owner: Owner, conversation_id: str, turn_id: UUID, *, now: datetime) -> Counter[str]:
    """Erase what a turn says, and what was derived from it alone. Its number stays.

    Raises NotFound, also for a turn that was erased before, and Forbidden for an agent that did not store it.
    """
    conversation = find_conversation(owner, conversation_id)
    rows = Turn.objects.filter(account_id=owner.account_id, log=conversation, id=turn_id)
    turn = (rows.filter(user_id=owner.user_id) if owner.limited_to_user else rows).first()
    if turn is None:
        raise NotFound("no such turn")
    if owner.agent_id and turn.agent_id != owner.agent_id:
        raise Forbidden("only the agent that stored the turn, or the account, may erase it")
    counts = erase_derived(owner, [turn_id], now=now)
    if not counts[Kind.TURN]:
        raise NotFound("no such turn")
    return counts
