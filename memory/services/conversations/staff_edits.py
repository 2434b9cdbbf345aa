"""Staff's hand in conversations: archived, tried again, erased. Audited in the same transaction.

Where Redis has a part in it, it comes last and inside: without an answer of Redis nothing is changed.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction

from memory.audit import record
from memory.errors import Unprocessable
from memory.models import Conversation, Kind, Memory, Participant, ToolInvocation
from memory.models.memory import OF_CONVERSATIONS
from memory.owner import Owner
from memory.services.conversations.lifecycle import erase_live_side, lock_found, lock_lineages
from memory.services.extraction.extract import request_extraction
from memory.services.memories.correct import ROWS_A_TRANSACTION, chunks, erase_memories, mark_all
from memory.services.operations.jobs import request_run
from memory.services.summaries.summarize import request_summary

SUMMARIZE = "summarize"
"""The job that makes summaries."""

CONSOLIDATE = "consolidate"
"""The job that extracts knowledge."""


def archive_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """Take it and its turns out of searches, pinned ones excepted, as retention does. Raises NotFound."""
    with transaction.atomic():
        conversation = lock_found(owner, conversation_id)
        archive_locked(owner, conversation, now=now)
        record_change(owner, "archive", conversation)


def archive_locked(owner: Owner, conversation: Conversation, *, now: datetime) -> None:
    """Archive what the caller has locked. The time of its last write stays."""
    Conversation.objects.filter(id=conversation.id).update(archived=True)
    mark_all(turns_of(owner, conversation).filter(pinned=False), mark="archive", now=now)


def unarchive_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """Bring it back with all of its turns, for as long as retention keeps one that was written to `now`.

    Turns that were archived one by one come back too: what is to stay out of searches is quarantined. Raises NotFound.
    """
    with transaction.atomic():
        conversation = lock_found(owner, conversation_id)
        Conversation.objects.filter(id=conversation.id).update(archived=False, updated_at=now)
        mark_all(turns_of(owner, conversation), mark="unarchive", now=now)
        record_change(owner, "unarchive", conversation)


def ask_for_summary(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """`request_summary`, by name: who asked is in the audit log. A run of the job is queued with it."""
    with transaction.atomic():
        conversation = request_summary(owner, conversation_id, now=now)
        record_change(owner, "summarize", conversation)
        request_run(owner, job=SUMMARIZE)
    return conversation


def retry_summary(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """`ask_again_for_summary`, with a run of the job."""
    with transaction.atomic():
        ask_again_for_summary(owner, conversation_id, now=now)
        request_run(owner, job=SUMMARIZE)


def ask_again_for_summary(owner: Owner, conversation_id: str, *, now: datetime) -> None:
    """Try a failing summary now instead of after its wait; one that is parked, of everything that was said.

    The caller has the job run. Raises NotFound, and Unprocessable where none fails.
    """
    with transaction.atomic():
        conversation = lock_found(owner, conversation_id)
        if conversation.summary_parked_at is not None:
            request_summary(owner, conversation_id, now=now)
        elif conversation.summary_error and conversation.summarize_after is not None:
            Conversation.objects.filter(id=conversation.id).update(summarize_after=now)
        else:
            raise Unprocessable("no summary of this conversation waits after a failure")
        record_change(owner, "retry", conversation)


def retry_failed(owner: Owner, conversation: Conversation, *, now: datetime) -> set[str]:
    """Try summary and extraction again where they fail, or are parked: the jobs that the caller is to have run.

    The conversation is as it was read: what has been done meanwhile is passed over. Raises NotFound.
    """
    jobs: set[str] = set()
    if conversation.summary_error:
        with suppress(Unprocessable):
            ask_again_for_summary(owner, conversation.conversation_id, now=now)
            jobs.add(SUMMARIZE)
    if conversation.extract_error:
        ask_for_extraction(owner, conversation.conversation_id, now=now)
        jobs.add(CONSOLIDATE)
    return jobs


def ask_for_extraction(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """`request_extraction`, by name, a failing one without its wait, a parked one too. The caller has the job run."""
    with transaction.atomic():
        conversation = request_extraction(owner, conversation_id, now=now)
        record_change(owner, CONSOLIDATE, conversation)
    return conversation


def delete_conversation(owner: Owner, conversation_id: str) -> int:
    """Erase it: turns, their vectors and links, what tools were given and gave back in it, who took part, its live
    side; how many memories there were.

    Its episodes stay, and so do the counts of its tools and the ledger's journal, which hold no texts. What continued
    it continues what it continued. Raises NotFound, and RedisError, after which everything is as it was.
    """
    return delete_with(owner, conversation_id, kinds=sorted(OF_CONVERSATIONS))


def delete_conversation_and_episodes(owner: Owner, conversation_id: str) -> int:
    """As `delete_conversation`, with its episodes: summaries, and what agents stored."""
    return delete_with(owner, conversation_id, kinds=sorted({*OF_CONVERSATIONS, Kind.EPISODE}))


def delete_with(owner: Owner, conversation_id: str, *, kinds: Sequence[Kind]) -> int:
    with transaction.atomic():
        lock_lineages(owner)
        conversation = lock_found(owner, conversation_id)
        rows = Memory.objects.visible_to(owner, *kinds).in_conversation(conversation_id)
        in_order = rows.order_by("id").values_list("id", flat=True).iterator()
        deleted = sum(erase_memories(owner, ids) for ids in chunks(in_order))
        Participant.objects.of_conversation(owner.account_id, conversation_id).delete()
        close_gap(conversation)
        Conversation.objects.filter(id=conversation.id).delete()
        erase_invocations(owner, conversation)
        record_change(owner, "delete", conversation, result_count=deleted)
        erase_live_side(conversation)
    return deleted


def erase_invocations(owner: Owner, conversation: Conversation) -> None:
    """Erase the uses of tools in a conversation whose row is deleted already: who was recording one has ended by
    then, and the next conversation of this id has none of them."""
    rows = ToolInvocation.objects.filter(
        account_id=conversation.account_id, conversation_id=conversation.conversation_id
    )
    # in the order in which they are sealed anew
    locked = rows.order_by("id").select_for_update(of=("self",)).values_list("id", flat=True)
    for ids in chunks(locked.iterator(ROWS_A_TRANSACTION)):
        rows.filter(id__in=ids).delete()
        record(
            owner,
            operation="delete",
            memory_type="procedural",
            affected_ids=ids,
            conversation_id=conversation.conversation_id,
            session_id=conversation.conversation_id,
            result_count=len(ids),
        )


def close_gap(conversation: Conversation) -> None:
    """What continued it continues what it continued: nothing, where that would be itself."""
    rows = Conversation.objects.filter(account_id=conversation.account_id, continues=conversation.conversation_id)
    rows.filter(conversation_id=conversation.continues).update(continues="")
    rows.update(continues=conversation.continues)


def turns_of(owner: Owner, conversation: Conversation) -> Any:
    return Memory.objects.visible_to(owner, Kind.TURN).in_conversation(conversation.conversation_id)


def record_change(owner: Owner, operation: str, conversation: Conversation, **columns: Any) -> None:
    record(
        owner,
        operation=operation,
        memory_type="conversation",
        affected_ids=[conversation.id],
        conversation_id=conversation.conversation_id,
        session_id=conversation.conversation_id,
        **columns,
    )
