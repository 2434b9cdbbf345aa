"""Actions of staff on conversations: archive, retry, erase. Each is audited in the same transaction.

If Redis is involved, it comes last and inside the transaction: if it does not answer, nothing is changed.
"""

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from memory.audit import record_audit
from memory.errors import Unprocessable, require_found
from memory.kinds import Audience, Kind, kinds_seen_by
from memory.models import Conversation, Memory, Participant, StrategyUse, ToolInvocation, TurnRecord
from memory.models.writer import clear_record_references
from memory.owner import Owner
from memory.services.conversations.end import erase_live_side
from memory.services.conversations.lifecycle import (
    find_conversation,
    lock_conversation_to_erase,
    lock_lineages,
    lock_visible_conversation,
)
from memory.services.extraction.extract import request_extraction
from memory.services.memories.correct import ROWS_PER_TRANSACTION, chunk_ids, erase_memories, mark_rows
from memory.services.operations.jobs import request_run
from memory.services.summaries.summarize import request_summary

SUMMARIZE_JOB = "summarize"
EXTRACTION_JOB = "extract_knowledge"


def archive_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """Archive a conversation and its turns, except pinned ones, as retention does. Raises NotFound."""
    with transaction.atomic():
        conversation = lock_visible_conversation(owner, conversation_id)
        archive_locked_conversation(owner, conversation, now=now)
        audit_conversation_change(owner, "archive", conversation)


def archive_locked_conversation(owner: Owner, conversation: Conversation, *, now: datetime) -> None:
    """Archive a conversation that the caller has locked. The time of its last write stays."""
    row_of(conversation).update(archived=True, archived_at=now)
    mark_rows(owner, turn_memories(owner, conversation).filter(pinned=False), mark="archive", now=now)


def row_of(conversation: Conversation) -> QuerySet[Conversation]:
    return Conversation.objects.filter(account_id=conversation.account_id, id=conversation.id)


def unarchive_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """Unarchive a conversation with all of its turns, as if it had been written to at `now`.

    Turns that were archived one by one come back too: quarantine those that must stay out of searches. Raises NotFound.
    """
    with transaction.atomic():
        conversation = lock_visible_conversation(owner, conversation_id)
        row_of(conversation).update(archived=False, updated_at=now)
        mark_rows(owner, turn_memories(owner, conversation), mark="unarchive", now=now)
        audit_conversation_change(owner, "unarchive", conversation)


def set_legal_hold(owner: Owner, conversation_id: str, *, value: bool) -> None:
    """Keep retention from deleting a conversation, or let it again. Raises NotFound."""
    with transaction.atomic():
        conversation = lock_visible_conversation(owner, conversation_id)
        row_of(conversation).update(legal_hold=value)
        audit_conversation_change(owner, "update", conversation, metadata={"legal_hold": value})


