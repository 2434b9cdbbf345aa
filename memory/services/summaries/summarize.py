"""Summaries of conversations: each stands for everything up to a turn, and takes in the one before it.

A worker claims a conversation, reads a stretch of turns, has it digested outside transactions, and stores the summary
in one transaction that first checks that the claim still holds, and that what was digested still says the same: a
killed worker leaves the stretch to be done again, and no stretch is done twice. What a model cannot be shown at once
is done stretch by stretch; what covered a stretch and is gone since, or quarantined, is made again.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from redis.exceptions import RedisError

from memory import conf
from memory.audit import record
from memory.models import Conversation, EpisodicMemory, Link, Memory, Participant
from memory.owner import Owner
from memory.providers.digests import Digest, summary_digester
from memory.services.conversations.lifecycle import lineage_of, lock_found, plan_summary
from memory.services.conversations.queue import (
    SUMMARIES,
    Claimed,
    Outcome,
    Settled,
    Steps,
    WorkedBatch,
    claim_rows,
    give_up,
    held,
    is_same_as_read,
    put_back,
    settle_row,
    turns_between,
    unpark,
)
from memory.services.embedding.embed import Embedded, embed_texts
from memory.services.memories.correct import mark_all
from memory.services.memories.links import SUPERSEDES
from memory.services.operations.usage import record_usage
from memory.services.summaries.batches import Work, digest_work, read_work
from memory.services.summaries.episodes import (
    LOG,
    SOURCE,
    covered_turns,
    current_summaries,
    current_summary,
    live_summaries,
    number_in,
    store_copies,
)
from memory.services.summaries.store import EpisodeDraft
from memory.tiers.session_stores import session_store

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


logger = logging.getLogger(__name__)

USE = "summary"
ACTOR = "job:summarize"

ASKED = (
    *("summarize_to", "summarize_after", "summary_parked_at"),
    *("summary_lease_until", "summary_attempts", "summary_error"),
)

Digesting = Future[Digest | None]


def request_summary(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Queue a summary of everything that was said so far, the latest messages too, parked or not. Raises NotFound."""
    with transaction.atomic():
        conversation = lock_found(owner, conversation_id)
        if conversation.turn_count > covered_turns(conversation, current_summary(conversation)):
            unpark(conversation, SUMMARIES)
            conversation.summarize_to = conversation.turn_count
            conversation.summarize_after = now
            conversation.save(update_fields=ASKED)
    return conversation


def latest_summary(owner: Owner, conversation: Conversation) -> EpisodicMemory | None:
    """The conversation's summary, else that of the nearest one which it resumes; None where the owner takes no part.

    Who takes part may read the whole log, and so the summary whichever agent's copy it is. A conversation resumed is
    of the same user, or of none.
    """
    lineage = [conversation.conversation_id]
    if conversation.continues:
        lineage = lineage_of(owner, conversation.conversation_id)
    readable = Conversation.objects.visible_to(owner)
    of_user = readable.filter(Q(id=conversation.id) | Q(user_id__in=("", conversation.user_id)))
    rows = current_summaries(owner.account_id, lineage, among=of_user)
    return min(rows, key=lambda row: lineage.index(row.conversation_id), default=None)


def summarize_due(
    *, now: datetime, limit: int, account_id: UUID | None = None, renew: Callable[[], None] = lambda: None
) -> WorkedBatch:
    """Summarize a stretch of each conversation that is due, at most `limit` of them, oldest first.

    Safe to be killed anywhere, and to run in several workers. What fails stays queued, and keeps nothing else back.
    `renew` is called now and then.
    """
    digester = summary_digester()
    steps: Steps[Work, Digest | None] = Steps(
        read=read_work,
        think=lambda work: digest_work(work, digester),
        settle=lambda work, digesting: settle(work, digesting, now=now),
        give_up=lambda claim, err: give_up(claim, err, now=now),
        renew=renew,
    )
    claims = claim_due(now=now, limit=limit, account_id=account_id)
    return WorkedBatch.of(list(steps.work_off(claims, threads=len(claims) if digester.is_remote else 1)))


def settle(work: Work, digesting: Digesting, *, now: datetime) -> Settled:
    """Keep what a digested work cost, and store what came of it."""
    try:
        keep_usage(work, now=now)
        digest = digesting.result()
        return store_summary(work, digest, embedded=embed_texts([digest.summary] if digest else []), now=now)
    except Exception as err:  # noqa: BLE001 - the outermost loop of the works
        return give_up(work.claim, err, now=now)


