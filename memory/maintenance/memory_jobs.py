"""Jobs of memories: what becomes of them in time. They fade, repeat one another, go stale, or are promoted."""

import logging
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, time, timedelta
from functools import partial
from uuid import UUID

from django.db.models import Q
from django.utils.module_loading import import_string

from memory.errors import MemoryServiceError
from memory.kinds import Kind, all_specs
from memory.kinds.base import Globalizing, KindSpec
from memory.maintenance.base import Batch, BatchReport, RunBatch, job
from memory.maintenance.stages import run_stages
from memory.models import AgentShortTermMemory, JobRun, Memory
from memory.owner import Owner
from memory.services.account_walk import next_account_with
from memory.services.contexts.rot import EntryCursor, archive_stale_entries, find_stale_entries
from memory.services.duplicates import deduplicate as duplicates
from memory.services.memories.decay import (
    CONFIDENCE,
    FIRST_ID,
    SALIENCE,
    DecayBatch,
    DecayedColumn,
    decay_rows,
    preview_decay,
)
from memory.services.recall.term_statistics import find_changed_account, fold_terms
from memory.services.short_term import promote_in_batches

logger = logging.getLogger(__name__)

PROMOTION_ACTOR = "job:promote_short_term"

TRANSACTION_MARGIN = timedelta(hours=1)
"""Longest duration of a transaction that stores vectors: they carry the time of its beginning."""


def fade_kind(kind: str, fading: DecayedColumn, *, now: datetime, batch: Batch) -> BatchReport:
    """Fade the next rows of this kind, in the account that the cursor names or in the next one."""
    account_id, after = account_and_cursor(kind, batch)
    if account_id is None:
        return BatchReport(examined=0, changed=0)
    rows = DecayBatch(account_id=account_id, kind=kind, after=after, limit=batch.size)
    done = (preview_decay if batch.dry_run else decay_rows)(fading, rows, now=now)
    if done.last is not None:
        cursor = f"{account_id}/{done.last}"
    else:
        cursor = str(account_id) if batch.account_id is None else ""
    return BatchReport(examined=done.examined, changed=done.changed, cursor=cursor)


def account_and_cursor(kind: str, batch: Batch) -> tuple[UUID | None, UUID]:
    account, _, after = batch.cursor.partition("/")
    if after:
        return UUID(account), UUID(after)
    if batch.account_id is not None:
        return batch.account_id, FIRST_ID
    rows = Memory.objects.filter(kind=kind)
    return next_account_with(rows, after=UUID(account) if account else None), FIRST_ID


def decay_stages() -> Mapping[str, RunBatch]:
    """Return the stages by name: salience of each kind that decays, then confidence of facts."""
    names = [spec.name for spec in all_specs() if spec.is_decayed]
    of_kinds = {f"salience_{name}": partial(fade_kind, name, SALIENCE) for name in names}
    return of_kinds | {"confidence": partial(fade_kind, Kind.FACT, CONFIDENCE)}


@job(every=time(hour=3, minute=15), batch_size=100_000)
def decay(*, now: datetime, batch: Batch) -> BatchReport:
    """Lower the salience of memories unused for a day, and inferred confidence by the week.

    A stage a kind, then the confidences (X14); a stage goes through the accounts by id, and each batch is one statement
    over the next rows of one of them. The cursor says which stage, which account, and behind which row, or nothing
    where the account is done.
    """
    return run_stages(decay_stages(), now=now, batch=batch)


@job(every=time(hour=4), batch_size=200)
def deduplicate(*, now: datetime, batch: Batch) -> BatchReport:
    """Merge facts, entries, learnings and strategies that repeat one another.

    Looks at those whose vectors were made since the last complete run over them began; that was looked through by then.
    """
    merge = duplicates.preview_duplicates if batch.dry_run else duplicates.deduplicate
    return merge(batch, since=looked_through_since(batch.account_id), now=now)


def looked_through_since(account_id: UUID | None) -> datetime | None:
    """Return since when the account has been searched for duplicates; None if never.

    By the database's clock, as vectors are dated, whatever `now` runs use.
    """
    runs = JobRun.objects.filter(job="deduplicate", dry_run=False, started_at__isnull=False)
    of_these = runs.filter(status=JobRun.Status.COMPLETED).filter(
        Q(account=None) | Q(account_id=account_id) if account_id else Q(account=None)
    )
    began = of_these.order_by("-started_at").values_list("started_at", flat=True).first()
    return None if began is None else began - TRANSACTION_MARGIN


