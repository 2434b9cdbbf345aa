"""What the queue of summaries (`conversation_queue`) is up to: how far a summary goes, and what is due after it."""

from datetime import datetime
from uuid import UUID

from memory import conf
from memory.models import Conversation
from memory.services.conversations.lifecycle import plan_summary
from memory.services.conversations.queue import SUMMARIES, Claimed, claim_rows, settle_row

ADVANCED = (
    *("summarized_count", "buffer_from", "summarize_after", "summarize_to"),
    *("summary_lease_until", "summary_attempts", "summary_error"),
)


def claim_due(*, now: datetime, limit: int, account_id: UUID | None) -> list[Claimed]:
    return claim_rows(SUMMARIES, now=now, limit=limit, account_id=account_id, target_of=target_of)


def target_of(conversation: Conversation) -> int:
    """Up to which turn its next summary goes: as asked for, else all but the last ones."""
    wanted = conversation.summarize_to
    if wanted is None:
        wanted = conversation.turn_count - conf.SUMMARY_KEEP_MESSAGES
    return max(wanted, conversation.summarized_count)


def advance(conversation: Conversation, claim: Claimed, *, stop: int, now: datetime) -> None:
    """The turns before `stop` are in the summary; what is left of the claim, or was asked for meanwhile, is due now."""
    # a summary that was lost is made again from the beginning on
    conversation.summarized_count = max(conversation.summarized_count, stop)
    latest = conversation.turn_count - conf.SUMMARY_KEEP_MESSAGES
    conversation.buffer_from = max(conversation.buffer_from, min(stop, latest))
    settle_row(conversation, SUMMARIES)
    wanted = max(claim.target, conversation.summarize_to or 0)
    if wanted > stop:
        conversation.summarize_to, conversation.summarize_after = wanted, now
    else:
        conversation.summarize_to = None
        plan_summary(conversation, now=now)
    conversation.save(update_fields=ADVANCED)
