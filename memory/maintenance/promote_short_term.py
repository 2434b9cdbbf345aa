"""Promotes short-term entries that expired and were read often: into their agents' long-term memory."""

import logging
from dataclasses import dataclass
from datetime import datetime, time
from uuid import UUID

from memory.errors import MemoryServiceError
from memory.maintenance.base import Batch, BatchReport, job
from memory.models import AgentShortTermMemory
from memory.models.short_term import ShortTermQuerySet
from memory.owner import Owner
from memory.services.short_term.promote import promote_in_batches

logger = logging.getLogger(__name__)

ACTOR = "job:promote_short_term"


@job(every=time(hour=4), batch_size=100, aliases=("graduate",))
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Promote expired short-term entries that were read often into their agents' long-term memory.

    The next of them by id, those of a session together. What an archived context refuses counts as failed.
    """
    rows = waiting_rows(now, batch)
    found = list(rows.order_by("id")[: batch.size])
    cursor = str(found[-1].id) if len(found) == batch.size else ""
    if batch.dry_run:
        return BatchReport(examined=len(found), changed=len(found), cursor=cursor)
    sessions: dict[tuple[Owner, str], list[UUID]] = {}
    for entry in found:
        owner = Owner(account_id=entry.account_id, agent_id=entry.agent_id, actor=ACTOR)
        sessions.setdefault((owner, entry.session_id), []).append(entry.id)
    promoted = failed = 0
    for (owner, _), ids in sessions.items():
        kept = promote_session(owner, rows.filter(id__in=ids), now=now)
        promoted, failed = promoted + kept.promoted, failed + kept.failed
    return BatchReport(examined=len(found), changed=promoted, failed=failed, cursor=cursor)


def waiting_rows(now: datetime, batch: Batch) -> ShortTermQuerySet:
    rows = AgentShortTermMemory.objects.to_promote().filter(expires_at__lte=now)
    if batch.account_id is not None:
        rows = rows.filter(account_id=batch.account_id)
    return rows.filter(id__gt=UUID(batch.cursor)) if batch.cursor else rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResult:
    """The result for one session: how many entries were promoted, and how many still wait."""

    promoted: int
    failed: int


def promote_session(owner: Owner, waiting: ShortTermQuerySet, *, now: datetime) -> SessionResult:
    promoted = 0
    try:
        for keys in promote_in_batches(owner, waiting, now=now):
            promoted += len(keys)
    except MemoryServiceError as err:
        # no agent, no session: their ids are texts of the client's
        logger.warning("short-term entries of account %s were not promoted: %s", owner.account_id, err.code)
        return SessionResult(promoted=promoted, failed=waiting.count())
    return SessionResult(promoted=promoted, failed=0)