def globalize_kind(spec: KindSpec, globalizing: Globalizing, *, now: datetime, batch: Batch) -> BatchReport:
    page = batch.page_of(import_string(globalizing.find)(now=now))
    if batch.dry_run:
        return BatchReport(examined=len(page.rows), changed=len(page.rows), cursor=page.cursor)
    figures: Counter[str] = import_string(globalizing.copy)(page.rows, now=now)
    failed = figures.pop("failed", 0)
    changed = sum(figures[f"{spec.plural}_{done}"] for done in ("promoted", "known"))
    return BatchReport(examined=len(page.rows), changed=changed, failed=failed, cursor=page.cursor, figures=figures)


@job(every=timedelta(hours=1), batch_size=100, aliases=("promote",))
def globalize_facts(*, now: datetime, batch: Batch) -> BatchReport:
    """Copy prominent facts of projects to `_global`: believed, read and learned often enough.

    The next of them by account and id (the documented promote_prominent_facts), then those of other kinds that declare
    `globalizing`. A killed run leaves whole promotions behind, and what was promoted is not found again.
    """
    stages = {spec.plural: partial(globalize_kind, spec, spec.globalizing) for spec in all_specs() if spec.globalizing}
    return run_stages(stages, now=now, batch=batch)


@job(every=time(hour=4), batch_size=1_000)
def context_rot(*, now: datetime, batch: Batch) -> BatchReport:
    """Archive stale context entries: long unread, unimportant, or superseded.

    The next entries, by account, context and id (P11, `scoring.staleness`). The cursor is the place of the last one
    looked at.
    """
    after = EntryCursor(*map(UUID, batch.cursor.split("/"))) if batch.cursor else None
    looked = find_stale_entries(after=after, limit=batch.size, account_id=batch.account_id, now=now)
    archived = len(looked.stale) if batch.dry_run else archive_stale_entries(looked.stale, now=now)
    return BatchReport(
        examined=looked.examined,
        changed=archived,
        cursor="/".join(map(str, looked.last)) if looked.last else "",
        figures={"entries_archived": archived} if archived else {},
    )


@job(every=time(hour=4), batch_size=100, aliases=("graduate",))
def promote_short_term(*, now: datetime, batch: Batch) -> BatchReport:
    """Promote expired short-term entries that were read often into their agents' long-term memory.

    The next of them by account and id, those of a session together. What an archived context refuses counts as failed.
    """
    rows = AgentShortTermMemory.objects.to_promote().filter(expires_at__lte=now)
    page = batch.page_of(rows)
    if batch.dry_run:
        return BatchReport(examined=len(page.rows), changed=len(page.rows), cursor=page.cursor)
    sessions: dict[tuple[Owner, str], list[UUID]] = {}
    for entry in page.rows:
        owner = Owner(account_id=entry.account_id, agent_id=entry.agent_id, actor=PROMOTION_ACTOR)
        sessions.setdefault((owner, entry.session_id), []).append(entry.id)
    promoted = failed = 0
    for (owner, _), ids in sessions.items():
        waiting = rows.filter(account_id=owner.account_id, id__in=ids)
        try:
            for keys in promote_in_batches(owner, waiting, now=now):
                promoted += len(keys)
        except MemoryServiceError as err:
            # no agent, no session: their ids are texts of the client's
            logger.warning("short-term entries of account %s were not promoted: %s", owner.account_id, err.code)
            failed += waiting.count()
    return BatchReport(examined=len(page.rows), changed=promoted, failed=failed, cursor=page.cursor)


# a question reads all rows of its words: at 100 writes a second 12,000 of the commonest, in a millisecond
@job(every=timedelta(minutes=2), batch_size=5_000)
def recall_statistics(*, now: datetime, batch: Batch) -> BatchReport:
    """Fold the word counts that writes append, which recall weighs words by.

    Fold the next terms of one account that changed: the rows of a term become one row. A cursor is an account, a colon,
    and the last term's row.
    """
    named, _, after = batch.cursor.partition(":")
    account_id = UUID(named) if named else find_changed_account(after=None, only=batch.account_id)
    if account_id is None:
        return BatchReport(examined=0, changed=0)
    folded = fold_terms(account_id, after=int(after or 0), size=batch.size, dry_run=batch.dry_run)
    if folded.mark:
        cursor = f"{account_id}:{folded.mark}"
    else:
        following = find_changed_account(after=account_id, only=batch.account_id)
        cursor = f"{following}:" if following else ""
    return BatchReport(examined=folded.examined, changed=folded.fewer, cursor=cursor)
