"""Extraction (X10): what conversations say about the world becomes knowledge, in the background.

A worker claims a conversation, reads the next turns of one user and channel, has them looked through outside
transactions, and stores what was found in one transaction, which first checks that the claim still holds and that the
turns still say the same, and in the end counts them as looked through: a killed worker leaves them to be done again,
and nothing is done twice. Without EXTRACTION_MODEL rules find it (`extraction.rules`); a model that fails leaves the
turns queued, and rules never take its place.

Every item that was found is accounted for (`extraction_tallies`). Where one fails, the others are stored, and the turns
are looked through again later, which confirms what is known by then; what keeps failing is parked
(`conversation_queue`).
"""

import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction

from memory.audit import record
from memory.extraction.extractors import knowledge_extractor
from memory.extraction.knowledge import Extraction
from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations.lifecycle import lock_found
from memory.services.conversations.queue import (
    EXTRACTION,
    Outcome,
    Settled,
    Steps,
    WorkedBatch,
    claim_rows,
    give_up,
    held,
    is_same_as_read,
    push_back_or_park,
    put_back,
    settle_row,
    turns_between,
    unpark,
)
from memory.services.embedding.embed import Embedded, embed_texts
from memory.services.extraction.batches import ExtractionWork, read_work, think
from memory.services.extraction.knowledge import store_extraction, texts_of
from memory.services.extraction.material import Material, Tally, unstored
from memory.services.operations.usage import record_usage

logger = logging.getLogger(__name__)

USE = "extraction"
ADVANCED = (
    *("extracted_count", "extract_after", "consolidated_at"),
    *("extract_lease_until", "extract_attempts", "extract_error"),
)
ASKED = ("extract_after", "extract_parked_at", "extract_lease_until", "extract_attempts", "extract_error")


def request_extraction(owner: Owner, conversation_id: str, *, now: datetime) -> Conversation:
    """Have the turns that nobody looked through yet looked through now, parked ones too. Raises NotFound."""
    with transaction.atomic():
        conversation = lock_found(owner, conversation_id)
        if conversation.turn_count > conversation.extracted_count:
            unpark(conversation, EXTRACTION)
            conversation.extract_after = now
            conversation.save(update_fields=ASKED)
    return conversation


def extract_due(
    *, now: datetime, limit: int, account_id: UUID | None = None, renew: Callable[[], None] = lambda: None
) -> WorkedBatch:
    """Look through the next turns of each conversation that is due, at most `limit` of them, oldest first.

    Safe to be killed anywhere, and to run in several workers. What fails stays queued, and keeps nothing else back.
    `renew` is called now and then.
    """
    extractor = knowledge_extractor()
    steps: Steps[ExtractionWork, list[Extraction]] = Steps(
        read=read_work,
        think=lambda work: think(work, extractor),
        settle=lambda work, thinking: settle(work, thinking, now=now),
        give_up=lambda claim, err: give_up(claim, err, now=now),
        renew=renew,
    )
    claims = claim_rows(EXTRACTION, now=now, limit=limit, account_id=account_id, target_of=target_of)
    return WorkedBatch.of(list(steps.work_off(claims, threads=len(claims) if extractor.is_remote else 1)))


def target_of(conversation: Conversation) -> int:
    return conversation.turn_count


def settle(work: ExtractionWork, thinking: "Future[list[Extraction]]", *, now: datetime) -> Settled:
    """Keep what it cost, and store what came of it."""
    extractions: list[Extraction] = []
    try:
        keep_usage(work, now=now)
        extractions = thinking.result()
        embedded = embed_texts([text for extraction in extractions for text in texts_of(extraction)])
        return store_work(work, extractions, embedded=embedded, now=now)
    except Exception as err:  # noqa: BLE001 - the outermost loop of the works
        settled = give_up(work.claim, err, now=now)
        return replace(settled, figures=unstored(extractions) + Counter(settled.figures))


def keep_usage(work: ExtractionWork, *, now: datetime) -> None:
    """What the model cost, whatever becomes of what it found."""
    account_id = work.claim.conversation.account_id
    try:
        with transaction.atomic():
            record_usage(account_id, use=USE, usages=work.usages, now=now)
    except IntegrityError:
        logger.warning("usage for conversation %s not kept: its account is gone", work.claim.conversation.id)


def store_work(work: ExtractionWork, extractions: list[Extraction], *, embedded: Embedded, now: datetime) -> Settled:
    """Store what was found, if the claim still holds and the turns are still so; else they are looked through anew.

    So they are where an item failed: the others are kept all the same.
    """
    with transaction.atomic():
        conversation = held(work.claim).select_for_update(no_key=True).first()
        if conversation is None:
            return Settled(outcome=Outcome.OUTDATED)
        if not is_same_as_read(turns_between(work.claim, work.start, work.stop), work.turns):
            put_back(work.claim, now=now)
            return Settled(outcome=Outcome.OUTDATED)
        tally = Tally()
        for extraction in extractions:
            tally.add(store_extraction(material_of(work, extraction, embedded=embedded, now=now)))
        if not tally.failed:
            tally.counts["turns"] = work.stop - work.start
        record_extraction(work, tally)
        if tally.failed:
            parked = push_back_or_park(work.claim, error=tally.told_error(), now=now)
            return Settled(outcome=Outcome.FAILED, figures=tally.counts + Counter(parked))
        advance(conversation, work, now=now)
    return Settled(outcome=Outcome.STORED, figures=tally.counts)


def material_of(work: ExtractionWork, extraction: Extraction, *, embedded: Embedded, now: datetime) -> Material:
    return Material(
        owner=work.owner,
        turns={turn.index: turn for turn in work.turns},
        extraction=extraction,
        known=work.known,
        embedded=embedded,
        now=now,
    )


def advance(conversation: Conversation, work: ExtractionWork, *, now: datetime) -> None:
    """The turns before `stop` are looked through; what is left, or was said meanwhile, is due now."""
    conversation.extracted_count = max(conversation.extracted_count, work.stop)
    settle_row(conversation, EXTRACTION)
    is_done = conversation.extracted_count >= conversation.turn_count
    conversation.extract_after = None if is_done else now
    conversation.consolidated_at = now if is_done else None
    conversation.save(update_fields=ADVANCED)


def record_extraction(work: ExtractionWork, tally: Tally) -> None:
    """With the figures of the run, as far as they are of this conversation."""
    conversation_id = work.claim.conversation.conversation_id
    record(
        work.owner,
        operation="extract",
        memory_type="semantic",
        conversation_id=conversation_id,
        session_id=conversation_id,
        result_count=tally.counts["learnt"],
        success=not tally.failed,
        error_message=tally.told_error() if tally.failed else "",
        metadata=dict(tally.counts),
    )
