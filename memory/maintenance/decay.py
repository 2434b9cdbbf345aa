"""Lets salience fade daily, and the confidence of what was only inferred weekly (X14).

A stage a kind, then the confidences; a stage goes through the accounts by id, and each batch is one statement over the
next rows of one of them. The cursor says which stage, which account, and behind which row, or nothing where the account
is done.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from uuid import UUID

from memory.maintenance.base import Batch, Report, Run
from memory.maintenance.stages import run_stages
from memory.models import Kind
from memory.services.memories.decay import (
    CONFIDENCE,
    FIRST,
    SALIENCE,
    Fading,
    Slice,
    fade,
    look_at_fading,
    next_account,
)


def fade_kind(kind: str, fading: Fading, *, now: datetime, batch: Batch) -> Report:
    """The next rows of this kind, in the account that the cursor names, or in the one behind it."""
    account_id, after = place_of(kind, batch)
    if account_id is None:
        return Report(examined=0, changed=0)
    rows = Slice(account_id=account_id, kind=kind, after=after, limit=batch.size)
    done = (look_at_fading if batch.dry_run else fade)(fading, rows, now=now)
    return Report(examined=done.examined, changed=done.changed, cursor=following(account_id, done.last, batch))


def place_of(kind: str, batch: Batch) -> tuple[UUID | None, UUID]:
    account, _, after = batch.cursor.partition("/")
    if after:
        return UUID(account), UUID(after)
    if batch.account_id is not None:
        return batch.account_id, FIRST
    return next_account(kind, after=UUID(account) if account else None), FIRST


def following(account_id: UUID, last: UUID | None, batch: Batch) -> str:
    if last is not None:
        return f"{account_id}/{last}"
    return str(account_id) if batch.account_id is None else ""


STAGES: Mapping[str, Run] = {
    **{f"salience_{kind}": partial(fade_kind, kind, SALIENCE) for kind in Kind.values},
    "confidence": partial(fade_kind, Kind.FACT, CONFIDENCE),
}


def run(*, now: datetime, batch: Batch) -> Report:
    return run_stages(STAGES, now=now, batch=batch)
