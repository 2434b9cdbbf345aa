"""Context rot (P11): archives stale entries, as if an agent had removed them.

`scoring.staleness` defines staleness; here it is SQL: the time since the last read or write, the number of reads, the
importance, and whether another live entry of the context SUPERSEDES it. Pinned, archived, expired and quarantined
entries are skipped, as are items (`services.items`), and archived contexts as a whole. No text is lost: staff unarchive
an entry, a snapshot restores it, and so does writing under its key again.

Locks: contexts by id, then their entries by id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memory import conf, scoring
from memory.audit import record_audit
from memory.models import Kind, Memory, PersistentContext
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.account_walk import group_by_account, walk_accounts
from memory.services.contexts.access_log import Action, log_writes
from memory.services.contexts.entries import ITEM_SOURCE

ACTOR = "job:context_rot"
FIRST_ID = UUID(int=0)
"""An id before all others."""

# an entry must reach the lower age of superseded ones before the query looks for what supersedes it
STALE = f"""
NOT (m.pinned OR m.archived OR m.quarantined) AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
AND m.source <> '{ITEM_SOURCE}'
AND aged.days_of_stretch >= %(stale_days)s * {scoring.SUPERSEDED_SCALE} AND (
    aged.days_of_stretch >= %(stale_days)s OR EXISTS (
        SELECT FROM memory_links l JOIN memories newer ON newer.account_id = %(account_id)s AND newer.id = l.source_id
        WHERE l.account_id = %(account_id)s AND l.target_id = m.id AND l.type = 'SUPERSEDES'
            AND newer.kind = 'context_entry' AND newer.context_id = m.context_id
            AND NOT (newer.archived OR newer.quarantined)
            AND (newer.expires_at IS NULL OR newer.expires_at > %(now)s)
    )
)"""
AGED = f"""
JOIN persistent_contexts c ON c.account_id = %(account_id)s AND c.id = m.context_id AND NOT c.archived
CROSS JOIN LATERAL (
    SELECT date_part('epoch', %(now)s - greatest(m.updated_at, m.last_accessed)) / 86400
        / ((1 + ln(1 + m.access_count::float8)) * ({scoring.MIN_STALENESS_SCALE} + m.importance)) AS days_of_stretch
) AS aged
"""
# in the order of an index, so that no entry is read twice, however many are archived
SCAN_ENTRIES = f"""
WITH reached AS MATERIALIZED (
    SELECT id, account_id, context_id, source, pinned, archived, quarantined, expires_at, updated_at, last_accessed,
        access_count, importance
    FROM memories WHERE account_id = %(account_id)s AND context_id IS NOT NULL AND kind = 'context_entry'
        AND (context_id, kind, id) > (%(context_id)s, 'context_entry', %(entry_id)s)
    ORDER BY context_id, kind, id LIMIT %(limit)s
), stale AS (
    SELECT m.id FROM reached m {AGED} WHERE {STALE}
)
SELECT account_id, context_id, id, id IN (SELECT id FROM stale) FROM reached ORDER BY context_id, id
"""  # noqa: S608  made of constants
LOCK_STALE = f"""
SELECT m.account_id, m.context_id, m.id FROM memories m {AGED}
WHERE m.account_id = %(account_id)s AND m.id = ANY(%(entries)s::uuid[]) AND m.kind = 'context_entry'
    AND {STALE}
ORDER BY m.id FOR NO KEY UPDATE OF m
"""  # noqa: S608  made of constants


class EntryCursor(NamedTuple):
    """The position of an entry in a scan: ordered by account, then context, then entry."""

    account_id: UUID
    context_id: UUID = FIRST_ID
    entry_id: UUID = FIRST_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleScan:
    """The stale ones among the entries examined; `last` is the cursor to continue after, None after the last entry."""

    examined: int
    stale: Sequence[EntryCursor]
    last: EntryCursor | None


def find_stale_entries(*, after: EntryCursor | None, limit: int, account_id: UUID | None, now: datetime) -> StaleScan:
    """Examine the next entries, of one account or of all, one account after the other. One statement for each."""

    def scan(account_id: UUID, place: str, room: int) -> list[tuple[Any, ...]]:
        context, _, entry = place.partition("/")
        begins = EntryCursor(account_id, UUID(context), UUID(entry)) if place else EntryCursor(account_id)
        given = {**begins._asdict(), "limit": room, **staleness_parameters(now)}
        return list(fetch_rows(SCAN_ENTRIES, given))

    entries = Memory.objects.filter(kind=Kind.CONTEXT_ENTRY, context_id__isnull=False)
    begin = "/".join(map(str, after)) if after else ""
    found = walk_accounts(entries, scan, after=begin, limit=limit, account_id=account_id)
    reached = [(EntryCursor(*cursor), is_stale) for *cursor, is_stale in found]
    stale = [cursor for cursor, is_stale in reached if is_stale]
    return StaleScan(examined=len(reached), stale=stale, last=reached[-1][0] if len(reached) == limit else None)


def archive_stale_entries(found: Sequence[EntryCursor], *, now: datetime) -> int:
    """Archive the entries that are still stale, with an access log line each, and return their number.

    One transaction and one audit entry for each account.
    """
    return sum(
        archive_stale_of_account(account_id, cursors, now=now)
        for account_id, cursors in group_by_account(found).items()
    )


def archive_stale_of_account(account_id: UUID, found: Sequence[EntryCursor], *, now: datetime) -> int:
    """Archive those of an account's entries that are still stale. The number of statements is fixed."""
    with transaction.atomic():
        # nobody else writes to the contexts until the transaction ends
        contexts = PersistentContext.objects.filter(
            account_id=account_id, id__in={cursor.context_id for cursor in found}
        )
        list(contexts.order_by("id").select_for_update(no_key=True, of=("self",)).values_list("id"))
        entries = [cursor.entry_id for cursor in found]
        given = {"account_id": account_id, "entries": entries, **staleness_parameters(now)}
        stale = [EntryCursor(*row) for row in fetch_rows(LOCK_STALE, given)]
        if not stale:
            return 0
        owner, ids = Owner(account_id=account_id, actor=ACTOR), [cursor.entry_id for cursor in stale]
        rows = Memory.objects.filter(account_id=account_id, id__in=ids)
        rows.update(archived=True, version=F("version") + 1, updated_at=now)
        log_writes(owner, [(cursor.context_id, cursor.entry_id) for cursor in stale], action=Action.ARCHIVE, now=now)
        record_audit(owner, operation="archive", memory_type="semantic", affected_ids=ids, result_count=len(ids))
    return len(stale)


def staleness_parameters(now: datetime) -> dict[str, Any]:
    return {"now": now, "stale_days": scoring.days_until_stale(conf.STALE_FROM)}
