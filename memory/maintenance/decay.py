"""Lets salience fade daily, and the confidence of what was only inferred weekly (X14).

A stage a kind, then the confidences; a stage goes through the accounts by id, and each batch is one statement over the
next rows of one of them. The cursor says which stage, which account, and behind which row, or nothing where the account
is done.
"""

from collections.abc import Mapping
from datetime import datetime, time
from functools import partial
from uuid import UUID

from memory.kinds import Kind, all_specs
from memory.maintenance.base import Batch, BatchReport, RunBatch, job
from memory.maintenance.stages import run_stages
from memory.services.memories.decay import (
    CONFIDENCE,
    FIRST_ID,
    SALIENCE,
    DecayBatch,
    DecayedColumn,
    decay_rows,
    next_account_with_kind,
    preview_decay,
)


def fade_kind(kind: str, fading: DecayedColumn, *, now: datetime, batch: Batch) -> BatchReport:
    """Fade the next rows of this kind, in the account that the cursor names or in the next one."""
    account_id, after = account_and_cursor(kind, batch)
    if account_id is None:
        return BatchReport(examined=0, changed=0)
    rows = DecayBatch(account_id=account_id, kind=kind, after=after, limit=batch.size)
    done = (preview_decay if batch.dry_run else decay_rows)(fading, rows, now=now)
    return BatchReport(examined=done.examined, changed=done.changed, cursor=following(account_id, done.last, batch))


def account_and_cursor(kind: str, batch: Batch) -> tuple[UUID | None, UUID]:
    account, _, after = batch.cursor.partition("/")
    if after:
        return UUID(account), UUID(after)
    if batch.account_id is not None:
        return batch.account_id, FIRST_ID
    return next_account_with_kind(kind, after=UUID(account) if account else None), FIRST_ID


def following(account_id: UUID, last: UUID | None, batch: Batch) -> str:
    if last is not None:
        return f"{account_id}/{last}"
    return str(account_id) if batch.account_id is None else ""


def stages() -> Mapping[str, RunBatch]:
    """Return the stages by name: salience of each kind that decays, then confidence of facts."""
    names = [spec.name for spec in all_specs() if spec.is_decayed]
    of_kinds = {f"salience_{name}": partial(fade_kind, name, SALIENCE) for name in names}
    return of_kinds | {"confidence": partial(fade_kind, Kind.FACT, CONFIDENCE)}


@job(every=time(hour=3, minute=15), batch_size=100_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Lower the salience of memories unused for a day, and inferred confidence by the week."""
    return run_stages(stages(), now=now, batch=batch)
