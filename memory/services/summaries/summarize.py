"""Making summaries of conversations: each covers everything up to a turn and includes the summary before it.

A worker claims a conversation, reads the next turns, has them digested outside transactions, and stores the summary in
one transaction. That first checks that the claim still holds and that the digested turns are unchanged: a killed worker
leaves the turns to be done again, and nothing is done twice. Turns that a model cannot be shown together take several
claims. A summary that is deleted or quarantined is made again.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from redis.exceptions import RedisError

from memory import conf
from memory.audit import record_audit
from memory.extraction.messages import tools_named
from memory.models import Conversation, EpisodicMemory, Link, Memory, Participant, Turn
from memory.owner import Owner
from memory.providers.digests import (
    Digest,
    Digester,
    TranscriptSegment,
    cut_message,
    how_many_fit,
    room_for_messages,
    summary_digester,
)
from memory.providers.language_models import Usage
from memory.providers.summaries import Message
from memory.services.account_walk import BatchReport
from memory.services.conversations.lifecycle import lock_visible_conversation, plan_summary, read_continuations
from memory.services.conversations.queue import (
    SUMMARIES,
    Claim,
    ClaimOutcome,
    ClaimResult,
    ClaimWorker,
    claim_conversations,
    held_rows,
    is_same_as_read,
    make_due_now,
    message_of_turn,
    read_turns_within,
    record_failure,
    reset_claim_columns,
    turns_between,
    unpark,
)
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.memories.correct import mark_rows
from memory.services.memories.links import SUPERSEDES
from memory.services.memories.trust import least_trust
from memory.services.operations.usage import keep_usage
from memory.services.summaries.store import (
    LOG,
    SOURCE,
    EpisodeDraft,
    covered_turns,
    current_summaries,
    current_summary,
    live_summaries,
    read_metadata_count,
    store_copies,
    stored_digest,
)
from memory.tiers.session_stores import session_store
from memory_project.tracing import traced

logger = logging.getLogger(__name__)

MAX_SUMMARIZED_LINEAGE = 200
"""Conversations, the nearest that one resumes, among which the latest summary is looked for."""
USE = "summary"
ACTOR = "job:summarize"
QUEUE_COLUMNS = ("summarize_after", "summarize_to", "summary_lease_until", "summary_attempts", "summary_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWork:
    """The turns before `stop` that the current summary does not cover, in parts that a digester can be shown.

    `previous` is the summary that the new one includes. `usages` grow while the parts are digested.
    """

    claim: Claim
    start: int
    stop: int
    turns: Sequence[Turn]
    parts: Sequence[Sequence[Message]]
    previous: EpisodicMemory | None
    usages: list[Usage] = field(default_factory=list)


def request_summary(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Queue a summary of all turns so far, the latest included, parked or not. Raises NotFound."""
    return queue_summary(owner, conversation_id, keep=0, now=now)


