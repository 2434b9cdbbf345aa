"""Conversations from their first write to their end: opened, resumed, ended, and their live side cleared."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from redis.exceptions import RedisError

from ledger import store as ledger
from memory import conf
from memory.audit import record
from memory.errors import Conflict, NotFound, Unprocessable
from memory.models import Conversation
from memory.models.writer import insert_participants
from memory.owner import Owner
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import place_of, session_store
from memory.tiers.working import WorkingMemory
from memory_project.redis import Place

logger = logging.getLogger(__name__)

# the conversations that one resumes, one after the other; UNION, so that a ring ends
LINEAGE = """
WITH RECURSIVE lineage AS (
    SELECT conversation_id, continues FROM conversations WHERE account_id = %s AND conversation_id = %s
    UNION
    SELECT c.conversation_id, c.continues FROM conversations c JOIN lineage ON c.conversation_id = lineage.continues
    WHERE c.account_id = %s
)
SELECT conversation_id FROM lineage
"""

CHANGEABLE = frozenset({"title", "metadata", "continues"})
"""Columns that a client may change later. User and channel are of the first write, counts and times its turns'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a conversation is opened with; only what it does not have yet is taken over."""

    title: str = ""
    continues: str = ""
    metadata: dict[str, Any] | None = None


def find_conversation(owner: Owner, conversation_id: str) -> Conversation:
    """Raises NotFound, where the owner takes no part as where there is none."""
    found = look_up(owner, conversation_id)
    if found is None:
        raise NotFound("no such conversation")
    return found


def look_up(owner: Owner, conversation_id: str) -> Conversation | None:
    rows = Conversation.objects.visible_to(owner).filter(conversation_id=conversation_id)
    # it may be large, and only who restores it reads it
    return rows.defer("saved_session").first()


def create_conversation(owner: Owner, conversation_id: str, *, opening: Opening, now: datetime) -> Conversation:
    """Raises Conflict when the account has a conversation of this id."""
    conversation = new_conversation(owner, conversation_id, now=now)
    with transaction.atomic():
        take_over(owner, conversation, opening)
        # left alone where there is one, a moment ago by another's request too
        Conversation.objects.bulk_create([conversation], ignore_conflicts=True)
        stored = lock_conversation(owner, conversation_id)
        if stored is None or stored.id != conversation.id:
            raise Conflict("there is a conversation of this id")
        insert_participants(owner, conversation_ids=[conversation_id])
        record(owner, operation="create", memory_type="conversation", conversation_id=conversation_id)
    return stored


def change_conversation(
    owner: Owner, conversation_id: str, *, changes: Mapping[str, Any], now: datetime
) -> Conversation:
    """Give it another `title`, other `metadata`, or another conversation that it `continues` ("" for none).

    Raises NotFound, and Unprocessable as `check_lineage` does.
    """
    with transaction.atomic():
        conversation = lock_found(owner, conversation_id)
        if changes.get("continues"):
            check_lineage(owner, conversation, changes["continues"])
        for name in CHANGEABLE & set(changes):
            setattr(conversation, name, changes[name])
        conversation.updated_at = now
        conversation.save(update_fields=[*(CHANGEABLE & set(changes)), "updated_at"])
        columns = {"columns": sorted(changes)}
        record(owner, operation="update", memory_type="conversation", conversation_id=conversation_id, metadata=columns)
    return conversation


def join_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """The conversation for a write to its live side: made on its first, and the agent takes part from then on."""
    found = look_up(owner, conversation_id)
    if found is not None:
        return found
    with transaction.atomic():
        conversation = open_conversation(owner, conversation_id, opening=Opening(), now=now)
        insert_participants(owner, conversation_ids=[conversation_id])
    return conversation


def open_conversation(owner: Owner, conversation_id: str, *, opening: Opening, now: datetime) -> Conversation:
    """The row, locked until the transaction ends; made where it is new. Who writes into it takes part in it.

    `opening` is taken over into the row, which the caller stores. Raises Unprocessable for a conversation to
    continue that there is not, Conflict for another one than it continues already.
    """
    conversation = lock_conversation(owner, conversation_id)
    if conversation is None:
        Conversation.objects.bulk_create([new_conversation(owner, conversation_id, now=now)], ignore_conflicts=True)
        conversation = lock_conversation(owner, conversation_id)
        if conversation is None:
            raise Conflict("the conversation was deleted a moment ago")
        record(owner, operation="create", memory_type="conversation", conversation_id=conversation_id)
    take_over(owner, conversation, opening)
    return conversation


def lock_found(owner: Owner, conversation_id: str) -> Conversation:
    """The row, locked until the transaction ends. Raises NotFound as `find_conversation` does."""
    find_conversation(owner, conversation_id)
    conversation = lock_conversation(owner, conversation_id)
    if conversation is None:
        raise NotFound("no such conversation")
    return conversation


