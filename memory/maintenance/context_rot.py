"""Archives context entries that went stale (P11): long unread, unimportant, or superseded (`scoring.staleness`)."""

from datetime import datetime
from uuid import UUID

from memory.maintenance.base import Batch, Report
from memory.services.contexts.rot import Place, archive_stale, find_stale


def run(*, now: datetime, batch: Batch) -> Report:
    """The next entries, by account, context and id. The cursor is the place of the last one looked at."""
    after = Place(*map(UUID, batch.cursor.split("/"))) if batch.cursor else None
    looked = find_stale(after=after, limit=batch.size, account_id=batch.account_id, now=now)
    archived = len(looked.stale) if batch.dry_run else archive_stale(looked.stale, now=now)
    return Report(
        examined=looked.examined,
        changed=archived,
        cursor="/".join(map(str, looked.last)) if looked.last else "",
        figures={"entries_archived": archived} if archived else {},
    )