def keep_usage(work: Work, *, now: datetime) -> None:
    """What the model cost, whatever becomes of the summary."""
    try:
        with transaction.atomic():
            record_usage(work.claim.conversation.account_id, use=USE, usages=work.usages, now=now)
    except IntegrityError:
        logger.warning("usage for conversation %s not kept: its account is gone", work.claim.conversation.id)


def store_summary(work: Work, digest: Digest | None, *, embedded: Embedded, now: datetime) -> Settled:
    """Store what was digested, if the claim still holds and all of it is still so; else it is done anew."""
    with transaction.atomic():
        conversation = held(work.claim).select_for_update(no_key=True).first()
        if conversation is None:
            return Settled(outcome=Outcome.OUTDATED)
        before = lock_summaries(conversation)
        if not is_current(work):
            put_back(work.claim, now=now)
            return Settled(outcome=Outcome.OUTDATED)
        figures: dict[str, int] = {}
        if digest is not None and digest.summary and work.turns:
            figures = replace_summaries(conversation, work, digest, before, embedded=embedded, now=now)
        figures["turns"] = max(work.stop - conversation.summarized_count, 0)
        advance(conversation, work.claim, stop=work.stop, now=now)
    trim_session(conversation)
    return Settled(outcome=Outcome.STORED, figures=figures)


def lock_summaries(conversation: Conversation) -> list[Memory]:
    """Those that the new one will supersede; nobody corrects one of them until it has."""
    this = Conversation.objects.filter(id=conversation.id)
    live = live_summaries(conversation.account_id, [conversation.conversation_id], among=this)
    # locked in the order of everybody who locks memories, or two of them would wait for each other
    in_order = Memory.objects.filter(id__in=live.values("id")).order_by("id").only("id", "agent_id")
    return list(in_order.select_for_update(no_key=True))


def is_current(work: Work) -> bool:
    """Whether all that was digested is still there as it was: it may have been corrected, deleted, or quarantined."""
    previous, summary = work.previous, current_summary(work.claim.conversation)
    if (previous and (previous.id, previous.version)) != (summary and (summary.id, summary.version)):
        return False
    return is_same_as_read(turns_between(work.claim, work.start, work.stop), work.turns)


def replace_summaries(
    conversation: Conversation,
    work: Work,
    digest: Digest,
    before: Sequence[Memory],
    *,
    embedded: Embedded,
    now: datetime,
) -> dict[str, int]:
    """An episode for each agent that takes part; those before are archived, and linked to the new ones. Figures."""
    account = Owner(account_id=conversation.account_id, channel=conversation.channel, actor=ACTOR)
    parts = Participant.objects.of_conversation(conversation.account_id, conversation.conversation_id)
    agents = sorted(parts.values_list("agent_id", flat=True)) or [""]
    owner = replace(account, user_id=conversation.user_id)
    new = store_copies(owner, draft_of(conversation, work, digest), agents=agents, embedded=embedded, now=now)
    supersede(account, before, new, now=now)
    return {"episodes_stored": len(new), "episodes_archived": len(before), "links_made": len(before)}


def draft_of(conversation: Conversation, work: Work, digest: Digest) -> EpisodeDraft:
    before = work.previous.metadata if work.previous else {}
    return EpisodeDraft(
        conversation_id=conversation.conversation_id,
        summary=digest.summary,
        key_decisions=digest.key_decisions,
        entities_mentioned=digest.entities_mentioned,
        tools_called=digest.tools_called,
        event_time=work.turns[-1].event_time,
        source=SOURCE,
        metadata={
            LOG: str(conversation.id),
            "summarizer": digest.source,
            "first_index": number_in(before, "first_index") if before else work.turns[0].index,
            "last_index": work.turns[-1].index,
            "turns": number_in(before, "turns") + len(work.turns),
        },
    )


def supersede(account: Owner, before: Sequence[Memory], new: Sequence[EpisodicMemory], *, now: datetime) -> None:
    """Archive the summaries before; each is linked from its agent's new one, or the first where it has none."""
    if not before:
        return
    by_agent = {row.agent_id: row for row in new}
    ids = [row.id for row in before]
    mark_all(Memory.objects.filter(id__in=ids), mark="archive", now=now)
    Link.objects.bulk_create(
        [
            Link(
                account_id=account.account_id,
                source=by_agent.get(old.agent_id, new[0]),
                target=old,
                type=SUPERSEDES,
            )
            for old in before
        ]
    )
    record(account, operation="archive", memory_type="episodic", affected_ids=ids, result_count=len(ids))


def trim_session(conversation: Conversation) -> None:
    """The log has everything: a buffer that cannot be trimmed is only longer than it need be."""
    try:
        session_store().trim(conversation)
    except RedisError as err:
        logger.warning("session of conversation %s not trimmed: %s", conversation.id, type(err).__name__)