def request_session_summary(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Queue a summary of all turns but the last SUMMARY_KEEP_MESSAGES, which stay in the buffer. Raises NotFound.

    An ended conversation has no buffer: all of its turns are summarized.
    """
    return queue_summary(owner, conversation_id, keep=conf.SUMMARY_KEEP_MESSAGES, now=now)


def queue_summary(owner: Owner, conversation_id: str, *, keep: int, now: datetime) -> Conversation:
    """Queue a summary, parked or not, of all turns but the last `keep` of a live session, if any of them waits."""
    with transaction.atomic():
        conversation = lock_visible_conversation(owner, conversation_id)
        target = conversation.turn_count - (keep if conversation.ended_at is None else 0)
        if target > covered_turns(conversation, current_summary(conversation)):
            unpark(conversation, SUMMARIES)
            conversation.summarize_to = max(target, conversation.summarize_to or 0)
            conversation.summarize_after = now
            conversation.save(update_fields=[*QUEUE_COLUMNS, "summary_parked_at"])
    return conversation


def latest_summary(owner: Owner, conversation: Conversation) -> EpisodicMemory | None:
    """Return the summary of a conversation, or of the nearest one that it resumes. None if the owner takes no part.

    An agent that takes part may read the whole log, and so the summary whichever agent's copy it is.
    """
    lineage = [conversation.conversation_id]
    if conversation.continues:
        lineage = list(read_continuations(owner, conversation.conversation_id, most=MAX_SUMMARIZED_LINEAGE))
    # a resumed conversation of another user is left out
    visible = Conversation.objects.visible_to(owner)
    of_user = visible.filter(Q(id=conversation.id) | Q(user_id__in=("", conversation.user_id)))
    rows = current_summaries(owner.account_id, lineage, among=of_user)
    return min(rows, key=lambda row: lineage.index(row.conversation_id), default=None)


def summarize_due(
    *, now: datetime, limit: int, account_id: UUID | None = None, renew: Callable[[], None] = lambda: None
) -> BatchReport:
    """Summarize the next turns of each due conversation, at most `limit` of them, oldest first.

    Safe to be killed anywhere and to run in several workers. A failed conversation stays queued and delays no other
    one. `renew` is called now and then.
    """
    digester = summary_digester()
    worker: ClaimWorker[SummaryWork, Digest | None] = ClaimWorker(
        read=read_summary_work,
        compute=lambda work: digest_work(work, digester),
        store=partial(store_summary_result, now=now),
        now=now,
        renew=renew,
    )
    claims = claim_conversations(SUMMARIES, now=now, limit=limit, account_id=account_id, target_of=summary_target)
    return worker.process_claims(claims, threads=len(claims) if digester.is_remote else 1)


def summary_target(conversation: Conversation) -> int:
    """Return up to which turn the next summary goes: as requested, or all but the last ones."""
    target = conversation.summarize_to
    if target is None:
        target = conversation.turn_count - conf.SUMMARY_KEEP_MESSAGES
    return max(target, conversation.summarized_count)


def read_summary_work(claim: Claim) -> SummaryWork:
    """Read the current summary and the turns after it: as many as a model can be shown together, at least one."""
    previous = current_summary(claim.conversation)
    start = covered_turns(claim.conversation, previous)
    unread = turns_between(claim, start, claim.target)
    room = room_for_messages(stored_digest(previous), max_tokens=conf.SUMMARY_INPUT_TOKENS)
    turns = read_turns_within(unread, max_tokens=room)
    messages = [message_of_turn(turn) for turn in turns]
    fitting = how_many_fit(messages, max_tokens=room)
    # turns that are missing or quarantined after the last one count as done with it
    following = unread.filter(index__gt=turns[fitting - 1].index).first() if fitting else None
    return SummaryWork(
        claim=claim,
        start=start,
        stop=claim.target if following is None else following.index,
        turns=turns[:fitting],
        parts=cut_into_parts(messages[:fitting], room=room),
        previous=previous,
    )


def cut_into_parts(messages: Sequence[Message], *, room: int) -> list[Sequence[Message]]:
    """Return one part of all messages; a single message that does not fit is cut into several."""
    if len(messages) != 1:
        return [messages] if messages else []
    if len(list(cut_message(messages[0], max_tokens=room))) == 1:
        return [messages]
    # leaves room for the digest of the pieces before, whatever its size will be
    return [[piece] for piece in cut_message(messages[0], max_tokens=conf.SUMMARY_INPUT_TOKENS // 2)]


@traced("summarize", account=lambda work: work.claim.conversation.account_id)
def digest_work(work: SummaryWork, digester: Digester) -> Digest | None:
    """Digest part after part into the previous summary. Return None if there is nothing to digest, now or before.

    Uses no database and may run in a thread. Raises ProviderError; the work has the usages until then.
    """
    digest = stored_digest(work.previous)
    tools = tools_named([turn.payload for turn in work.turns])
    for part in work.parts:
        digest = digester.digest(
            TranscriptSegment(messages=part, previous=digest, tools=tools),
            max_tokens=conf.SUMMARY_TOKENS,
            meter=work.usages.append,
            deadline_seconds=conf.SUMMARY_TIMEOUT_SECONDS,
        )
    return digest


def store_summary_result(work: SummaryWork, digesting: "Future[Digest | None]", *, now: datetime) -> ClaimResult:
    """Record what a digest cost and store the summary made of it."""
    try:
        keep_usage(work.claim.conversation.account_id, use=USE, usages=work.usages, now=now)
        digest = digesting.result()
        return store_summary(work, digest, embedded=embed_texts([digest.summary] if digest else []), now=now)
    except Exception as err:  # noqa: BLE001 - the job's outermost loop
        return record_failure(work.claim, err, now=now)


def store_summary(work: SummaryWork, digest: Digest | None, *, embedded: EmbeddedTexts, now: datetime) -> ClaimResult:
    """Store a summary if the claim still holds and what was digested is unchanged; else make it due again."""
    with transaction.atomic():
        conversation = held_rows(work.claim).select_for_update(no_key=True).first()
        if conversation is None:
            return ClaimResult(outcome=ClaimOutcome.OUTDATED)
        # what the new one supersedes, so that nobody corrects it meanwhile
        this = Conversation.objects.filter(account_id=conversation.account_id, id=conversation.id)
        live = live_summaries(conversation.account_id, [conversation.conversation_id], among=this)
        # in the order in which memories are always locked, or two transactions could deadlock
        rows = Memory.objects.filter(account_id=conversation.account_id, id__in=live.values("id"))
        in_order = rows.order_by("id").only("id", "agent_id")
        before = list(in_order.select_for_update(no_key=True))
        if not is_work_current(work):
            make_due_now(work.claim, now=now)
            return ClaimResult(outcome=ClaimOutcome.OUTDATED)
        figures: dict[str, int] = {}
        if digest is not None and digest.summary and work.turns:
            figures = replace_summaries(conversation, work, digest, before, embedded=embedded, now=now)
        figures["turns"] = max(work.stop - conversation.summarized_count, 0)
        advance_summary(conversation, work.claim, stop=work.stop, now=now)
    try:
        session_store().trim(conversation)
    except RedisError as err:
        # the buffer only stays longer than needed: the log has everything
        logger.warning("session of conversation %s not trimmed: %s", conversation.id, type(err).__name__)
    return ClaimResult(outcome=ClaimOutcome.STORED, figures=figures)


def is_work_current(work: SummaryWork) -> bool:
    """Return whether nothing that was digested has been corrected, deleted or quarantined since."""
    previous, summary = work.previous, current_summary(work.claim.conversation)
    if (previous and (previous.id, previous.version)) != (summary and (summary.id, summary.version)):
        return False
    return is_same_as_read(turns_between(work.claim, work.start, work.stop), work.turns)


def replace_summaries(
    conversation: Conversation,
    work: SummaryWork,
    digest: Digest,
    before: Sequence[Memory],
    *,
    embedded: EmbeddedTexts,
    now: datetime,
) -> dict[str, int]:
    """Store an episode for each participant and archive the former ones, linked to the new. Return figures."""
    account = Owner(account_id=conversation.account_id, channel=conversation.channel, actor=ACTOR)
    participants = Participant.objects.of_conversation(conversation.account_id, conversation.conversation_id)
    agents = sorted(participants.values_list("agent_id", flat=True)) or [""]
    former = work.previous.metadata if work.previous else {}
    draft = EpisodeDraft(
        conversation_id=conversation.conversation_id,
        summary=digest.summary,
        key_decisions=digest.key_decisions,
        entities_mentioned=digest.entities_mentioned,
        tools_called=digest.tools_called,
        event_time=work.turns[-1].event_time,
        source=SOURCE,
        trust=least_trust(each.trust for each in (*work.turns, *([work.previous] if work.previous else []))),
        metadata={
            LOG: str(conversation.id),
            "summarizer": digest.source,
            "first_index": read_metadata_count(former, "first_index") if former else work.turns[0].index,
            "last_index": work.turns[-1].index,
            "turns": read_metadata_count(former, "turns") + len(work.turns),
        },
    )
    owner = replace(account, user_id=conversation.user_id)
    new = store_copies(owner, draft, agents=agents, embedded=embedded, now=now)
    supersede_summaries(account, before, new, now=now)
    return {"episodes_stored": len(new), "episodes_archived": len(before), "links_made": len(before)}


def supersede_summaries(
    account: Owner, before: Sequence[Memory], new: Sequence[EpisodicMemory], *, now: datetime
) -> None:
    """Archive the former summaries, each linked from its agent's new one or, if there is none, from the first."""
    if not before:
        return
    new_ids = {row.agent_id: row.id for row in new}
    ids = [row.id for row in before]
    mark_rows(account, Memory.objects.filter(account_id=account.account_id, id__in=ids), mark="archive", now=now)
    Link.objects.bulk_create(
        [
            Link(
                account_id=account.account_id,
                source_id=new_ids.get(old.agent_id, new[0].id),
                target=old,
                type=SUPERSEDES,
            )
            for old in before
        ]
    )
    record_audit(account, operation="archive", memory_type="episodic", affected_ids=ids, result_count=len(ids))


def advance_summary(conversation: Conversation, claim: Claim, *, stop: int, now: datetime) -> None:
    """Count the turns before `stop` as summarized. What the claim left, or was requested meanwhile, is due now."""
    # a lost summary is made again from the first turn
    conversation.summarized_count = max(conversation.summarized_count, stop)
    latest = conversation.turn_count - conf.SUMMARY_KEEP_MESSAGES
    conversation.buffer_from = max(conversation.buffer_from, min(stop, latest))
    reset_claim_columns(conversation, SUMMARIES)
    target = max(claim.target, conversation.summarize_to or 0)
    if target > stop:
        conversation.summarize_to, conversation.summarize_after = target, now
    else:
        conversation.summarize_to = None
        plan_summary(conversation, now=now)
    conversation.save(update_fields=[*QUEUE_COLUMNS, "summarized_count", "buffer_from"])
