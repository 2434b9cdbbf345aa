"""Compresses structured turns: slots in fewer words, adjacent records merged, old episodes archived (E5).

One stage after the other; the cursor says which, and behind which row it is. Where the language model is down, what it
is needed for waits, and episodes are archived all the same.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, time
from uuid import UUID

from memory.maintenance.base import Batch, BatchReport, job
from memory.services.compression.compress import CompressionBatch
from memory.services.compression.merge import merge_records
from memory.services.compression.shorten import archive_episodes, compress_slots
from memory.services.conversations.queue import BatchResult

ARCHIVE = "archive"
STAGES: Mapping[str, Callable[[CompressionBatch], BatchResult]] = {
    "slots": compress_slots,
    "merge": merge_records,
    ARCHIVE: archive_episodes,
}
"""The stages in order: what a run shortened may be merged in the same run."""


@job(every=time(hour=4, minute=30), batch_size=20)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Shorten old structured turns, merge them into work episodes, and archive old episodes.

    One batch of one stage.
    """
    stage, _, after = (batch.cursor or f"{next(iter(STAGES))}:").partition(":")
    done = STAGES[stage](
        CompressionBatch(
            now=now,
            limit=batch.size,
            after=UUID(after) if after else None,
            account_id=batch.account_id,
            dry_run=batch.dry_run,
            renew=batch.renew,
        )
    )
    return BatchReport(
        examined=done.claimed,
        changed=done.stored,
        failed=done.failed,
        cursor=next_stage_cursor(stage, done),
        figures=done.figures,
    )


def next_stage_cursor(stage: str, done: BatchResult) -> str:
    """Return the cursor of the rest of the stage, or of the next stage; empty after the last one."""
    if done.last is not None and not done.stopped:
        return f"{stage}:{done.last}"
    following = list(STAGES)[list(STAGES).index(stage) + 1 :]
    if done.stopped:
        following = [ARCHIVE] if ARCHIVE in following else []
    return f"{following[0]}:" if following else ""
