"""The steps of a change of the embedding model, one batch at a time, safe to kill anywhere.

Walk through all memories of all accounts; build the indexes of large accounts; embed what was written meanwhile;
switch. Afterwards the vectors of the former model stay, so that the way back is short, until they are dropped. Where a
step goes on is in the row of `embedding_state`, so that whoever continues (the job, the command) shares the progress.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Now

from memory.errors import Conflict, ProviderError
from memory.models import Memory, ReembedEntry, ServingModelState, Vector
from memory.models.embedding_state import STATE_ID
from memory.services.account_walk import group_by_account, read_account_page
from memory.services.claims import backoff, has_due_rows, take_shares
from memory.services.embedding.account_indexes import carry_out, find_index_changes
from memory.services.embedding.change import (
    PROBE_SECONDS,
    STALE_FOR,
    Phase,
    first_entries,
    hopeful_entries,
    read_state,
    record_serving_model,
    release_refused,
    switch_models,
)
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.embedding.queue import (
    MAX_REFUSALS,
    ClaimProgress,
    embed_pending,
    embed_portions,
    insert_embedded,
    lock_unchanged,
)
from memory.services.embedding.serving import CACHE, EmbeddingModel, parse_spec, use_model
from memory.services.embedding.vector_index import IndexedVectors, build_lock, drop_all_indexes, drop_indexes

logger = logging.getLogger(__name__)

DROPPED_AT_ONCE = 1_000
"""Memories whose vectors of a model are dropped in one transaction."""
FULL_BATCH_SHARE = 4
"""While more than a quarter of a batch was due, what was written meanwhile is embedded before the switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    """Numbers of memories that a step looked at, embedded or dropped, and failed on.

    `is_over`: nothing is left to do now, for this change or until the cause of failures is gone.
    """

    examined: int = 0
    changed: int = 0
    failed: int = 0
    is_over: bool = False


