"""Compresses structured turns: slots in fewer words, adjacent records merged, old episodes archived (E5).

One stage after the other; the cursor says which, and behind which row it is. Where the language model is down, what it
is needed for waits, and episodes are archived all the same.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from uuid import UUID

from memory.maintenance.base import Batch, Report
from memory.services.compression.archive import archive_episodes
from memory.services.compression.compress import Stretch, Worked
from memory.services.compression.merge import merge_records
from memory.services.compression.slots import compress_slots

ARCHIVE = "archive"
STAGES: Mapping[str, Callable[[Stretch], Worked]] = {
    "slots": compress_slots,
    "merge": merge_records,
    ARCHIVE: archive_episodes,
}
"""In their order: what was shortened in a run may be merged in the same one."""


def run(*, now: datetime, batch: Batch) -> Report:
    """One batch of one stage."""
    stage, _, after = (batch.cursor or f"{next(iter(STAGES))}:").partition(":")
    done = STAGES[stage](
        Stretch(
            now=now,
            limit=batch.size,
            after=UUID(after) if after else None,
            account_id=batch.account_id,
            dry_run=batch.dry_run,
            renew=batch.renew,
        )
    )
    return Report(
        examined=done.examined,
        changed=done.changed,
        failed=done.failed,
        cursor=next_cursor(stage, done),
        figures=done.figures,
    )


def next_cursor(stage: str, done: Worked) -> str:
    """The rest of the stage, or the beginning of the next one; empty behind the last."""
    if done.last is not None and not done.stopped:
        return f"{stage}:{done.last}"
    following = list(STAGES)[list(STAGES).index(stage) + 1 :]
    if done.stopped:
        following = [ARCHIVE] if ARCHIVE in following else []
    return f"{following[0]}:" if following else ""