def request_summary_as_staff(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Request a summary, with an audit row and a run of the job."""
    with transaction.atomic():
        conversation = request_summary(owner, conversation_id, now=now)
        audit_conversation_change(owner, "summarize", conversation)
        request_run(owner, job=SUMMARIZE_JOB)
    return conversation


def retry_summary(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """Retry a failed summary now, with a run of the job."""
    with transaction.atomic():
        requeue_failed_summary(owner, conversation_id, now=now)
        request_run(owner, job=SUMMARIZE_JOB)


def requeue_failed_summary(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """Make a failed summary due now; a parked one is made again of all turns. The caller has the job run.

    Raises NotFound, and Unprocessable if no summary has failed.
    """
    with transaction.atomic():
        conversation = lock_visible_conversation(owner, conversation_id)
        if conversation.summary_parked_at is not None:
            request_summary(owner, conversation_id, now=now)
        elif conversation.summary_error and conversation.summarize_after is not None:
            row_of(conversation).update(summarize_after=now)
        else:
            raise Unprocessable("no summary of this conversation waits after a failure")
        audit_conversation_change(owner, "retry", conversation)


def retry_failed(owner: Owner, conversation: Conversation, *, now: datetime) -> set[str]:
    """Retry failed or parked work of a conversation, and return the jobs that the caller has to run.

    `conversation` is as it was read; what has been done since is skipped. Raises NotFound.
    """
    jobs: set[str] = set()
    if conversation.summary_error:
        with suppress(Unprocessable):
            requeue_failed_summary(owner, conversation.conversation_id, now=now)
            jobs.add(SUMMARIZE_JOB)
    if conversation.extract_error:
        request_extraction_as_staff(owner, conversation.conversation_id, now=now)
        jobs.add(EXTRACTION_JOB)
    return jobs


def request_extraction_as_staff(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Request extraction, failed or parked or not, with an audit row. The caller has the job run."""
    with transaction.atomic():
        conversation = request_extraction(owner, conversation_id, now=now)
        audit_conversation_change(owner, "consolidate", conversation)
    return conversation


def delete_conversation(owner: Owner, conversation_id: str) -> int:
    """Erase a conversation and return how many memories it had. Raises NotFound, and RedisError, changing nothing.

    Its turns with their vectors and links, the arguments and results of its tool invocations, its participants and its
    live side are erased. Its episodes stay, and so do the counts of its tools and the ledger's journal, which hold no
    texts. Conversations that continued it continue what it continued.
    """
    return delete_conversation_kinds(owner, conversation_id, kinds=kinds_seen_by(Audience.PARTICIPANTS))


def delete_conversation_and_episodes(owner: Owner, conversation_id: str) -> int:
    """Erase a conversation as `delete_conversation` does, and its episodes: summaries, and those stored by agents."""
    return delete_conversation_kinds(
        owner, conversation_id, kinds={*kinds_seen_by(Audience.PARTICIPANTS), Kind.EPISODE}
    )


def delete_conversation_kinds(owner: Owner, conversation_id: str, *, kinds: Collection[Kind]) -> int:
    with transaction.atomic():
        lock_lineages(owner)
        find_conversation(owner, conversation_id)
        conversation = require_found(lock_conversation_to_erase(owner, conversation_id), "conversation")
        rows = Memory.objects.visible_to(owner, *sorted(kinds)).in_conversation(conversation_id)
        in_order = rows.order_by("id").values_list("id", flat=True).iterator()
        deleted = sum(erase_memories(owner, ids) for ids in chunk_ids(in_order))
        Participant.objects.of_conversation(owner.account_id, conversation_id).delete()
        relink_continuations(conversation)
        clear_conversation_references(conversation)
        row_of(conversation).delete()
        erase_invocations(owner, conversation)
        audit_conversation_change(owner, "delete", conversation, result_count=deleted)
        erase_live_side(conversation)
    return deleted


def clear_conversation_references(conversation: Conversation) -> None:
    """Clear references to the conversation and to its structured turns, which its deletion deletes."""
    account_id = conversation.account_id
    StrategyUse.objects.filter(account_id=account_id, conversation=conversation).update(conversation=None)
    records = TurnRecord.objects.filter(account_id=account_id, log=conversation).values_list("id", flat=True)
    for ids in chunk_ids(records.iterator()):
        clear_record_references(account_id, ids)


def erase_invocations(owner: Owner, conversation: Conversation) -> None:
    """Erase the tool invocations of a conversation whose row is deleted already.

    By then nobody is recording one, and the next conversation with this id starts without any.
    """
    conversation_id = conversation.conversation_id
    rows = ToolInvocation.objects.filter(account_id=conversation.account_id, conversation_id=conversation_id)
    # in the order in which they are sealed again
    locked = rows.order_by("id").select_for_update(of=("self",)).values_list("id", flat=True)
    for ids in chunk_ids(locked.iterator(ROWS_PER_TRANSACTION)):
        rows.filter(id__in=ids).delete()
        record_audit(
            owner,
            operation="delete",
            memory_type="procedural",
            affected_ids=ids,
            conversation_id=conversation_id,
            session_id=conversation_id,
            result_count=len(ids),
        )


def relink_continuations(conversation: Conversation) -> None:
    """Have conversations that continued this one continue what it continued, or nothing if that is themselves."""
    rows = Conversation.objects.filter(account_id=conversation.account_id, continues=conversation.conversation_id)
    rows.filter(conversation_id=conversation.continues).update(continues="")
    rows.update(continues=conversation.continues)


def turn_memories(owner: Owner, conversation: Conversation) -> Any:
    return Memory.objects.visible_to(owner, Kind.TURN).in_conversation(conversation.conversation_id)


def audit_conversation_change(owner: Owner, operation: str, conversation: Conversation, **columns: Any) -> None:
    record_audit(
        owner,
        operation=operation,
        memory_type="conversation",
        affected_ids=[conversation.id],
        conversation_id=conversation.conversation_id,
        session_id=conversation.conversation_id,
        **columns,
    )
