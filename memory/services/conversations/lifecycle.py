"""Conversations from their first write to their end: opened, resumed, ended, and their live side cleared."""

import logging
from collections.abc import Mapping, Sequence
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
SELECT conversation_id, continues FROM lineage
"""

LONGEST_ID = 100

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
    if not is_id(conversation_id):
        return None
    rows = Conversation.objects.visible_to(owner).filter(conversation_id=conversation_id)
    # it may be large, and only who restores it reads it
    return rows.defer("saved_session").first()


def is_id(text: str) -> bool:
    """Whether a conversation may have this id: what the database can keep. The edges refuse more."""
    if not 1 <= len(text) <= LONGEST_ID:
        return False
    return not any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in text)


def create_conversation(owner: Owner, conversation_id: str, *, opening: Opening, now: datetime) -> Conversation:
    """Raises Conflict when the account has a conversation of this id, Unprocessable for what can be none."""
    conversation = new_conversation(owner, conversation_id, now=now)
    with transaction.atomic():
        take_over(owner, conversation, opening)
        stored = insert_conversation(owner, conversation)
        if stored.id != conversation.id:
            raise Conflict("there is a conversation of this id")
        insert_participants(owner, conversation_ids=[conversation_id])
    return stored


def change_conversation(
    owner: Owner, conversation_id: str, *, changes: Mapping[str, Any], now: datetime
) -> Conversation:
    """Give it another `title`, other `metadata`, or another conversation that it `continues` ("" for none).

    Raises NotFound, and Unprocessable as `check_lineage` does.
    """
    with transaction.atomic():
        if changes.get("continues"):
            lock_lineages(owner)
        conversation = lock_found(owner, conversation_id)
        if changes.get("continues"):
            check_lineage(owner, conversation, changes["continues"])
        for name in CHANGEABLE & set(changes):
            setattr(conversation, name, changes[name])
        conversation.updated_at = now
        conversation.save(update_fields=[*(CHANGEABLE & set(changes)), "updated_at"])
        record_update(owner, conversation, sorted(changes))
    return conversation


def record_update(owner: Owner, conversation: Conversation, columns: Sequence[str]) -> None:
    record(
        owner,
        operation="update",
        memory_type="conversation",
        conversation_id=conversation.conversation_id,
        metadata={"columns": columns},
    )


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

    What it takes over from `opening` is stored. Raises Unprocessable for an id that cannot be, and for a conversation
    to continue that there is not; Conflict for another one than it continues already.
    """
    if opening.continues and not continues_already(owner, conversation_id, opening.continues):
        lock_lineages(owner)
    conversation = lock_conversation(owner, conversation_id)
    if conversation is None:
        made = new_conversation(owner, conversation_id, now=now)
        take_over(owner, made, opening)
        conversation = insert_conversation(owner, made)
    if missing := take_over(owner, conversation, opening):
        conversation.updated_at = now
        conversation.save(update_fields=[*missing, "updated_at"])
        record_update(owner, conversation, missing)
    return conversation


def insert_conversation(owner: Owner, made: Conversation) -> Conversation:
    """The row of its id, locked: this one, or the one that another request made a moment ago."""
    Conversation.objects.bulk_create([made], ignore_conflicts=True)
    conversation = lock_conversation(owner, made.conversation_id)
    if conversation is None:
        raise Conflict("the conversation was deleted a moment ago")
    if conversation.id == made.id:
        record(owner, operation="create", memory_type="conversation", conversation_id=made.conversation_id)
    return conversation


def lock_found(owner: Owner, conversation_id: str) -> Conversation:
    """The row, locked until the transaction ends. Raises NotFound as `find_conversation` does."""
    find_conversation(owner, conversation_id)
    conversation = lock_conversation(owner, conversation_id)
    if conversation is None:
        raise NotFound("no such conversation")
    return conversation


def lock_conversation(owner: Owner, conversation_id: str) -> Conversation | None:
    if not is_id(conversation_id):
        return None
    rows = Conversation.objects.filter(account_id=owner.account_id, conversation_id=conversation_id)
    return rows.defer("saved_session").select_for_update(no_key=True).first()


def new_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Raises Unprocessable for an id that cannot be."""
    if not is_id(conversation_id):
        raise Unprocessable(f"an id has 1 to {LONGEST_ID} characters, no NUL and no lone surrogate")
    return Conversation(
        account_id=owner.account_id,
        conversation_id=conversation_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id,
        channel=owner.channel,
        started_at=now,
    )


def take_over(owner: Owner, conversation: Conversation, opening: Opening) -> list[str]:
    """Give it what it does not have yet; the names of the columns. Raises as `open_conversation` does."""
    if opening.continues and conversation.continues not in ("", opening.continues):
        raise Conflict("it continues another conversation already")
    given = {"title": opening.title, "continues": opening.continues, "metadata": opening.metadata}
    missing = {name: value for name, value in given.items() if value and not getattr(conversation, name)}
    if "continues" in missing:
        check_lineage(owner, conversation, opening.continues)
    for name, value in missing.items():
        setattr(conversation, name, value)
    return sorted(missing)


def continues_already(owner: Owner, conversation_id: str, continues: str) -> bool:
    conversation = look_up(Owner(account_id=owner.account_id), conversation_id)
    return conversation is not None and conversation.continues == continues


def lock_lineages(owner: Owner) -> None:
    """Until the transaction ends, nobody else in the account changes which conversation continues which.

    To be had before the row of a conversation: an erasure has this lock while it waits for those of others.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"lineages:{owner.account_id}"])


