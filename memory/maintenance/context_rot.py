"""Archives context entries that went stale (P11): long unread, unimportant, or superseded (`scoring.staleness`)."""

from datetime import datetime, time
from uuid import UUID

from memory.maintenance.base import Batch, BatchReport, job
from memory.services.contexts.rot import EntryCursor, archive_stale_entries, find_stale_entries


@job(every=time(hour=4), batch_size=1_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Archive stale context entries: long unread, unimportant, or superseded.

    The next entries, by account, context and id. The cursor is the place of the last one looked at.
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
