"""The end of a session: its last summary is queued, and its live side in Redis is cleared."""

import logging
from contextlib import suppress
from datetime import datetime

from django.db import transaction
from redis.exceptions import RedisError

from ledger import store as ledger
from memory import conf
from memory.audit import record_audit
from memory.dates import has_come
from memory.errors import Forbidden, Unprocessable
from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations.lifecycle import is_valid_id, join_conversation, lock_visible_conversation
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import session_ref, session_store
from memory.tiers.working import WorkingMemory
from memory_project.redis import ConversationRef

logger = logging.getLogger(__name__)


def end_conversation(
    owner: Owner, conversation_id: str, *, outcome: str, event_time: datetime | None = None, now: datetime
) -> Conversation:
    """End the session: queue its summary if it is long enough, and clear its live side. It ended at `event_time`.

    Ending twice has no further effect, except that a later outcome replaces an earlier one and is examined for patterns
    again. If Redis is down, `cleared_at` stays empty and the job `clear_ended` clears later. A conversation without any
    turn can be ended if it has a ledger or working memory. For a guest (`is_guest_of`) it goes on: only the
    guest's own working memory is cleared. Raises NotFound; Forbidden for a guest that sends an outcome or a time;
    Unprocessable for an unknown outcome and for an end in the future or before the last turn.
    """
    if outcome and outcome not in Conversation.Outcome.values:
        raise Unprocessable(f"the outcome must be one of: {', '.join(Conversation.Outcome.values)}")
    join_if_only_live(owner, conversation_id, now=now)
    with transaction.atomic():
        conversation = lock_visible_conversation(owner, conversation_id)
        if owner.is_guest_of(conversation.agent_id):
            if outcome or event_time:
                raise Forbidden(
                    "only the agent that opened the conversation, or a key of no agent, may end it for all: without "
                    "outcome and event_time, your own working memory is cleared and the conversation goes on"
                )
            WorkingMemory(owner).clear(conversation_id)
            record_audit(owner, operation="leave", memory_type="conversation", conversation_id=conversation_id)
            return conversation
        if event_time and (not has_come(event_time, now=now) or event_time < (conversation.last_turn_at or event_time)):
            raise Unprocessable("event_time of an end needs a time zone, and must lie between the last turn and now")
        if outcome not in ("", conversation.outcome):
            conversation.outcome, conversation.patterns_extracted_at = outcome, None
        conversation.ended_at = conversation.ended_at or event_time or now
        conversation.updated_at, conversation.cleared_at = now, None
        conversation.saved_session = conversation.saved_at = None
        plan_last_summary(conversation, now=now)
        changed = ("outcome", "ended_at", "cleared_at", "saved_session", "saved_at", "updated_at")
        conversation.save(update_fields=[*changed, "summarize_to", "summarize_after", "patterns_extracted_at"])
        record_audit(owner, operation="end", memory_type="conversation", conversation_id=conversation_id)
    clear_live_side(conversation, now=now)
    return conversation


def join_if_only_live(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """Create the row of a conversation of which only Redis knows: it has a ledger or working memory, but no turn."""
    rows = Conversation.objects.filter(account_id=owner.account_id, conversation_id=conversation_id)
    if not is_valid_id(conversation_id) or rows.exists():
        return
    ref = ConversationRef(account_id=owner.account_id, conversation_id=conversation_id)
    with suppress(RedisError):
        if ledger.get_all(ref) or WorkingMemory(owner).get(conversation_id):
            join_conversation(owner, conversation_id, now=now)


def plan_last_summary(conversation: Conversation, *, now: datetime) -> None:
    """Queue a summary of all turns of a session with SESSION_MAX_MESSAGES_BEFORE_SUMMARY messages, unless parked."""
    if conversation.turn_count < conf.SESSION_MAX_MESSAGES_BEFORE_SUMMARY or conversation.summary_parked_at:
        return
    if conversation.turn_count > conversation.summarized_count:
        conversation.summarize_to = conversation.turn_count
        if not conversation.summary_attempts:
            conversation.summarize_after = now


def clear_live_side(conversation: Conversation, *, now: datetime) -> bool:
    """Clear session, working memory and ledger of an ended conversation. Return False if Redis does not answer.

    Idempotent. A conversation that was reopened meanwhile is left alone.
    """
    ended = Conversation.objects.filter(account_id=conversation.account_id, id=conversation.id).ended_uncleared()
    try:
        # Redis inside the transaction: a turn that reopens the conversation waits, or its new session would be cleared
        with transaction.atomic():
            if not ended.select_for_update(no_key=True).values_list("id"):
                return True
            delete_live_side(conversation)
            ended.update(cleared_at=now)
    except RedisError as err:
        logger.warning("conversation %s ended, its live side is still there: %s", conversation.id, type(err).__name__)
        return False
    conversation.cleared_at = now
    return True


def erase_live_side(conversation: Conversation) -> None:
    """Clear the live side in the transaction that erases the conversation. Raises RedisError, and nothing is erased."""
    delete_live_side(conversation)
    # until the commit, others still find the conversation and may write to its session
    transaction.on_commit(lambda: delete_live_side_again(conversation))


def delete_live_side_again(conversation: Conversation) -> None:
    try:
        delete_live_side(conversation)
    except RedisError as err:
        logger.warning("live side of conversation %s not cleared again: %s", conversation.id, type(err).__name__)


def delete_live_side(conversation: Conversation) -> None:
    """Clear session, working memory and ledger of a conversation. Raises RedisError."""
    ref = ConversationRef(account_id=conversation.account_id, conversation_id=conversation.conversation_id)
    session_store().clear(conversation)
    SessionMemory(session_ref(conversation)).clear_session()
    WorkingMemory(Owner(account_id=conversation.account_id)).clear(conversation.conversation_id)
    ledger.end_ledger(ref, agent_id=conversation.agent_id)