def lock_conversation(owner: Owner, conversation_id: str) -> Conversation | None:
    rows = Conversation.objects.filter(account_id=owner.account_id, conversation_id=conversation_id)
    return rows.defer("saved_session").select_for_update(no_key=True).first()


def new_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    return Conversation(
        account_id=owner.account_id,
        conversation_id=conversation_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        channel=owner.channel,
        started_at=now,
    )


def take_over(owner: Owner, conversation: Conversation, opening: Opening) -> None:
    conversation.title = opening.title or conversation.title
    if opening.metadata:
        conversation.metadata = opening.metadata
    if opening.continues and opening.continues != conversation.continues:
        if conversation.continues:
            raise Conflict("it continues another conversation already")
        check_lineage(owner, conversation, opening.continues)
        conversation.continues = opening.continues


def check_lineage(owner: Owner, conversation: Conversation, continues: str) -> None:
    """Raises Unprocessable when there is no such conversation for this owner, or it would come after itself."""
    if not Conversation.objects.visible_to(owner).filter(conversation_id=continues).exists():
        raise Unprocessable("there is no conversation of the id in continues")
    if conversation.conversation_id in lineage_of(owner, continues):
        raise Unprocessable("a conversation cannot continue one that continues it")


def lineage_of(owner: Owner, conversation_id: str) -> list[str]:
    """The conversation and those that it resumes, nearest first."""
    with connection.cursor() as cursor:
        cursor.execute(LINEAGE, [owner.account_id, conversation_id, owner.account_id])
        return [row[0] for row in cursor.fetchall()]


def plan_summary(conversation: Conversation, *, now: datetime) -> None:
    """Set when its summary is due: at the threshold now, from the smaller bound on once it falls idle.

    What somebody asked for stays, and so does the wait after a failed attempt.
    """
    if conversation.summarize_to is not None or conversation.summary_attempts:
        return
    waiting = conversation.turn_count - conversation.summarized_count
    due: datetime | None = None
    if waiting >= conf.SUMMARY_THRESHOLD:
        due = now
    elif waiting >= conf.SESSION_MAX_MESSAGES_BEFORE_SUMMARY:
        due = now + timedelta(minutes=conf.SESSION_IDLE_MINUTES)
    conversation.summarize_after = due


def end_conversation(owner: Owner, conversation_id: str, *, outcome: str, now: datetime) -> Conversation:
    """End the session: its summary is queued where it is long enough, its live side is cleared.

    Ending twice is ending once; a later outcome replaces an earlier one. Where Redis is down, `cleared_at` stays empty
    and the job `clear_ended` clears later. Raises NotFound.
    """
    with transaction.atomic():
        conversation = lock_found(owner, conversation_id)
        conversation.outcome = outcome or conversation.outcome
        conversation.ended_at = conversation.ended_at or now
        conversation.updated_at, conversation.cleared_at = now, None
        conversation.saved_session = conversation.saved_at = None
        plan_last_summary(conversation, now=now)
        conversation.save(
            update_fields=[
                *("outcome", "ended_at", "cleared_at", "saved_session", "saved_at"),
                *("summarize_to", "summarize_after", "updated_at"),
            ]
        )
        record(owner, operation="end", memory_type="conversation", conversation_id=conversation_id)
    clear_live_side(conversation, now=now)
    return conversation


def plan_last_summary(conversation: Conversation, *, now: datetime) -> None:
    """Of everything that was said, where the session had SESSION_MAX_MESSAGES_BEFORE_SUMMARY messages."""
    if conversation.turn_count < conf.SESSION_MAX_MESSAGES_BEFORE_SUMMARY:
        return
    if conversation.turn_count > conversation.summarized_count:
        conversation.summarize_to = conversation.turn_count
        if not conversation.summary_attempts:
            conversation.summarize_after = now


def clear_live_side(conversation: Conversation, *, now: datetime) -> bool:
    """Clear session, working memory and ledger of an ended conversation; False where Redis gave no answer.

    Done twice it is done once; a conversation that was reopened meanwhile is left alone.
    """
    ended = Conversation.objects.filter(id=conversation.id).ended_uncleared()
    if not ended.exists():
        return True
    try:
        forget_live_side(conversation)
    except RedisError as err:
        logger.warning("conversation %s ended, its live side is still there: %s", conversation.id, type(err).__name__)
        return False
    ended.update(cleared_at=now)
    conversation.cleared_at = now
    return True


def forget_live_side(conversation: Conversation) -> None:
    """Clear session, working memory and ledger of a conversation. Raises RedisError."""
    place = Place(account_id=conversation.account_id, conversation_id=conversation.conversation_id)
    session_store().clear(conversation)
    SessionMemory(place_of(conversation)).clear_session()
    WorkingMemory(Owner(account_id=conversation.account_id)).clear(conversation.conversation_id)
    ledger.end(place, agent_id=conversation.agent_id)