OVER = ChangeReport(is_over=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStep:
    """One batch: at most `size` memories at the time `now`. `renew` is called at least every few seconds."""

    state: ServingModelState
    now: datetime
    size: int
    renew: Callable[[], None]

    @property
    def next_model(self) -> EmbeddingModel:
        return use_model(parse_spec(self.state.next))

    def save(self, report: ChangeReport, **columns: Any) -> ChangeReport:
        """Store where the change goes on, unless an operator has changed its course, and return the report."""
        rows = ServingModelState.objects.filter(id=STATE_ID, phase=self.state.phase, cursor=self.state.cursor)
        rows.update(done=F("done") + report.changed, failed=F("failed") + report.failed, **columns)
        return report


def continue_change(*, now: datetime, size: int, renew: Callable[[], None] = lambda: None) -> ChangeReport:
    """Do the next batch of what is going on; store the configured model as the serving one if none is known yet."""
    state = record_serving_model()
    if state is None:
        return OVER
    step = ChangeStep(state=state, now=now, size=size, renew=renew)
    return STEPS[Phase(state.phase)](step)


def count_change() -> ChangeReport:
    """Return how many memories a change that is going on has to look at, without changing anything."""
    state = ServingModelState.objects.filter(id=STATE_ID).first()
    if state is None or state.phase == Phase.IDLE:
        return OVER
    return ChangeReport(examined=Memory.objects.count(), is_over=True)


def rest(step: ChangeStep) -> ChangeReport:
    """Hand memories that the model refused before the switch over to the job `embed`."""
    released = release_refused(now=step.now)
    return ChangeReport(examined=released, is_over=not released)


def walk_memories(step: ChangeStep) -> ChangeReport:
    """Embed those of the next memories that have a vector of the serving model, and none of the next one."""
    page = read_account_page(Memory.objects.only("account"), after=step.state.cursor, limit=step.size, account_id=None)
    serving, coming = step.state.serving["name"], step.state.next["name"]
    lacking: list[Memory] = []
    for account_id, of_account in group_by_account(page.rows).items():
        lacking += find_lacking(account_id, [row.id for row in of_account], has=serving, lacks=coming)
    embedded = embed_memories(step, lacking)
    report = ChangeReport(
        examined=len(page.rows), changed=embedded.stored, failed=len(embedded.failed), is_over=embedded.stopped
    )
    if not embedded.stopped:
        queue_failed(embedded.failed, now=step.now)
    if embedded.stopped or embedded.left:
        # the same page again, of which fewer are lacking now
        return step.save(report)
    if page.cursor:
        return step.save(report, cursor=page.cursor)
    return step.save(report, cursor="", phase=Phase.INDEX)


def find_lacking(account_id: UUID, ids: Sequence[UUID], *, has: str, lacks: str) -> list[Memory]:
    """Return those of an account's memories that have a vector of the one model and none of the other.

    Those that the other one has refused are left out: they are in the queue.
    """
    vectors = Vector.objects.whole().filter(account_id=OuterRef("account_id"), memory_id=OuterRef("id"))
    # not as Exists, which becomes a join of all partitions: this looks into that of the memory's account
    serving, coming = (Subquery(vectors.filter(model=model).values("id")[:1]) for model in (has, lacks))
    found = Memory.objects.alias(serving=serving, coming=coming).filter(serving__isnull=False, coming=None)
    refused = ReembedEntry.objects.filter(account_id=account_id, memory_id__in=ids, attempts__gt=0)
    wanted = set(ids) - set(refused.values_list("memory_id", flat=True))
    rows = found.filter(account_id=account_id, id__in=wanted).exclude(text__regex=r"^\s*$")
    return list(rows.only("account", "kind", "text", "content_hash", "embed_attempts").order_by("id"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedMemories:
    """The number of memories that got vectors of the next model, those that failed, and the number not reached.

    `stopped`: the embedder is down, and nothing was found out about the rest.
    """

    stored: int
    failed: Sequence[Memory]
    left: int
    stopped: bool


def embed_memories(step: ChangeStep, rows: Sequence[Memory]) -> EmbeddedMemories:
    """Embed memories by the next model and store its vectors next to those of the serving one."""
    if not rows:
        return EmbeddedMemories(stored=0, failed=[], left=0, stopped=False)
    for row in rows:
        row.embed_attempts = 1  # those of the queue are of another model
    progress = ClaimProgress.start(rows, portion_tokens=None)
    stored = embed_portions(progress, store=store_next_vectors, renew=step.renew, model=step.next_model)
    while progress.refusals > MAX_REFUSALS and progress.is_over and answers(step.next_model):
        # it is these texts that it refuses, however many they are
        progress.refusals, progress.is_over = 0, False
        stored += embed_portions(progress, store=store_next_vectors, renew=step.renew, model=step.next_model)
    left = progress.untried_rows()
    return EmbeddedMemories(
        stored=stored,
        failed=progress.failed,
        left=len(left),
        stopped=progress.is_over or bool(progress.waiting and not left),
    )


def next_model_answers() -> bool:
    """Return True if the model that is being prepared answers, or none is."""
    state = read_state()
    return state is None or state.next is None or answers(use_model(parse_spec(state.next)))


def answers(model: EmbeddingModel) -> bool:
    """Return True if the model embeds a harmless text."""
    try:
        model.provider.embed(["ready"], deadline_seconds=PROBE_SECONDS)
    except ProviderError:
        return False
    return True


def store_next_vectors(rows: Sequence[Memory], embedded: EmbeddedTexts) -> int:
    """Store vectors of memories whose texts have not changed, and take these off the queue."""
    stored = 0
    for account_id, claimed in group_by_account(rows).items():
        with transaction.atomic():
            same = lock_unchanged(account_id, claimed)
            stored += insert_embedded(account_id, same, embedded)
            entries = ReembedEntry.objects.filter(account_id=account_id, memory_id__in=[row.id for row in same])
            entries.delete()
    return stored


def queue_failed(rows: Sequence[Memory], *, now: datetime) -> None:
    """Have memories that failed tried again before the switch."""
    entries = [
        ReembedEntry(account_id=row.account_id, memory_id=row.id, attempts=1, due_at=now + backoff("EMBED", 1))
        for row in rows
    ]
    ReembedEntry.objects.bulk_create(entries, ignore_conflicts=True)


def build_indexes(step: ChangeStep) -> ChangeReport:
    """Build the indexes of large accounts over the next model's vectors, one in each batch."""
    coming = step.state.next["name"]
    wanted = (change for change in find_index_changes() if change.vectors and change.vectors.model == coming)
    change = next(wanted, None)
    if change is None:
        return step.save(ChangeReport(), phase=Phase.SWITCH)
    try:
        carry_out(change, renew=step.renew)
    except Conflict as err:
        logger.info("the change of the embedding model waits: %s", err)
        return OVER
    except DatabaseError as err:
        logger.warning("vector index %s was not made: %s", change.name, type(err).__name__)
        return ChangeReport(examined=1, failed=1, is_over=True)
    return ChangeReport(examined=1)


def catch_up_and_switch(step: ChangeStep) -> ChangeReport:
    """Embed what was written since the walk passed it; once hardly anything is due, let the next model serve."""
    due = hopeful_entries().filter(due_at__lte=Now())
    entries = take_shares(due, first_entries, limit=step.size, account_id=None)
    embedded = embed_queued(step, entries)
    failed = len(embedded.failed)
    report = ChangeReport(examined=len(entries), changed=embedded.stored, failed=failed, is_over=embedded.stopped)
    if embedded.stopped or embedded.left or len(entries) > step.size // FULL_BATCH_SHARE:
        return step.save(report)
    if has_due_rows(hopeful_entries().filter(attempts__gt=0), account_id=None):
        # tried again by a later run, when they are due
        return step.save(replace(report, is_over=True))
    step.save(report)
    try:
        late = switch_models(now=step.now)
    except Conflict as err:
        logger.info("the change of the embedding model waits: %s", err)
        return replace(report, is_over=True)
    if late is None:
        return replace(report, is_over=not report.examined)
    late += release_refused(now=step.now)
    logger.info("the embedding model %s serves searches; %s memories lack its vector", step.next_model.name, late)
    if late:
        embed_pending(now=step.now, limit=late, renew=step.renew)
    return replace(report, is_over=True)


def embed_queued(step: ChangeStep, entries: Sequence[ReembedEntry]) -> EmbeddedMemories:
    """Embed the memories of these entries. Entries of memories without a text to embed are dropped."""
    rows: list[Memory] = []
    attempts: dict[UUID, int] = {entry.memory_id: entry.attempts for entry in entries}
    for account_id, of_account in group_by_account(entries).items():
        ids = [entry.memory_id for entry in of_account]
        found = Memory.objects.filter(account_id=account_id, id__in=ids)
        own = found.exclude(text__regex=r"^\s*$").only("account", "kind", "text", "content_hash", "embed_attempts")
        rows += own
        gone = set(ids) - {row.id for row in own}
        ReembedEntry.objects.filter(account_id=account_id, memory_id__in=gone).delete()
    embedded = embed_memories(step, rows)
    for row in embedded.failed:
        tried = attempts[row.id] + 1
        entry = ReembedEntry.objects.filter(account_id=row.account_id, memory_id=row.id)
        entry.update(attempts=tried, due_at=step.now + backoff("EMBED", tried))
    return embedded


def drop_former_vectors(step: ChangeStep) -> ChangeReport:
    """Drop the vectors of the model that served before, its indexes first.

    Not before no process can store one any more: the database queues what such processes store only while it knows the
    former model.
    """
    if step.state.switched_at is not None and step.now < step.state.switched_at + STALE_FOR:
        return OVER
    report, cursor = drop_vectors(step, parse_spec(step.state.former).name, {})
    if cursor is None:
        return report
    return step.save(report, **({"cursor": cursor} if cursor else {"cursor": "", "phase": Phase.IDLE, "former": None}))


def drop_next_vectors(step: ChangeStep) -> ChangeReport:
    """Drop the vectors that were made for a change that was given up; those of clients, and of a way back, stay."""
    coming, former = step.state.next, step.state.former
    report, cursor = ChangeReport(is_over=True), ""
    if former is None or former["name"] != coming["name"]:
        report, dropped = drop_vectors(step, coming["name"], {"is_given": False})
        if dropped is None:
            return report
        cursor = dropped
    if cursor:
        return step.save(report, cursor=cursor)
    saved = step.save(report, cursor="", phase=Phase.IDLE, next=None)
    CACHE.forget()
    return saved


def drop_vectors(step: ChangeStep, model: str, of: Mapping[str, Any]) -> tuple[ChangeReport, str | None]:
    """Drop a model's vectors of the next memories; in the first batch also its indexes, and the queue of the change.

    Returns the cursor of the next batch, "" at the end; None if somebody else is building an index now.
    """
    if not step.state.cursor:
        try:
            drop_model_indexes(model)
        except Conflict as err:
            logger.info("dropping vectors of %s waits: %s", model, err)
            return OVER, None
    rows = Memory.objects.only("account")
    page = read_account_page(rows, after=step.state.cursor, limit=DROPPED_AT_ONCE, account_id=None)
    dropped = 0
    for account_id, of_account in group_by_account(page.rows).items():
        ids = [row.id for row in of_account]
        with transaction.atomic():
            vectors = Vector.objects.filter(account_id=account_id, memory_id__in=ids, model=model, **of)
            dropped += vectors._raw_delete(vectors.db)
            ReembedEntry.objects.filter(account_id=account_id, memory_id__in=ids).delete()
    return ChangeReport(examined=len(page.rows), changed=dropped, is_over=not page.cursor), page.cursor


def drop_model_indexes(model: str) -> None:
    """Drop the indexes over a model's vectors. Raises Conflict while an index is being built."""
    names = [change.name for change in find_index_changes() if change.vectors is None]
    with build_lock():
        drop_indexes(names)
    for width in {parse_spec(each).width for each in known_specs() if each["name"] == model}:
        drop_all_indexes(IndexedVectors(model=model, width=width))


def known_specs() -> list[dict[str, Any]]:
    state = ServingModelState.objects.get(id=STATE_ID)
    return [each for each in (state.next, state.former) if each]


STEPS: Mapping[ServingModelState.Phase, Callable[[ChangeStep], ChangeReport]] = {
    Phase.IDLE: rest,
    Phase.WALK: walk_memories,
    Phase.INDEX: build_indexes,
    Phase.SWITCH: catch_up_and_switch,
    Phase.DROP: drop_former_vectors,
    Phase.ABORT: drop_next_vectors,
}