def check_lineage(owner: Owner, conversation: Conversation, continues: str) -> None:
    """Raises Unprocessable when there is no such conversation for this owner, or it would come after itself."""
    # had already by all but those who saw it continue what it does not continue any more
    lock_lineages(owner)
    if look_up(owner, continues) is None:
        raise Unprocessable("there is no conversation of the id in continues")
    if would_continue_itself(owner, conversation.conversation_id, continues):
        raise Unprocessable("a conversation cannot continue one that continues it")


def would_continue_itself(owner: Owner, conversation_id: str, continues: str) -> bool:
    """Whether a conversation of this id, be it there already or not, would come after itself."""
    return conversation_id == continues or conversation_id in read_lineage(owner, continues).values()


def lineage_of(owner: Owner, conversation_id: str) -> list[str]:
    """The conversation and those that it resumes, nearest first."""
    return list(read_lineage(owner, conversation_id))


def read_lineage(owner: Owner, conversation_id: str) -> dict[str, str]:
    """The conversation and those that it resumes, nearest first, with what each continues, be it there or not."""
    with connection.cursor() as cursor:
        cursor.execute(LINEAGE, [owner.account_id, conversation_id, owner.account_id])
        return dict(cursor.fetchall())


def plan_summary(conversation: Conversation, *, now: datetime) -> None:
    """Set when its summary is due: at the threshold now, from the smaller bound on once it falls idle.

    What somebody asked for stays, and so does the wait after a failed attempt, and what is parked.
    """
    if conversation.summarize_to is not None or conversation.summary_attempts or conversation.summary_parked_at:
        return
    waiting = conversation.turn_count - conversation.summarized_count
    due: datetime | None = None
    if waiting >= conf.SUMMARY_THRESHOLD:
        due = now
    # the last ones are left alone anyway: where there are no others, nothing would be done, again and again
    elif waiting >= max(conf.SESSION_MAX_MESSAGES_BEFORE_SUMMARY, conf.SUMMARY_KEEP_MESSAGES + 1):
        due = now + timedelta(minutes=conf.SESSION_IDLE_MINUTES)
    conversation.summarize_after = due


def end_conversation(owner: Owner, conversation_id: str, *, outcome: str, now: datetime) -> Conversation:
    """End the session: its summary is queued where it is long enough, its live side is cleared.

    Ending twice is ending once; a later outcome replaces an earlier one, and is looked at for patterns anew. Where
    Redis is down, `cleared_at` stays empty and the job `clear_ended` clears later. Raises NotFound, and Unprocessable
    for an outcome that there is not.
    """
    if outcome and outcome not in Conversation.Outcome.values:
        raise Unprocessable(f"an outcome is one of: {', '.join(Conversation.Outcome.values)}")
    with transaction.atomic():
        conversation = lock_found(owner, conversation_id)
        if outcome not in ("", conversation.outcome):
            conversation.outcome, conversation.patterns_extracted_at = outcome, None
        conversation.ended_at = conversation.ended_at or now
        conversation.updated_at, conversation.cleared_at = now, None
        conversation.saved_session = conversation.saved_at = None
        plan_last_summary(conversation, now=now)
        conversation.save(
            update_fields=[
                *("outcome", "ended_at", "cleared_at", "saved_session", "saved_at"),
                *("summarize_to", "summarize_after", "patterns_extracted_at", "updated_at"),
            ]
        )
        record(owner, operation="end", memory_type="conversation", conversation_id=conversation_id)
    clear_live_side(conversation, now=now)
    return conversation


def plan_last_summary(conversation: Conversation, *, now: datetime) -> None:
    """Of everything that was said, where the session had SESSION_MAX_MESSAGES_BEFORE_SUMMARY messages.

    What is parked stays so.
    """
    if conversation.turn_count < conf.SESSION_MAX_MESSAGES_BEFORE_SUMMARY or conversation.summary_parked_at:
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
    try:
        # Redis inside the transaction: a turn that reopens it must wait, or its new session would be cleared
        with transaction.atomic():
            if not ended.select_for_update(no_key=True).values_list("id"):
                return True
            forget_live_side(conversation)
            ended.update(cleared_at=now)
    except RedisError as err:
        logger.warning("conversation %s ended, its live side is still there: %s", conversation.id, type(err).__name__)
        return False
    conversation.cleared_at = now
    return True


def erase_live_side(conversation: Conversation) -> None:
    """Clear it with the conversation, in its transaction. Raises RedisError: without Redis, nothing is erased."""
    forget_live_side(conversation)
    # until the commit others still find the conversation, and may put into its session what the next one would find
    transaction.on_commit(lambda: forget_live_side_again(conversation))


def forget_live_side_again(conversation: Conversation) -> None:
    try:
        forget_live_side(conversation)
    except RedisError as err:
        logger.warning("live side of conversation %s not cleared again: %s", conversation.id, type(err).__name__)


def forget_live_side(conversation: Conversation) -> None:
    """Clear session, working memory and ledger of a conversation. Raises RedisError."""
    place = Place(account_id=conversation.account_id, conversation_id=conversation.conversation_id)
    session_store().clear(conversation)
    SessionMemory(place_of(conversation)).clear_session()
    WorkingMemory(Owner(account_id=conversation.account_id)).clear(conversation.conversation_id)
    ledger.end(place, agent_id=conversation.agent_id)
