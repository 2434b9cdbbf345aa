"""Jobs of embeddings: pending memories, memories without a vector, changes of the model, and indexes of accounts."""

import logging
from datetime import datetime, time, timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import OuterRef, Q, Subquery

from memory import conf
from memory.errors import Conflict
from memory.maintenance.base import Batch, BatchReport, job
from memory.models import Memory, Vector
from memory.services.account_walk import group_by_account
from memory.services.claims import count_due_rows
from memory.services.embedding.account_indexes import carry_out, find_index_changes
from memory.services.embedding.passages import add_passages, long_memories, without_passages
from memory.services.embedding.queue import embed_pending, release_lost_claims
from memory.services.embedding.reembed import continue_change, count_change
from memory.services.embedding.serving import serving_model
from memory.services.work_episodes.propagate import WORK_KINDS

logger = logging.getLogger(__name__)

IS_STOOD_FOR = Q(kind__in=sorted(WORK_KINDS), archived=True)
"""Archived levels of structured turns: another level stands for them, and no search finds them again."""


@job(every=timedelta(seconds=30), batch_size=conf.EMBED_BATCH_ROWS)
def embed(*, now: datetime, batch: Batch) -> BatchReport:
    """Compute and store the vectors of pending memories.

    They were written while the embedder was down, slow, or received too many at once. Does one batch of due rows,
    continues while more are due than fit into one, and stops when the embedder is down. The rows are their own queue,
    so the cursor only counts batches (it moves even when all rows of a batch disappeared); after a colon it holds how
    many texts were embedded in one request at last.
    """
    if batch.dry_run:
        waiting = count_due_rows(Memory.objects.filter(embed_after__lte=now), account_id=batch.account_id)
        return BatchReport(examined=waiting, changed=waiting)
    count, _, room = batch.cursor.partition(":")
    if batch.is_resumed:
        release_lost_claims(now=now, limit=batch.size, account_id=batch.account_id)
    done = embed_pending(
        now=now,
        limit=batch.size,
        account_id=batch.account_id,
        portion_tokens=int(room) if room else None,
        renew=batch.renew,
    )
    more = not done.stopped and (done.has_more or done.left > 0)
    return BatchReport(
        examined=done.claimed - done.left,
        changed=done.stored,
        failed=done.failed,
        cursor=f"{int(count or 0) + 1}:{done.portion_tokens}" if more else "",
        figures={"vectors_stored": done.stored},
    )


@job(every=time(hour=3, minute=30), batch_size=5_000)
def queue_unembedded(*, now: datetime, batch: Batch) -> BatchReport:
    """Queue memories without a vector of the serving embedding model.

    Look at the next memories by account and id; those that lack the vector, and are not queued yet, become due. Until
    the `embed` job has reached them their words find them, and searches say so.
    """
    page = batch.page_of(Memory.objects.only("account"))
    vectors = Vector.objects.filter(account_id=OuterRef("account_id"), memory_id=OuterRef("id"))
    # not as Exists, which becomes a join of all partitions: this looks into that of the memory's account
    vector = Subquery(vectors.whole().filter(model=serving_model().name).values("id")[:1])
    lacking = Memory.objects.alias(vector=vector).filter(vector=None, embed_after=None).exclude(IS_STOOD_FOR)
    due: dict[str, Any] = {"embed_after": now, "embed_attempts": 0, "embed_error": ""}
    changed = 0
    for account_id, of_account in group_by_account(page.rows).items():
        rows = lacking.filter(account_id=account_id, id__in=[row.id for row in of_account])
        changed += rows.count() if batch.dry_run else rows.update(**due)
    return BatchReport(examined=len(page.rows), changed=changed, cursor=page.cursor)


@job(every=time(hour=4, minute=15), batch_size=100)
def embed_passages(*, now: datetime, batch: Batch) -> BatchReport:
    """Embed the passages of long memories that were stored by versions without passages.

    Look at the next long memories by account and id, and stop when the embedder is down. What failed is tried again by
    the next run. Memories whose vector the client sent stay without passages.
    """
    page = batch.page_of(long_memories().only("account"))
    changed = failed = 0
    for of_account in group_by_account(page.rows).values():
        lacking = without_passages(of_account).only("account", "text", "content_hash").order_by("id")
        if batch.dry_run:
            changed += lacking.count()
            continue
        added = add_passages(list(lacking), renew=batch.renew)
        changed, failed = changed + added.changed, failed + added.failed
        if added.stopped:
            return BatchReport(examined=len(page.rows), changed=changed, failed=failed)
    return BatchReport(examined=len(page.rows), changed=changed, failed=failed, cursor=page.cursor)


@job(every=timedelta(minutes=1), batch_size=200, of_installation=True)
def reembed(*, now: datetime, batch: Batch) -> BatchReport:
    """Continue a change of the embedding model, or the removal of the former one's vectors.

    `manage.py reembed` asks for it. The change concerns all accounts, so a run for one account does nothing. How far it
    is stands in the row of the change; the cursor only counts batches.
    """
    if batch.dry_run or batch.account_id is not None:
        return BatchReport(examined=0 if batch.account_id is not None else count_change().examined, changed=0)
    done = continue_change(now=now, size=batch.size, renew=batch.renew)
    cursor = "" if done.is_over else str(int(batch.cursor or 0) + 1)
    return BatchReport(examined=done.examined, changed=done.changed, failed=done.failed, cursor=cursor)


@job(every=timedelta(hours=1), batch_size=1)
def vector_indexes(*, now: datetime, batch: Batch) -> BatchReport:
    """Build a vector index for each large account, and drop those no longer needed.

    All of them in one batch, since finding them reads all vectors' owners; one that cannot be built keeps no other.

    Killed in the midst, what was made is not found again. Leaves the rest for the next run while somebody else builds
    one.
    """
    changes = find_index_changes(batch.account_id)
    if batch.dry_run:
        return BatchReport(examined=len(changes), changed=len(changes))
    changed = failed = 0
    for change in changes:
        batch.renew()
        try:
            carry_out(change, renew=batch.renew)
            changed += 1
        except Conflict as err:
            logger.info("vector indexes wait: %s", err)
            break
        except DatabaseError as err:
            logger.warning("vector index %s was not made: %s", change.name, type(err).__name__)
            failed += 1
    return BatchReport(examined=len(changes), changed=changed, failed=failed)
